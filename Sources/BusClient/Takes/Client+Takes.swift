import BusProtocol
public import JSON

extension Client {
    /// Makes a take of a camera; nothing is recorded yet. It is its user's, also when this process has ended, until it
    /// is finished or discarded.
    ///
    /// - Parameter wishes: the params of `take.create`: device or session, microphone, name, minDuration, maxDuration,
    ///   exportPreset, detached (segments go on when the process has ended that asked for them), orientation, mirrored.
    /// - Throws: ``ClientError/refused(_:)`` with `deviceNotFound`, `sessionNotFound` or `limitExceeded`.
    public func createTake(
        _ wishes: [String: JSONValue], timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> TakeState {
        // One that nobody knows of would stay for ever.
        try Self.state(
            try await patientCall("take.create", .object(wishes), timeout: timeout) { made in
                made["take"]?["id"].map { [("take.discard", ["take": $0])] } ?? []
            })
    }

    /// The takes that are not over, in the order in which they were made, as `state/take/` has them.
    public func takes(timeout: Duration = defaultTimeout) async throws(ClientError) -> [TakeState] {
        (try await call("take.list", timeout: timeout)["takes"]?.array ?? []).map { TakeState($0) }
    }

    /// One take.
    ///
    /// - Throws: ``ClientError/refused(_:)`` with `takeNotFound`, also when it is over.
    public func take(_ id: String, timeout: Duration = defaultTimeout) async throws(ClientError) -> TakeState {
        try Self.state(try await repeatedCall("take.get", ["take": .string(id)], timeout: timeout))
    }

    /// Begins a segment, behind the others. It answers when the first frame is in its file.
    ///
    /// - Returns: the movie that the segment is.
    /// - Throws: ``ClientError/refused(_:)`` with `recordingInProgress` while one is recorded, `limitExceeded` when the
    ///   take is as long as it may be, and what ``startMovie(_:timeout:)`` throws.
    public func recordTake(
        _ id: String, timeout: Duration = movieTimeout
    ) async throws(ClientError) -> ClientMovie {
        try ClientMovie(
            try await patientCall("take.record", ["take": .string(id)], timeout: timeout) { made in
                made["movie"].map { [("movie.stop", ["movie": $0])] } ?? []
            })
    }

    /// Ends the segment that is recorded; where none is, it answers how the last one ended. It answers when the file is
    /// closed and on the disk.
    ///
    /// - Throws: ``ClientError/refused(_:)`` with `notRecording` when there was none.
    @discardableResult
    public func pauseTake(
        _ id: String, timeout: Duration = movieTimeout
    ) async throws(ClientError) -> SegmentEnding {
        try SegmentEnding(try await repeatedCall("take.pause", ["take": .string(id)], timeout: timeout))
    }

    /// Throws a segment away, whichever it is; there is room for another one then.
    ///
    /// - Returns: the take, and the files that were there.
    /// - Throws: ``ClientError/refused(_:)`` with `recordingInProgress` for the one that is recorded, `invalidParams`
    ///   for one that it doesn't have.
    @discardableResult
    public func deleteSegment(
        _ segment: String, ofTake id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> (take: TakeState, deleted: [String]) {
        let params: JSONValue = ["take": .string(id), "segment": .string(segment)]
        let answer = try await call("take.delete", params, timeout: timeout)
        return (try Self.state(answer), answer["deleted"]?.array?.compactMap(\.string) ?? [])
    }

    /// How long the end of a take may take: where its segments can't be joined as they are, they are encoded.
    public static let finishingTimeout = Duration.seconds(600)

    /// Joins the segments into one movie, MP4 with H.264 and AAC; they and the take are gone then. Where it fails the
    /// take is as it was.
    ///
    /// - Parameters:
    ///   - path: absolute; nil: in the capture library.
    ///   - name: what it is called there; nil: as the take.
    /// - Throws: ``ClientError/refused(_:)`` with `recordingInProgress` while a segment is recorded, `notRecording`
    ///   without segments,
    ///   `pathNotAllowed`, `diskFull`, or `invalidParams` when there is such a file.
    public func finishTake(
        _ id: String, path: String? = nil, name: String? = nil, timeout: Duration = finishingTimeout
    ) async throws(ClientError) -> FinishedTake {
        let params: JSONValue = .members([
            "take": .string(id), "path": path.map(JSONValue.string), "name": name.map(JSONValue.string),
        ])
        return try FinishedTake(try await call("take.finish", params, timeout: timeout))
    }

    /// Throws a take away, with all of its segments; one that is recorded ends.
    ///
    /// - Returns: the files that were there; whether the bus could write to its disk that the take is gone.
    @discardableResult
    public func discardTake(
        _ id: String, timeout: Duration = movieTimeout
    ) async throws(ClientError) -> (deleted: [String], isKept: Bool) {
        let answer = try await repeatedCall("take.discard", ["take": .string(id)], timeout: timeout) {
            $0.reason == .takeNotFound
        }
        return (answer["deleted"]?.array?.compactMap(\.string) ?? [], answer["kept"]?.bool ?? true)
    }

    /// Follows a take until it is over; on return the subscription is in force.
    ///
    /// - Parameter timeout: for the subscription, and for each question that follows from it.
    public func updates(
        ofTake id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> TakeUpdates {
        TakeUpdates(self, id, try await observe(TakeUpdates.topics(id), timeout: timeout), timeout: timeout)
    }

    private static func state(_ answer: JSONValue) throws(ClientError) -> TakeState {
        guard let take = answer["take"], take["id"]?.string != nil else {
            throw .unreadable("The answer of the bus is invalid: it contains no take.")
        }
        return TakeState(take, isKept: answer["kept"]?.bool ?? true)
    }
}
