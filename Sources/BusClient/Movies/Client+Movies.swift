public import JSON

extension Client {
    /// Starts a movie, which ends with this process unless `detached` is among the wishes. It answers when the first
    /// frame is in the file.
    ///
    /// - Parameter wishes: the params of `movie.start` without a rig: device or session, microphone, path, name or url,
    ///   fileType, codec, settings, fragmentInterval, maxDuration, maxFileSize, minFreeDiskSpace, detached,
    ///   continueAfterCrash, take, smoothAutoFocus, stabilization, whenDenied.
    /// - Throws: ``ClientError/refused(_:)`` with `recordingInProgress`, `pathNotAllowed`, `diskFull`, `unauthorized`,
    ///   `deviceNotFound`, or `invalidParams` when the file can't be made: nothing is overwritten; or when the server
    ///   of the URL can't be reached.
    public func startMovie(
        _ wishes: [String: JSONValue], timeout: Duration = movieTimeout
    ) async throws(ClientError) -> ClientMovie {
        try ClientMovie(try await start(wishes, timeout))
    }

    /// Starts a movie of each camera of a rig, together: all or none.
    ///
    /// - Parameter wishes: the params of `movie.start` beside the rig.
    public func startMovies(
        ofRig rig: String, _ wishes: [String: JSONValue] = [:], timeout: Duration = movieTimeout
    ) async throws(ClientError) -> [ClientMovie] {
        try await startAll(wishes.merging(["rig": .string(rig)]) { $1 }, timeout)
    }

    /// Starts a movie of each camera that is connected with a session's movie output, together: all or none.
    ///
    /// - Parameter wishes: the params of `movie.start` beside the session.
    public func startMovies(
        ofSession session: String, _ wishes: [String: JSONValue] = [:], timeout: Duration = movieTimeout
    ) async throws(ClientError) -> [ClientMovie] {
        try await startAll(wishes.merging(["session": .string(session), "eachCamera": true]) { $1 }, timeout)
    }

    private func startAll(
        _ wishes: [String: JSONValue], _ timeout: Duration
    ) async throws(ClientError) -> [ClientMovie] {
        let answer = try await start(wishes, timeout)
        guard let listed = answer["movies"]?.array else { return [try ClientMovie(answer)] }
        var movies: [ClientMovie] = []
        for movie in listed { movies.append(try ClientMovie(movie)) }
        return movies
    }

    private func start(_ wishes: [String: JSONValue], _ timeout: Duration) async throws(ClientError) -> JSONValue {
        // Movies that nobody knows of would go on until this process ends.
        try await patientCall("movie.start", .object(wishes), timeout: timeout) { made in
            (made["movies"]?.array ?? [made]).compactMap { $0["movie"] }.map { ("movie.stop", ["movie": $0]) }
        }
    }

    /// How long the start and the end of a movie may take: its camera has to give pictures, and its file has to be on
    /// the disk.
    public static let movieTimeout = Duration.seconds(30)

    /// Ends a movie. It answers when the file is closed and on the disk; of one that has ended by itself, how it did.
    public func stopMovie(
        _ id: String, timeout: Duration = movieTimeout
    ) async throws(ClientError) -> MovieEnding {
        try MovieEnding(try await repeatedCall("movie.stop", ["movie": .string(id)], timeout: timeout), of: id)
    }

    /// Leaves out what comes from now on.
    @discardableResult
    public func pauseMovie(
        _ id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> MovieState {
        try await movie("pause", id, timeout)
    }

    /// Goes on in the same file, without a hole.
    @discardableResult
    public func resumeMovie(
        _ id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> MovieState {
        try await movie("resume", id, timeout)
    }

    /// Ends all movies of a take or rig at one moment: the last frame of each is the last that its camera took before.
    public func stopMovies(
        of group: MovieGroup, timeout: Duration = movieTimeout
    ) async throws(ClientError) -> [MovieEnding] {
        var endings: [MovieEnding] = []
        for json in try await movies("stop", group, timeout) { endings.append(try MovieEnding(json, of: "")) }
        return endings
    }

    /// Leaves out what is taken from one moment on, in all movies of a take or rig.
    @discardableResult
    public func pauseMovies(
        of group: MovieGroup, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> [MovieState] {
        try await movies("pause", group, timeout).map(MovieState.init)
    }

    /// Continues all movies of a take or rig at one moment.
    @discardableResult
    public func resumeMovies(
        of group: MovieGroup, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> [MovieState] {
        try await movies("resume", group, timeout).map(MovieState.init)
    }

    private func movies(
        _ method: String, _ group: MovieGroup, _ timeout: Duration
    ) async throws(ClientError) -> [JSONValue] {
        let answer = try await repeatedCall("movie.\(method)", group.params, timeout: timeout)
        guard let movies = answer["movies"]?.array else {
            throw .unreadable("The answer of the bus is invalid: it contains no movies.")
        }
        return movies
    }

    /// How far a movie is; of one of the 64 that ended last, how far it came, and ``MovieState/ending``.
    public func movie(_ id: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> MovieState {
        try await movie("status", id, timeout)
    }

    private func movie(
        _ method: String, _ id: String, _ timeout: Duration
    ) async throws(ClientError) -> MovieState {
        let answer = try await repeatedCall("movie.\(method)", ["movie": .string(id)], timeout: timeout)
        guard let movie = answer["movie"] else {
            throw .unreadable("The answer of the bus is invalid: it contains no movie.")
        }
        return MovieState(movie)
    }

    /// All movies that are being recorded, in the order in which they were begun, as `state/movie/` has them.
    public func movies(timeout: Duration = defaultTimeout) async throws(ClientError) -> [MovieState] {
        (try await call("movie.list", timeout: timeout)["movies"]?.array ?? []).map(MovieState.init)
    }

    /// Settings that go with a camera, or a session, and a kind of file: complete, and taken by `movie.start` as
    /// `settings` after any change.
    ///
    /// - Parameters:
    ///   - subject: {device, microphone} or {session, microphone}.
    ///   - fileType: `mp4`, `mov` or `mkv`.
    /// - Returns: {video: {codec, width, height, bitRate, keyFrameInterval, …}, audio: {codec, rate, channels,
    ///   bitRate}}.
    public func recommendedMovieSettings(
        _ subject: [String: JSONValue], fileType: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        let params = subject.merging(["fileType": .string(fileType)]) { $1 }
        return try await call("movie.recommendedSettings", .object(params), timeout: timeout)
    }

    /// Follows a movie to its end; on return the subscription is in force.
    ///
    /// - Parameter timeout: for the subscription, and for each question that follows from it.
    public func updates(
        ofMovie id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> MovieUpdates {
        MovieUpdates(self, id, try await observe(MovieUpdates.topics(id), timeout: timeout), timeout: timeout)
    }

    /// Records while the body runs, and finishes the file however that ends.
    ///
    /// - Returns: what the body gave, and how the movie ended: by its end, or by itself before.
    public func withMovie<Result>(
        _ wishes: [String: JSONValue], timeout: Duration = movieTimeout, _ body: (ClientMovie) async throws -> Result
    ) async throws -> (result: Result, ending: MovieEnding) {
        let movie = try await startMovie(wishes, timeout: timeout)
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(try await body(movie))
        } catch {
            outcome = .failure(error)
        }
        // A cancelled task must finish its file too: another task does it.
        let end = Task { try await stopMovie(movie.id, timeout: timeout) }
        let ending = await end.result
        return (try outcome.get(), try ending.get())
    }
}
