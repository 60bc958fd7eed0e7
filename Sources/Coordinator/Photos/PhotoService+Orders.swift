import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import ZeroMQ

/// What the workers of a photo's cameras are ordered, and under which locks.
extension PhotoService {
    /// How long a request waits for a worker that is just starting, milliseconds.
    private static let patience: Int64 = 5000
    /// How long it waits for another client's lock for one call, nanoseconds.
    private static let lockPatience: Int64 = 10_000_000_000
    /// How long before the moment at which several cameras are to begin, nanoseconds: so that each knows of it by then.
    private static let lead: Int64 = 100_000_000

    func begin(_ run: Run) {
        let request = run.request
        guard isWanted(run) else { return }
        if let error = access.refusal(request) { return end(request.id, error) }
        guard request.settings.isLive, let session = request.session else { return beginNow(run) }
        // One that comes as soon as the session runs is not to be without its own picture.
        live.whenReady(session) { [weak self] in
            guard let self, isWanted(run) else { return }
            if let refusal = live.refusal(session) { return end(request.id, refusal) }
            beginNow(run)
        }
    }

    private func beginNow(_ run: Run) {
        guard run.request.settings.changesDevice else { return prepare(run) }
        do throws(BusError) {
            try takeLocks(run)
        } catch {
            end(run.request.id, error)
        }
    }

    /// Begins under the locks that its owner has, and one on all other cameras for just this.
    private func takeLocks(_ run: Run) throws(BusError) {
        let request = run.request
        var free: [PhotoPlace.Device] = []
        for device in request.cameras.map(\.device) {
            guard let lock = locks.table.lock(on: device.id), !lock.isTransient else {
                free.append(device)
                continue
            }
            guard lock.id == request.lockID || lock.holder.isSameProcess(as: request.owner) else {
                throw LockTable.Refusal.busy(device: device.id, holder: lock.holder, queue: 0).error()
            }
            run.fences[device.uniqueID] = lock.fence
        }
        guard !free.isEmpty else { return prepare(run) }
        let refused: Responder = { [weak self] result in
            if case .failure(let error) = result { self?.end(request.id, error) }
        }
        let waits = { (ticket: UInt64) in run.ticket = ticket }
        locks.withTransientLock(
            on: free.map(\.id), for: .ourselves, wait: Self.lockPatience, onWait: waits, then: refused
        ) { [weak self, free] fence, done in
            guard let self, isWanted(run) else { return done(.success([:])) }
            run.ticket = nil
            run.unlock = { done(.success([:])) }
            for device in free { run.fences[device.uniqueID] = fence }
            prepare(run)
        }
    }

    /// Its cameras are still to be got ready.
    private func isWanted(_ run: Run) -> Bool {
        run.request.devices.allSatisfy { queue.isPreparing(run.request.id, $0) }
    }

    private func prepare(_ run: Run) {
        if run.request.isStored, run.request.isAttached, let refusal = access.libraryRefusal(run.request) {
            (run.request.isStored, run.request.notStored) = (false, refusal)
        }
        let (day, time) = LocalTime.today()
        for camera in run.request.cameras {
            let uniqueID = camera.device.uniqueID
            guard let worker = workers.worker(of: uniqueID) else {
                perform(queue.prepared(run.request.id, camera.device.id, .failure(Self.gone(camera.device.id))))
                continue
            }
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? Self.patience : 0) { [weak self] in
                self?.prepare(run, uniqueID, day, time)
            }
        }
    }

    private func prepare(_ run: Run, _ uniqueID: String, _ day: String, _ time: String) {
        let id = run.request.id
        // It may have been given up while its worker came up.
        guard let camera = run.request.camera(uniqueID), queue.isPreparing(id, camera.device.id) else { return }
        if let worker = workers.worker(of: uniqueID), !worker.isRunning || !worker.device.isPlugged {
            return perform(queue.prepared(id, camera.device.id, .failure(worker.notReady)))
        }
        var settings = run.request.settings
        settings.uniqueID = id
        settings.orientation = camera.orientation
        settings.isMirrored = camera.isMirrored
        // The movie is its recorder's.
        settings.isLive = false
        let photo = PhotoOrder(
            job: id, settings: settings, attaches: run.request.isAttached,
            place: run.request.isStored ? access.place(run.request, camera, day: day, time: time) : nil,
            moment: run.request.moment,
            identifier: run.request.identifier)
        let limit = WorkerOrder.preparing(settings, frame: period(run.request.devices))
        order(.preparePhoto(photo), camera.device.id, run, limit) { [weak self] device, result in
            guard let self else { return }
            if case .success(let answer) = result { run.beats[uniqueID] = answer["beat"].flatMap(PhotoBeat.init) }
            let resolution: Result<PhotoResolution, BusError> = result.flatMap { answer in
                Result { () throws(BusError) in try PhotoResolution(json: answer["resolution"] ?? .null) }
            }
            if case .success(let known) = resolution, isTooLarge(known, run) { return end(id, tooLarge) }
            perform(queue.prepared(id, device, resolution))
        }
    }

    /// Whether no reply can hold the files, as is known before the first picture is taken. What goes into the library
    /// as well is taken.
    private func isTooLarge(_ resolution: PhotoResolution, _ run: Run) -> Bool {
        guard run.request.isAttached, !run.request.isStored else { return false }
        run.leastBytes += resolution.leastBytes ?? 0
        return run.leastBytes > maximumReply
    }

    func take(_ run: Run, _ devices: [String]) {
        let at = devices.count > 1 ? moment(run, devices) : nil
        let limit = WorkerOrder.taking(run.request.settings, frame: period(devices)) + run.request.duration / 1_000_000
        for device in devices {
            order(.takePhoto(job: run.request.id, at: at), device, run, limit) { [weak self] device, result in
                guard let self else { return }
                perform(
                    queue.taken(
                        run.request.id, device,
                        result.flatMap { answer in
                            Result { () throws(BusError) in
                                try (answer["photos"]?.array ?? []).map { photo throws(BusError) in
                                    try PhotoResult(json: photo)
                                }
                            }
                        }))
            }
        }
    }

    /// When all of them can begin, as each may just have begun with a frame: on the first one's beat, so that no other
    /// has its nearest frame further from that one's than half its period.
    private func moment(_ run: Run, _ devices: [String]) -> Instant {
        let period = period(devices)
        let earliest = MonotonicClock.now() + max(Self.lead, 2 * period)
        return run.request.cameras.first.flatMap { run.beats[$0.device.uniqueID] }?.frame(from: earliest) ?? earliest
    }

    /// The longest of their frames' times, nanoseconds.
    private func period(_ devices: [String]) -> Int64 {
        let rates = devices.compactMap { workers[$0]?.status["frameRate"]?.double }.filter { $0 > 0 }
        return Int64(1e9 / max(rates.min() ?? FrameDuration.usual.framesPerSecond, 0.1))
    }

    /// - Parameter completion: also gets the device's id by then.
    func order(
        _ action: WorkerOrder.Action, _ device: String, _ run: Run, _ limit: Int64 = WorkerOrder.longest,
        _ completion: @escaping (_ device: String, Result<JSONValue, BusError>) -> Void
    ) {
        guard let uniqueID = run.request.cameras.first(where: { $0.device.id == device })?.device.uniqueID,
            let worker = workers.worker(of: uniqueID)
        else { return completion(device, .failure(Self.gone(device))) }
        worker.order(action, fence: run.fences[uniqueID], withinMilliseconds: limit) { [weak self] result in
            guard let self else { return }
            // Of one that has died, also where the request has ended before.
            if case .failure(let error) = result, error.reason == .workerCrashed {
                if run.request.isStored { tellLeft() }
                // One that only didn't answer in time may be about it still, and have the camera for that.
                worker.order(.dropPhoto(job: run.request.id))
            }
            completion(run.request.camera(uniqueID)?.device.id ?? device, result)
        }
    }

    static func gone(_ device: String) -> BusError {
        BusError(
            .deviceDisconnected,
            "\(device) is not connected any more, or has another "
                + "name.", ["device": .string(device)])
    }
}
