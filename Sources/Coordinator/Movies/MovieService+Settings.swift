import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `movie.recommendedSettings`
extension MovieService {
    func recommendSettings(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let fileType = call.string("fileType").flatMap(MovieFileType.init) ?? .mp4
            let subject = try settingsSubject(call)
            let all = subject.cameras.map(\.worker) + (subject.microphone.map { [$0] } ?? [])
            whenReady(all[...]) { error in
                if let error { return respond(.failure(error)) }
                respond(
                    .success([
                        "video": subject.cameras.first.flatMap { RecommendedVideo($0.worker) }?.json ?? .null,
                        "audio": subject.microphone.map { RecommendedAudio($0, fileType) }?.json ?? .null,
                    ]))
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func settingsSubject(_ call: Call) throws(BusError) -> MovieSubject {
        guard let id = call.string("session") else { return try reader.subject(call) }
        // Also for a session that does not run, and for any caller.
        let session = try sessions.entry(id).session
        let inputs = session.inputs.compactMap { workers[$0.device] }
        let named = call.string("device")
        let camera = inputs.first {
            $0.device.identity.mediaType == .video && (named == nil || $0.device.id == named)
        }
        guard let camera else {
            throw .invalidParams(named == nil ? "session" : "device", "the session has no such camera")
        }
        var subject = MovieSubject(cameras: [MovieSubject.Camera(worker: camera)], session: session)
        if let microphone = call.string("microphone") {
            subject.microphone = try resolver.worker(microphone, "microphone", .audio)
        } else if call.params["microphone"] == nil {
            subject.microphone = inputs.first { $0.device.identity.mediaType == .audio }
        }
        return subject
    }

    /// Calls the body when each has described its device, or with why one has not.
    private func whenReady(_ handles: ArraySlice<WorkerHandle>, _ body: @escaping (BusError?) -> Void) {
        guard let worker = handles.first else { return body(nil) }
        worker.whenReady(withinMilliseconds: WorkerHandle.patience) { [weak self] in
            guard worker.description != nil else { return body(worker.notReady) }
            self?.whenReady(handles.dropFirst(), body)
        }
    }
}

extension RecommendedVideo {
    /// From the camera's pictures, or its current format; if unknown, the committed one; if none, its table's first.
    init?(_ worker: WorkerHandle) {
        let known = [worker.formatDescription, worker.activeFormat, worker.committed?["activeFormat"]]
        let sizes = known.compactMap(\.self).compactMap(Dimensions.init(json:))
        guard let size = sizes.first ?? worker.formats?.first?.dimensions else { return nil }
        self.init(size, frameRate: worker.frameDuration?.framesPerSecond)
    }
}

extension RecommendedAudio {
    /// As the microphone is; while that isn't known, as it was set.
    init(_ worker: WorkerHandle, _ fileType: MovieFileType) {
        let format = worker.activeFormat ?? worker.committed?["activeFormat"]
        let rate = format?["rate"]?.integer ?? 48000
        let channels = format?["channels"]?.integer ?? 2
        self.init(fileType, rate: Int(clamping: rate), channels: Int(clamping: channels))
    }
}
