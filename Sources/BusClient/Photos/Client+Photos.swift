public import JSON
import LinuxIO

extension Client {
    /// How long photos may take: their cameras may have to begin to stream, and to settle.
    public static let photoTimeout = Duration.seconds(120)

    /// What a live photo shows of the time before it, and of the time after it, at most.
    public static let livePhotoReach = Duration.milliseconds(1500)

    // How long the stages that were told before the answer may come after it: they come by another socket.
    private static let stageDelay = Duration.seconds(2)

    /// Takes photos: one of a camera, or one of each of several at the same moment, or a bracket or burst of each.
    ///
    /// A call that is given up, because its time is over or its task was cancelled, tells the bus, which then takes no
    /// photo that it has not begun. It is not repeated by itself when the bus ends meanwhile, as the moment would be
    /// another one.
    ///
    /// - Parameters:
    ///   - wishes: the params of `photo.capture`: device, devices, session or rig; settings {uniqueID, format, raw,
    ///     quality, flash, redEyeReduction, stabilization, highResolution, maxPhotoDimensions, orientation, mirrored,
    ///     turned, thumbnail, bracket, burst, interval, ago, livePhoto}, each set of which is for one call; deliver
    ///     (`reply`, `library`; absent: into the library where the bus has one); name; lock. A `livePhoto` is of a
    ///     running session, whose photo output has `livePhotoCaptureEnabled`, and of one camera; it takes no
    ///     orientation and no mirrored, as its session's connection has them.
    ///   - onStage: gets each stage as it comes, the last one before this returns; called from one task.
    /// - Throws: ``ClientError/refused(_:)`` with `photoSettingsReused`, `photoFormatUnavailable`, `momentNotHeld`,
    ///   `controlUnsupported`, `deviceBusy`,
    ///   `sessionNotRunning`, `limitExceeded`, `diskFull`, `recordingInProgress`, `unauthorized`, `interrupted`,
    ///   `workerCrashed` or
    ///   `deviceDisconnected`.
    public func capturePhoto(
        _ wishes: [String: JSONValue], timeout: Duration = photoTimeout,
        onStage: (@Sendable (PhotoStage) -> Void)? = nil
    ) async throws(ClientError) -> PhotoCapture {
        guard let onStage else { return try await capture(wishes, timeout) }
        var (wishes, settings) = (wishes, wishes["settings"]?.object ?? [:])
        let uniqueID = settings["uniqueID"]?.string ?? hexadecimal(randomBytes(16))
        settings["uniqueID"] = .string(uniqueID)
        wishes["settings"] = .object(settings)
        let stages = try await photoStages(uniqueID, timeout: timeout)
        let telling = Task { while let stage = try await stages.next() { onStage(stage) } }
        let outcome: Result<PhotoCapture, ClientError>
        do throws(ClientError) {
            outcome = .success(try await capture(wishes, timeout))
        } catch {
            outcome = .failure(error)
        }
        // Who has given up waits no more.
        await stages.finish(within: Task.isCancelled ? .zero : Self.stageDelay)
        _ = await telling.result
        return try outcome.get()
    }

    private func capture(
        _ wishes: [String: JSONValue], _ timeout: Duration
    ) async throws(ClientError) -> PhotoCapture {
        try PhotoCapture(try await cancellableRequest("photo.capture", .object(wishes), timeout: timeout))
    }

    /// Follows photos that are to be taken, by this program or another one; on return the subscription is in force.
    ///
    /// - Parameter uniqueID: of their settings.
    public func photoStages(
        _ uniqueID: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> PhotoStages {
        PhotoStages(uniqueID, try await watch([PhotoStages.topic(uniqueID)], timeout: timeout))
    }

    /// Waits until a session's photo output holds what a live photo shows of the time before it.
    ///
    /// - Parameters:
    ///   - id: the session's.
    ///   - patience: how long to wait for that.
    /// - Returns: how much is held: less than ``livePhotoReach`` where the time was over before, zero where the session
    ///   makes no live photos, or is not there.
    /// - Throws: ``ClientError/cancelled``, or what keeps the bus's state from being followed.
    public func livePhotoPast(
        ofSession id: String, within patience: Duration, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Duration {
        let topic = "state/session/\(id)/"
        let observer = try await observe([topic], timeout: timeout)
        let waiting = Task { () async -> ClientError? in
            do throws(ClientError) {
                try await observer.wait(for: topic) { Self.pastHeld($0).map { $0 >= Self.livePhotoReach } ?? true }
                return nil
            } catch {
                return error
            }
        }
        let limit = Task {
            try await Task.sleep(for: patience)
            waiting.cancel()
        }
        defer { limit.cancel() }
        let error = await withTaskCancellationHandler {
            await waiting.value
        } onCancel: {
            waiting.cancel()
        }
        if Task.isCancelled { throw .cancelled }
        if let error, error != .cancelled { throw error }
        return Self.pastHeld(observer[topic]) ?? .zero
    }

    // Of a session's state; nil: it makes no live photos.
    private static func pastHeld(_ session: JSONValue?) -> Duration? {
        let outputs = session?["outputs"]?.array ?? []
        guard let output = outputs.first(where: { $0["livePhotoCaptureEnabled"] == true }) else { return nil }
        return .milliseconds(max(0, output["livePhotoPast"]?.integer ?? 0))
    }
}
