import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// From the params of `movie.start` and `take.record` to checked requests.
final class MovieRequestReader {
    let resolver: DeviceResolver
    let rigs: RigRegistry
    let sessions: SessionRegistry
    let workers: WorkerSupervisor
    let permission: AuthorizationService
    let clients: ClientRegistry
    private let places: RecordingPlaces

    init(
        _ resolver: DeviceResolver, _ rigs: RigRegistry, _ sessions: SessionRegistry, _ workers: WorkerSupervisor,
        _ permission: AuthorizationService, _ clients: ClientRegistry, _ places: RecordingPlaces
    ) {
        self.resolver = resolver
        self.rigs = rigs
        self.sessions = sessions
        self.workers = workers
        self.permission = permission
        self.clients = clients
        self.places = places
    }

    /// One request for each camera.
    func requests(_ call: Call, _ subject: MovieSubject) throws(BusError) -> [MovieRequest] {
        let owner = subject.session?.owner ?? clients.holder(call.caller)
        let isOwn = call.caller.peer.uid == CurrentProcess.uid
        let (day, time) = LocalTime.today()
        let main = subject.rig ?? subject.cameras.first?.worker.device.id ?? subject.microphone?.device.id ?? "movie"
        let ids = (0..<max(1, subject.cameras.count)).map { _ in hexadecimal(randomBytes(8)) }
        let url: StreamURL?
        let target: MoviePlace.Target
        if let text = call.string("url") {
            let stream = try places.current.stream(text)
            try MovieOptions.checkIsOfStream(call.params, stream.scheme)
            (url, target) = (stream, MoviePlace.Target(path: "", fileType: .mp4, root: nil))
        } else {
            url = nil
            target = try places.current.target(
                name: call.string("name"), path: call.string("path"),
                fileType: call.string("fileType").flatMap(MovieFileType.init), day: day,
                newName: "\(main)-\(time)-\(ids[0].prefix(8))", isOwn: isOwn)
        }
        let wish = try MovieOptions(
            call.params, fileType: target.fileType, hasSound: subject.microphone != nil,
            minFreeDiskSpace: url == nil ? places.minimumFree : nil)
        let isDetached = subject.session?.isDetached ?? wish.isDetached
        guard isDetached || (owner.pid > 0 && owner.startTime != nil) else {
            throw .invalidParams(
                "detached", "must be true for a process that the bus can't see (pid 0 in bus.hello)")
        }
        var note = RunningMovie.Note(isDetached: isDetached, continuesAfterCrash: wish.continuesAfterCrash)
        note.isBlankWhenDenied = subject.isBlankWhenDenied
        let take = wish.take ?? hexadecimal(randomBytes(4))
        let cameras: [MovieSubject.Camera?] = subject.cameras.isEmpty ? [nil] : subject.cameras
        return zip(ids, cameras).map { id, recorded in
            let camera = recorded?.worker
            let file = subject.isOfEach ? target.marked(camera?.device.id ?? "sound") : target
            var request = MovieRequest(
                movie: id, path: file.path, url: url, library: url == nil ? places.current.library : nil,
                camera: camera.map(MovieRequest.Device.init),
                microphone: subject.microphone.map(MovieRequest.Device.init), fileType: target.fileType,
                video: wish.video, audio: wish.audio, fragmentInterval: wish.fragmentInterval,
                frameRate: wish.frameRate, limits: wish.limits, beginsOnOrder: subject.isOfEach,
                orientation: (wish.orientation ?? recorded?.orientation)?.rotationAngle,
                mirrored: wish.isMirrored ?? recorded?.isMirrored, take: take, session: subject.session?.id,
                rig: subject.rig, owner: owner, note: note.json)
            request.root = file.root
            request.isLibraryShared = places.isShared
            if subject.denied.contains(.video), let camera {
                let video = RecommendedVideo(camera)
                // As its pictures are shown later, if they may be seen then.
                let turn = PictureOrientation(described: camera.formatDescription)
                    .followed(by: PictureOrientation(quarters: (request.orientation ?? 0) / 90, isMirrored: false))
                request.blank.picture = turn.turned(
                    Dimensions(width: video?.width ?? 640, height: video?.height ?? 480))
                request.blank.frameDuration = camera.frameDuration
            }
            if subject.denied.contains(.audio), let microphone = subject.microphone {
                // Also for a microphone that has not been described yet.
                let format = microphone.activeFormat ?? microphone.committed?["activeFormat"]
                request.blank.sound = BlankMedia.Sound(
                    rate: min(384_000, max(4000, Int(clamping: format?["rate"]?.integer ?? 48000))),
                    channels: min(8, max(1, Int(clamping: format?["channels"]?.integer ?? 2))))
            }
            return request
        }
    }
}

extension MovieRequest.Device {
    init(_ worker: WorkerHandle) {
        let identity = worker.device.identity
        self.init(id: worker.device.id, uniqueID: identity.uniqueID, name: identity.localizedName)
    }
}
