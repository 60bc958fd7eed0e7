import BusProtocol
import BusServer
import CaptureCore
import JSON

/// The devices of a movie, or of each movie of a rig.
struct MovieSubject {
    struct Camera {
        var worker: WorkerHandle
        /// As set on the session's connection.
        var orientation: CaptureOrientation?
        var isMirrored: Bool?
        var stabilization = VideoStabilizationMode.off
    }

    var cameras: [Camera] = []
    var microphone: WorkerHandle?
    var rig: String?
    var session: CaptureSession?
    /// Without permission for one medium, the movie has black pictures or silence there.
    var isBlankWhenDenied = false
    /// Media without permission, which are blank.
    var denied: Set<AuthorizationMedia> = []

    /// A movie of each camera is asked for, all begun together.
    var isOfEach = false

    var media: Set<AuthorizationMedia> {
        Set((cameras.isEmpty ? [] : [.video]) + (microphone == nil ? [] : [.audio]) + [.libraryAdd])
    }
}

/// From the params of a call to the devices of a movie, and whether the caller may record them.
extension MovieRequestReader {
    /// The devices that a call names.
    func subject(_ call: Call) throws(BusError) -> MovieSubject {
        let named = ["session", "rig"].filter { call.params[$0] != nil }
        guard named.count < 2, named != ["rig"] || call.params["device"] == nil else {
            throw .invalidParams(named.last ?? "rig", "can't be combined; name a device, a session or a rig")
        }
        let isOfEach = call.params["eachCamera"] == true
        guard !isOfEach || named == ["session"] && call.params["device"] == nil && call.params["url"] == nil else {
            throw .invalidParams("eachCamera", "goes only with a session, and without device and url")
        }
        var subject = MovieSubject(isOfEach: isOfEach)
        if let session = call.string("session") {
            try take(session, call, into: &subject)
        } else if let rig = call.string("rig") {
            guard let devices = try rigs.devices(of: rig) else {
                throw BusError(
                    .rigNotFound, "No rig is called '\(rig.prefix(64))'.", ["rig": .string(rig)])
            }
            (subject.rig, subject.isOfEach) = (rig, true)
            for device in devices {
                subject.cameras.append(MovieSubject.Camera(worker: try resolver.worker(device, "rig", .video)))
            }
        } else if let device = call.string("device") {
            let worker = try resolver.worker(device, "device", nil)
            if worker.device.identity.mediaType == .audio {
                subject.microphone = worker
            } else {
                subject.cameras = [MovieSubject.Camera(worker: worker)]
            }
        } else {
            throw .invalidParams("device", "is missing; pass device, session or rig")
        }
        if let microphone = call.string("microphone") {
            guard !subject.cameras.isEmpty else {
                throw .invalidParams("microphone", "can't be added: the device is itself a microphone")
            }
            subject.microphone = try resolver.worker(microphone, "microphone", .audio)
        }
        return subject
    }

    /// A session's cameras, as the connections to its movie output have them, and its microphone.
    private func take(_ id: String, _ call: Call, into subject: inout MovieSubject) throws(BusError) {
        let session = try sessions.entry(id).session
        try session.check(permission.editor(call.caller), to: "record it")
        guard call.params["detached"] == nil else {
            throw .invalidParams("detached", "can't be used with a session: its movie ends with the session")
        }
        guard let output = session.outputs.first(where: { $0.kind == .movie }) else {
            throw .invalidParams(
                "session", "it has no movie output: session.configure {addOutput: \"movie\"} adds one")
        }
        guard session.run.state == .running else {
            throw BusError(
                .sessionNotRunning, "The session \(id) is \(session.run.state.rawValue); session.start starts it.",
                ["session": .string(id)])
        }
        let media = { (device: String) in self.workers[device]?.device.identity.mediaType }
        let joined = session.connections(of: output.id).filter(\.isEnabled)
        let (named, cameras) = (call.string("device"), joined.filter { media($0.input) == .video })
        guard named != nil || cameras.count < 2 || subject.isOfEach else {
            throw .invalidParams(
                "device", "is needed: the session has several cameras; movie.start with eachCamera records all")
        }
        if call.params["microphone"] == nil, let microphone = joined.first(where: { media($0.input) == .audio }) {
            subject.microphone = try resolver.worker(microphone.input, "session", .audio)
        }
        subject.session = session
        subject.isBlankWhenDenied = output.isBlankWhenDenied
        for connection in cameras where named == nil || connection.input == named {
            let worker = try resolver.worker(connection.input, "session", .video)
            subject.cameras.append(
                MovieSubject.Camera(
                    worker: worker, orientation: connection.videoOrientation,
                    isMirrored: connection.videoMirrored.isOn(position: worker.device.identity.position),
                    stabilization: connection.preferredVideoStabilizationMode))
        }
        let needsCamera = named != nil || subject.isOfEach
        guard !subject.cameras.isEmpty || !needsCamera && subject.microphone != nil else {
            throw .invalidParams(named == nil ? "session" : "device", "its movie output has no such camera")
        }
    }

    /// Checks permission for the media of a movie, and asks the administrators for those without a decision. Notes
    /// media without permission where black pictures or silence may replace them.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func checkMayRecord(_ caller: Caller, _ subject: inout MovieSubject) throws(BusError) {
        let (uid, gid) = (caller.peer.uid, caller.peer.gid)
        let media = subject.media
        let missing = AuthorizationMedia.allCases.filter {
            media.contains($0) && permission.authorization(of: caller, $0) != .authorized
        }
        for media in missing {
            permission.tried(uid: uid, gid: gid, pid: caller.peer.pid, media, program: clients.programName(caller))
        }
        let isBlank = subject.isBlankWhenDenied
        if let media = missing.first(where: { !isBlank || $0 == .libraryAdd }) {
            throw permission.refusal(caller, media)
        }
        // Without any permitted device there is no movie.
        if let media = missing.first, Set(missing) == subject.media.subtracting([.libraryAdd]) {
            throw permission.refusal(caller, media)
        }
        subject.denied = Set(missing)
    }
}
