public import BusProtocol
public import JSON

/// What is told of a photo while it comes about (`AVCapturePhotoCaptureDelegate`), in this order.
public enum PhotoJobStage: String, Hashable, Sendable, CaseIterable {
    case willBeginCapture, willCapturePhoto, didCapturePhoto
    /// Once per photo.
    case didFinishProcessingPhoto
    /// Of a live photo: its movie has all that belongs to it.
    case didFinishRecordingLivePhotoMovie
    /// Both of its files are whole.
    case didFinishProcessingLivePhotoToMovieFile
    /// Always, and always the last.
    case didFinishCapture
}

/// What is to be done for a photo, as ``PhotoQueue`` decides it: in the order in which they are given.
public enum PhotoStep: Hashable, Sendable {
    /// Order `preparePhoto`; ``PhotoQueue/prepared(_:_:_:)`` with the answer.
    case prepare(job: String, device: String)
    /// Order `takePhoto` of all of them, for the same time; ``PhotoQueue/taken(_:_:_:)`` with each answer.
    case take(job: String, devices: [String])
    /// Order `dropPhoto`; ``PhotoQueue/dropped(_:_:)`` when it is answered, however.
    case drop(job: String, device: String)
    /// Have the live recorder make the movie around the moment that the device told; ``PhotoQueue/recorded(_:_:)`` when
    /// it is whole.
    case record(job: String, device: String)
    /// The movie is given up, and nothing of it is to be left.
    case unrecord(job: String)
    /// Picture and movie are whole: have both stored, or neither; ``PhotoQueue/stored(_:_:)`` then.
    case store(job: String, device: String)
    /// An event on `event/photo/<job>/`, with its members.
    case tell(job: String, PhotoJobStage, JSONValue)
    /// Answer the request; the job is over.
    case finish(job: String, Result<PhotoOutcome, BusError>)
}

/// What has come of a request.
public struct PhotoOutcome: Hashable, Sendable {
    public var uniqueID: String
    /// One of each device, in the request's order.
    public var resolutions: [PhotoResolution]
    /// In the order of the devices, and of each device in the order in which they were taken; of one frame the DNG that
    /// comes with another file last.
    public var photos: [PhotoResult]
    /// Of a live photo.
    public var movie: LivePhotoMovie?

    /// Nanoseconds between the first and the last device's first photo; nil with one device.
    public var spread: Int64? {
        let firsts = photos.filter { $0.index == 0 }
        let times = firsts.map(\.timestamp.monotonic)
        guard Set(firsts.map(\.device)).count > 1, let first = times.min(), let last = times.max() else { return nil }
        return last - first
    }

    /// The result of `photo.capture`.
    ///
    /// - Parameter attaches: the files are the reply's further frames, in the order of ``photos``.
    public func json(attaches: Bool) -> JSONValue {
        var listed = photos
        for index in listed.indices { listed[index].attachment = attaches ? index : nil }
        var movie = movie
        movie?.attachment = attaches ? listed.count : nil
        var attachments = listed.map(announcement)
        if let movie { attachments.append(movieAnnouncement(movie)) }
        let late = Set(photos.filter { $0.late != nil }.map { Shot($0) }).count
        return .members([
            "uniqueID": .string(uniqueID),
            "resolved": PhotoJob.resolved(resolutions, movie: movie?.dimensions),
            "expectedPhotoCount": JSONValue(PhotoJob.expected(resolutions)), "photos": .array(listed.map(\.json)),
            "livePhotoMovie": movie?.json, "spread": spread.map(JSONValue.integer),
            "late": late == 0 ? nil : JSONValue(late),
            "attachments": .array(attaches ? attachments : []),
        ])
    }

    // A frame that became photos: two files of it are late once.
    private struct Shot: Hashable {
        let device: String
        let index: Int

        init(_ photo: PhotoResult) { (device, index) = (photo.device, photo.index) }
    }

    private func movieAnnouncement(_ movie: LivePhotoMovie) -> JSONValue {
        let stored = movie.path.flatMap { $0.split(separator: "/").last.map(String.init) }
        return [
            "name": .string(stored ?? "photo-\(uniqueID).mov"), "contentType": "video/quicktime",
            "bytes": JSONValue(movie.bytes),
        ]
    }

    // What the reply says of a further frame.
    private func announcement(_ photo: PhotoResult) -> JSONValue {
        let stored = photo.path.flatMap { $0.split(separator: "/").last.map(String.init) }
        let stem = resolutions.count > 1 ? "photo-\(uniqueID)-\(photo.device)" : "photo-\(uniqueID)"
        let count = Set(photos.filter { $0.device == photo.device }.map(\.index)).count
        let name = stored ?? PhotoName.file(stem: stem, index: photo.index, count: count, fileType: photo.fileType)
        return [
            "name": .string(name), "contentType": .string(photo.fileType.contentType),
            "bytes": JSONValue(photo.bytes),
        ]
    }
}

/// A request for photos of one moment, from its devices' getting ready to its end: what has happened, and what is told
/// of it.
///
/// Every stage is told once and in order, whatever the order in which the devices get there: `willCapturePhoto` with
/// the first device that does, `didCapturePhoto` with the last one, and no finished photo before that. A device that
/// can't get ready ends the request for all of them; one that fails later leaves the others their photos, and the
/// request ends with its error.
public struct PhotoJob: Sendable {
    /// How far a device is.
    enum Part: Hashable, Sendable {
        /// For its turn.
        case waiting
        case preparing, ready, taking
        /// Its photos are being made: the next request may have the device.
        case processing
        /// Its photo is made and waits to be stored together with the movie.
        case made
        case dropping
        /// It has no more part in this.
        case over
    }

    /// How far the movie of a live photo is.
    private enum Recording: Hashable, Sendable {
        /// It is no live photo, or the movie is stored or given up.
        case none
        /// For the photo's moment.
        case waiting
        case recording
        case recorded(LivePhotoMovie)
        case storing
    }

    public let id: String
    public private(set) var devices: [String]
    /// For whom it is, as `willBeginCapture` tells it.
    public let owner: JSONValue
    /// Of a moment that is over: it needs no device for itself.
    let isPast: Bool
    private(set) var parts: [String: Part]
    private var resolutions: [String: PhotoResolution] = [:]
    /// Finished, and told if ``hasCaptured``.
    private var photos: [PhotoResult] = []
    private var error: BusError?
    private var hasBegun = false
    private var isCapturing = false
    private var hasCaptured = false
    private var captured: Set<String> = []
    private(set) var isOver = false
    private var recording: Recording
    private var movie: LivePhotoMovie?

    init(id: String, devices: [String], owner: JSONValue, isPast: Bool = false, isLive: Bool = false) {
        recording = isLive ? .waiting : .none
        self.id = id
        self.devices = devices
        self.owner = owner
        self.isPast = isPast
        parts = Dictionary(devices.map { ($0, .waiting) }, uniquingKeysWith: { part, _ in part })
    }

    /// Its turn has not come.
    public var isWaiting: Bool { parts.values.contains(.waiting) }

    /// It needs the device for itself: no other job may have it.
    func holds(_ device: String) -> Bool {
        guard !isPast else { return false }
        return switch parts[device] {
        case .preparing, .ready, .taking, .dropping: true
        case .waiting, .processing, .made, .over, nil: false
        }
    }

    // MARK: What happens

    mutating func start() -> [PhotoStep] {
        guard !isOver, isWaiting else { return [] }
        return devices.map { device in
            parts[device] = .preparing
            return .prepare(job: id, device: device)
        }
    }

    mutating func prepared(_ device: String, _ result: Result<PhotoResolution, BusError>) -> [PhotoStep] {
        guard parts[device] == .preparing else { return [] }
        switch result {
        case .failure(let error):
            parts[device] = .over
            return end(error, keepsCaptured: false)
        case .success(let resolution):
            resolutions[device] = resolution
            parts[device] = .ready
            guard parts.values.allSatisfy({ $0 == .ready }) else { return [] }
            let members: JSONValue = [
                "resolved": Self.resolved(resolved), "expectedPhotoCount": JSONValue(Self.expected(resolved)),
                "devices": JSONValue(devices), "owner": owner,
            ]
            hasBegun = true
            for device in devices { parts[device] = .taking }
            return [.tell(job: id, .willBeginCapture, members), .take(job: id, devices: devices)]
        }
    }

    mutating func progressed(_ device: String, _ progress: PhotoProgress, _ photo: PhotoResult?) -> [PhotoStep] {
        guard parts[device] == .taking || parts[device] == .processing else { return [] }
        switch progress {
        case .willCapture: return beginCapturing()
        case .didCapture: return capture(device)
        case .processed: return photo.map { process($0) } ?? []
        }
    }

    mutating func taken(_ device: String, _ result: Result<[PhotoResult], BusError>) -> [PhotoStep] {
        guard parts[device] == .taking || parts[device] == .processing else { return [] }
        var steps: [PhotoStep] = []
        switch result {
        case .success(let photos):
            steps += capture(device)
            for photo in photos { steps += process(photo) }
            parts[device] = recording == .none ? .over : .made
            steps += storeIfWhole()
        case .failure(let error):
            self.error = self.error ?? error
            parts[device] = .over
            steps += giveUpMovie()
            // The others' photos wait for nobody any more.
            steps += settleCaptured()
        }
        return steps + finishIfOver()
    }

    mutating func dropped(_ device: String) -> [PhotoStep] {
        guard parts[device] == .dropping else { return [] }
        parts[device] = .over
        return finishIfOver()
    }

    /// - Parameter keepsCaptured: devices whose pictures are taken finish them.
    mutating func end(_ error: BusError, keepsCaptured: Bool) -> [PhotoStep] {
        // What is being stored is stored in a moment, and can't be given up half way.
        guard !isOver, recording != .storing else { return [] }
        if keepsCaptured, parts.values.allSatisfy({ [.processing, .made, .over].contains($0) }) { return [] }
        self.error = self.error ?? error
        var steps: [PhotoStep] = []
        for device in devices {
            switch parts[device] {
            case .waiting: parts[device] = .over
            case .processing where keepsCaptured, .made where keepsCaptured: break
            case .preparing, .ready, .taking, .processing, .made:
                parts[device] = .dropping
                steps.append(.drop(job: id, device: device))
            case .dropping, .over, nil: break
            }
        }
        if !keepsCaptured || captured.isEmpty { steps += giveUpMovie() }
        return steps + settleCaptured() + finishIfOver()
    }

    /// It goes on, and ends with that error unless an earlier one is known.
    mutating func fail(_ error: BusError) { self.error = self.error ?? error }

    /// It ends now, whatever its devices are doing.
    mutating func abandon(_ error: BusError) -> [PhotoStep] {
        fail(error)
        for device in devices { parts[device] = .over }
        return giveUpMovie() + settleCaptured() + finishIfOver()
    }

    /// The device, or its worker, is gone: what it was asked is not answered any more, or with an error.
    mutating func lost(_ device: String, _ error: BusError) -> [PhotoStep] {
        switch parts[device] {
        case .preparing: return prepared(device, .failure(error))
        case .ready:
            parts[device] = .over
            return end(error, keepsCaptured: false)
        case .taking, .processing: return taken(device, .failure(error))
        case .made:
            self.error = self.error ?? error
            parts[device] = .over
            return giveUpMovie() + finishIfOver()
        case .dropping: return dropped(device)
        case .waiting, .over, nil: return []
        }
    }

    /// Devices go by other ids from now on: those by the present ones.
    mutating func rename(_ names: [String: String]) {
        func new(_ device: String) -> String { names[device] ?? device }
        devices = devices.map(new)
        parts = Dictionary(parts.map { (new($0.key), $0.value) }, uniquingKeysWith: { part, _ in part })
        resolutions = Dictionary(
            resolutions.map { device, resolution in
                var resolution = resolution
                resolution.device = new(resolution.device)
                return (new(device), resolution)
            }, uniquingKeysWith: { resolution, _ in resolution })
        captured = Set(captured.map(new))
        for index in photos.indices { photos[index].device = new(photos[index].device) }
    }

    // MARK: The movie of a live photo

    /// The movie has all that belongs to it; or there is none.
    mutating func recorded(_ result: Result<LivePhotoMovie, BusError>) -> [PhotoStep] {
        guard recording == .recording else { return [] }
        switch result {
        case .success(let movie):
            recording = .recorded(movie)
            return storeIfWhole()
        case .failure(let error): return giveUp(error)
        }
    }

    /// Both are stored, or neither.
    mutating func stored(_ result: Result<LivePhotoMovie, BusError>, _ photo: PhotoResult?) -> [PhotoStep] {
        guard recording == .storing else { return [] }
        switch result {
        case .success(let movie):
            recording = .none
            self.movie = movie
            // Where they are is known only now.
            for index in photos.indices where photo?.index == photos[index].index {
                (photos[index].path, photos[index].id) = (photo?.path, photo?.id)
            }
            for device in devices where parts[device] == .made { parts[device] = .over }
            let members: JSONValue = [
                "duration": .number(Double(movie.duration) / 1e9),
                "photoDisplayTime": .number(Double(movie.photoDisplayTime) / 1e9), "livePhotoMovie": movie.json,
            ]
            return [.tell(job: id, .didFinishProcessingLivePhotoToMovieFile, members)] + finishIfOver()
        case .failure(let error): return giveUp(error)
        }
    }

    private mutating func storeIfWhole() -> [PhotoStep] {
        guard case .recorded(let movie) = recording, let device = devices.first, parts[device] == .made else {
            return []
        }
        recording = .storing
        let members: JSONValue = ["duration": .number(Double(movie.duration) / 1e9)]
        return [.tell(job: id, .didFinishRecordingLivePhotoMovie, members), .store(job: id, device: device)]
    }

    // One without the other is nothing, also where the photo was told.
    private mutating func giveUpMovie() -> [PhotoStep] {
        if recording != .none { photos = [] }
        defer { recording = .none }
        return switch recording {
        case .none, .waiting: []
        case .recording, .recorded, .storing: [.unrecord(job: id)]
        }
    }

    // What the device holds back is dropped as well. A movie that is whole may have found no room in the reply.
    private mutating func giveUp(_ error: BusError) -> [PhotoStep] {
        self.error = self.error ?? error
        var steps = giveUpMovie()
        for device in devices where parts[device] == .processing || parts[device] == .made {
            parts[device] = .dropping
            steps.append(.drop(job: id, device: device))
        }
        return steps + finishIfOver()
    }

    // MARK: What is told

    private mutating func beginCapturing() -> [PhotoStep] {
        guard hasBegun, !isCapturing else { return [] }
        isCapturing = true
        return [.tell(job: id, .willCapturePhoto, [:])]
    }

    private mutating func capture(_ device: String) -> [PhotoStep] {
        let steps = beginCapturing()
        captured.insert(device)
        if parts[device] == .taking { parts[device] = .processing }
        let told = steps + settleCaptured()
        guard recording == .waiting else { return told }
        recording = .recording
        return told + [.record(job: id, device: device)]
    }

    /// All that are still to take theirs have done so, and there is one at least.
    private mutating func settleCaptured() -> [PhotoStep] {
        guard !hasCaptured, !captured.isEmpty,
            !devices.contains(where: { parts[$0] == .taking || parts[$0] == .ready || parts[$0] == .preparing })
        else { return [] }
        hasCaptured = true
        return [.tell(job: id, .didCapturePhoto, [:])] + photos.map(told)
    }

    private mutating func process(_ photo: PhotoResult) -> [PhotoStep] {
        let steps = beginCapturing()
        guard !photos.contains(where: { $0.isSameFile(as: photo) }) else { return steps }
        photos.append(photo)
        return steps + (hasCaptured ? [told(photo)] : [])
    }

    private func told(_ photo: PhotoResult) -> PhotoStep {
        .tell(job: id, .didFinishProcessingPhoto, ["photo": photo.json])
    }

    private mutating func finishIfOver() -> [PhotoStep] {
        guard !isOver, parts.values.allSatisfy({ $0 == .over }), recording == .none || recording == .waiting else {
            return []
        }
        isOver = true
        let finished = sorted
        let members: JSONValue = ["error": error?.json ?? .null, "photos": JSONValue(finished.count)]
        let result: Result<PhotoOutcome, BusError>
        if var error {
            if !finished.isEmpty { error.data["photos"] = .array(finished.map(\.json)) }
            result = .failure(error)
        } else {
            result = .success(PhotoOutcome(uniqueID: id, resolutions: resolved, photos: finished, movie: movie))
        }
        return [.tell(job: id, .didFinishCapture, members), .finish(job: id, result)]
    }

    // MARK: Members

    private var resolved: [PhotoResolution] { devices.compactMap { resolutions[$0] } }

    private var sorted: [PhotoResult] {
        let places = Dictionary(
            devices.enumerated().map { ($0.element, $0.offset) }, uniquingKeysWith: { place, _ in place })
        return photos.sorted { left, right in
            (places[left.device] ?? .max, left.rank) < (places[right.device] ?? .max, right.rank)
        }
    }

    /// - Parameter movie: pixels of a live photo's; nil: not known, or it is none.
    public static func resolved(_ resolutions: [PhotoResolution], movie: Dimensions? = nil) -> JSONValue {
        .members([
            "devices": .array(resolutions.map(\.json)),
            "livePhotoMovie": movie.map { ["width": JSONValue($0.width), "height": JSONValue($0.height)] },
        ])
    }

    /// Of how many files.
    static func expected(_ resolutions: [PhotoResolution]) -> Int { resolutions.reduce(0) { $0 + $1.photos } }
}
