import BusProtocol
import BusServer
import CaptureCore
import JSON

/// How ready cameras and sessions are to take photos: in `state/device/<id>/` and `state/session/<id>/`.
extension PhotoService: DevicePhotoState, SessionPhotoSource, MoviePhotoState {
    func publishReadiness(_ devices: [String]) {
        guard !lifecycle.isStopping else { return }
        for device in devices {
            if let worker = workers[device] { publisher.publish(worker) }
            for (id, entry) in sessions.entries where entry.session.input(device) != nil {
                if entry.session.outputs.contains(where: { $0.kind == .photo }) { sessions.publish(id) }
            }
        }
    }

    /// A camera may have reported another scene: publishes the sessions that watch it.
    func sceneChanged(_ device: String, _ scene: JSONValue?) {
        guard scenes[device] ?? .null != scene ?? .null else { return }
        scenes[device] = scene
        for (id, entry) in sessions.entries where entry.session.watchesScene(of: device) { sessions.publish(id) }
    }

    /// What the scene asks of a session's photos; of several cameras, what any of them sees.
    private func sceneMembers(_ session: CaptureSession, _ handles: [WorkerHandle]) -> [String: JSONValue] {
        let settings = session.outputs.first { $0.kind == .photo }?.sceneMonitoring ?? SceneMonitor.Settings()
        func sees(_ name: String) -> Bool { handles.contains { $0.status["scene"]?[name] == true } }
        let isFlashScene = settings.flash == .on || settings.flash == .auto && sees("flash")
        return [
            "isFlashScene": .bool(isFlashScene),
            "isStillImageStabilizationScene": .bool(settings.stabilization && sees("stabilization")),
        ]
    }

    /// `photo` of `state/device/<id>/`: {readiness, waiting, owner?}.
    func member(of worker: WorkerHandle) -> JSONValue {
        let (readiness, waiting) = self.readiness(of: worker)
        return .members([
            "readiness": .string(readiness.rawValue), "waiting": JSONValue(waiting),
            "owner": holder(of: worker.device.id),
        ])
    }

    /// What a session's photo output can do now: {availablePhotoCodecTypes, availableRawPhotoPixelFormatTypes,
    /// supportedMaxPhotoDimensions, readiness, isFlashScene, isStillImageStabilizationScene, livePhotoCaptureSupported,
    /// livePhotoPast?}. Of several cameras, what all of them can do.
    func members(of session: CaptureSession) -> [String: JSONValue] {
        let handles = workers.photoConnections(of: session).compactMap { workers[$0.input] }
        let formats = handles.map { worker in
            (worker.status["activeFormat"]?["pixelFormat"]?.string).flatMap { PixelFormat($0) }
        }
        func common<Value: Hashable>(_ lists: [[Value]]) -> [Value] {
            guard let first = lists.first else { return [] }
            return first.filter { value in lists.allSatisfy { $0.contains(value) } }
        }
        let codecs = common(formats.map { $0?.photoCodecs ?? [] })
        let raws = common(formats.map { $0?.rawPhotoFormats ?? [] })
        let order: [PhotoReadiness] = [.notReady, .waitingForCapture, .waitingForProcessing, .notRunning, .ready]
        let readiness = Set(handles.map { self.readiness(of: $0).readiness })
        let least = session.run.state == .running ? order.first(where: readiness.contains) : nil
        let members: [String: JSONValue] = [
            "availablePhotoCodecTypes": JSONValue(codecs.map(\.rawValue)),
            "availableRawPhotoPixelFormatTypes": JSONValue(raws.map(\.name)),
            "supportedMaxPhotoDimensions": .array(common(handles.map(\.stillSizes)).map(\.json)),
            "readiness": .string((least ?? .notRunning).rawValue),
        ]
        return members.merging(sceneMembers(session, handles)) { $1 }.merging(liveMembers(of: session)) { $1 }
    }

    /// The members of a session's photo output for live photos: {livePhotoCaptureSupported, livePhotoPast?}.
    private func liveMembers(of session: CaptureSession) -> [String: JSONValue] {
        let obstacle = planner.obstacle(session)
        var members: [String: JSONValue] = [
            "livePhotoCaptureSupported": .members([
                "supported": .bool(obstacle == nil), "why": obstacle.map(JSONValue.string),
            ])
        ]
        members["livePhotoPast"] = live.past(of: session.id).map { JSONValue($0) }
        return members
    }

    /// The device is gone.
    func forgetScene(_ device: String) { scenes[device] = nil }
}

extension WorkerHandle {
    /// What a photo's size may be now; empty: its present worker has not opened it yet.
    fileprivate var stillSizes: [Dimensions] {
        guard let formats, let format = try? activeFormat.map({ try FormatSelection(json: $0, path: "") }) else {
            return []
        }
        let duration = status["frameDuration"]?.string.flatMap { FrameDuration($0) }
        var all = formats
        // What the format promises beyond the table.
        if var still = formats.first(where: { $0.isRow(of: format) }),
            let promised = still.traits.highResolutionStillImageDimensions,
            !formats.contains(where: { $0.dimensions == promised })
        {
            still.dimensions = promised
            all.append(still)
        }
        return StillSizes(of: all, present: format, frameDuration: duration).all
    }
}
