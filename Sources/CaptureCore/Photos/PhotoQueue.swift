public import BusProtocol
public import JSON

/// All requests for photos: which of them has its turn, and what is to be done for it.
///
/// A device takes photos for one request at a time; while it makes the files of one, the next may have it. A request
/// over several devices has its turn when all of them are free, and takes them at once, so that none waits for another
/// in a circle; nobody who came later gets a device before it.
public struct PhotoQueue: Sendable {
    /// Requests that wait or run.
    public static let maximum = BusLimits.maxPhotos
    /// Requests whose photos one device makes at a time.
    public static let maximumProcessing = 4

    /// In the order in which they came.
    private var jobs: [PhotoJob] = []

    public init() {}

    public var count: Int { jobs.count }
    /// The requests' ids, in their order.
    public var ids: [String] { jobs.map(\.id) }

    public func job(_ id: String) -> PhotoJob? { jobs.first { $0.id == id } }

    /// Whether the device waits for, prepares, takes or makes a photo.
    public func isBusy(_ device: String) -> Bool {
        jobs.contains { job in job.parts[device].map { $0 != .over } ?? false }
    }

    /// Whether a device is to get ready for a request, and has not answered: what was asked before may still be
    /// ordered.
    public func isPreparing(_ id: String, _ device: String) -> Bool { job(id)?.parts[device] == .preparing }

    // MARK: What happens

    /// A request comes, with devices that are named once each.
    ///
    /// - Parameters:
    ///   - owner: as `willBeginCapture` tells it.
    ///   - isPast: of a moment that is over: it has its turn at once, as it needs no device, and waiting would cost it
    ///     its moment.
    ///   - isLive: of one device, with a movie.
    /// - Throws: `limitExceeded` {limit: "photos", maximum}; `photoSettingsReused` if it is in the queue.
    public mutating func add(
        _ id: String, devices: [String], owner: JSONValue = .null, isPast: Bool = false, isLive: Bool = false
    ) throws(BusError) -> [PhotoStep] {
        guard job(id) == nil else {
            throw BusError(.photoSettingsReused, "The photo '\(id)' is being taken.", ["uniqueID": .string(id)])
        }
        guard jobs.count < Self.maximum else {
            throw BusError(
                .limitExceeded, "\(Self.maximum) photos are waiting or being taken; wait until some are done.",
                ["limit": "photos", "maximum": JSONValue(Self.maximum)])
        }
        jobs.append(PhotoJob(id: id, devices: devices, owner: owner, isPast: isPast, isLive: isLive))
        return startReady()
    }

    /// The answer to `preparePhoto`.
    public mutating func prepared(
        _ id: String, _ device: String, _ result: Result<PhotoResolution, BusError>
    ) -> [PhotoStep] {
        change(id) { $0.prepared(device, result) }
    }

    /// A worker's report of a photo; with `processed` the photo.
    public mutating func progressed(
        _ id: String, _ device: String, _ progress: PhotoProgress, photo: PhotoResult? = nil
    ) -> [PhotoStep] {
        change(id) { $0.progressed(device, progress, photo) }
    }

    /// The answer to `takePhoto`.
    public mutating func taken(
        _ id: String, _ device: String, _ result: Result<[PhotoResult], BusError>
    ) -> [PhotoStep] {
        change(id) { $0.taken(device, result) }
    }

    /// `dropPhoto` was answered, or can't be.
    public mutating func dropped(_ id: String, _ device: String) -> [PhotoStep] {
        change(id) { $0.dropped(device) }
    }

    /// Gives a request up: `cancelled`, `unauthorized`, its owner has gone. What was set for it is put back before it
    /// ends.
    ///
    /// - Parameter keepsCaptured: devices whose pictures are taken finish them; a request that only has such ones goes
    ///   on.
    public mutating func end(_ id: String, _ error: BusError, keepsCaptured: Bool = false) -> [PhotoStep] {
        change(id) { $0.end(error, keepsCaptured: keepsCaptured) }
    }

    /// A request that goes on to its end has failed all the same: what it has in the library is to be there.
    public mutating func fail(_ id: String, _ error: BusError) {
        guard let index = jobs.firstIndex(where: { $0.id == id }) else { return }
        jobs[index].fail(error)
    }

    /// Ends all requests at once, whatever their devices are doing: nothing is waited for any more.
    public mutating func abandon(_ error: BusError) -> [PhotoStep] {
        let steps = jobs.indices.flatMap { jobs[$0].abandon(error) }
        return steps + tidy()
    }

    /// The device, or its worker, has gone: all that it had to do has failed. Requests that wait for their turn stay:
    /// it may come back.
    public mutating func lost(_ device: String, _ error: BusError) -> [PhotoStep] {
        var steps: [PhotoStep] = []
        for index in jobs.indices { steps += jobs[index].lost(device, error) }
        return steps + tidy()
    }

    /// Devices go by other ids from now on: those by the present ones.
    public mutating func rename(_ names: [String: String]) {
        for index in jobs.indices { jobs[index].rename(names) }
    }

    // MARK: Live photos

    /// The answer to ``PhotoStep/record(job:device:)``.
    public mutating func recorded(_ id: String, _ result: Result<LivePhotoMovie, BusError>) -> [PhotoStep] {
        change(id) { $0.recorded(result) }
    }

    /// The answer to ``PhotoStep/store(job:device:)``.
    ///
    /// - Parameter photo: as it is in the library; nil: it is not to be there.
    public mutating func stored(
        _ id: String, _ result: Result<LivePhotoMovie, BusError>, photo: PhotoResult? = nil
    ) -> [PhotoStep] {
        change(id) { $0.stored(result, photo) }
    }

    // MARK: Readiness

    /// How ready a device is, and how many requests wait for it.
    ///
    /// - Parameters:
    ///   - isThere: it is there, and its worker runs.
    ///   - isStreaming: it gives pictures to somebody.
    public func readiness(
        of device: String, isThere: Bool, isStreaming: Bool
    ) -> (readiness: PhotoReadiness, waiting: Int) {
        let waiting = jobs.reduce(0) { $0 + ($1.parts[device] == .waiting ? 1 : 0) }
        guard isThere else { return (.notReady, waiting) }
        if jobs.contains(where: { $0.holds(device) }) { return (.waitingForCapture, waiting) }
        if processing(device) >= Self.maximumProcessing { return (.waitingForProcessing, waiting) }
        if waiting > 0 { return (.waitingForCapture, waiting) }
        return (isStreaming ? .ready : .notRunning, waiting)
    }

    /// For whom the device takes photos, as its request was given; nil: for nobody.
    public func holder(of device: String) -> JSONValue? {
        jobs.first { $0.holds(device) }.flatMap { $0.owner.isNull ? nil : $0.owner }
    }

    // MARK: Turns

    private func processing(_ device: String) -> Int {
        jobs.reduce(0) { $0 + ($1.parts[device] == .processing ? 1 : 0) }
    }

    private func isFree(_ device: String) -> Bool {
        !jobs.contains { $0.holds(device) } && processing(device) < Self.maximumProcessing
    }

    private mutating func change(_ id: String, _ body: (inout PhotoJob) -> [PhotoStep]) -> [PhotoStep] {
        guard let index = jobs.firstIndex(where: { $0.id == id }) else { return [] }
        let steps = body(&jobs[index])
        return steps + tidy()
    }

    private mutating func tidy() -> [PhotoStep] {
        jobs.removeAll(where: \.isOver)
        return startReady()
    }

    private mutating func startReady() -> [PhotoStep] {
        var steps: [PhotoStep] = []
        // Devices that somebody waits for: who comes later waits behind.
        var wanted: Set<String> = []
        for index in jobs.indices where jobs[index].isWaiting {
            let needsNone = jobs[index].isPast
            if needsNone || jobs[index].devices.allSatisfy({ isFree($0) && !wanted.contains($0) }) {
                steps += jobs[index].start()
            } else {
                wanted.formUnion(jobs[index].devices)
            }
        }
        return steps
    }
}
