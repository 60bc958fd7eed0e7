import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `authorization.*`
extension Coordinator {
    static let authorizationServices: [String: Service] = [
        "authorization.status": { $0.authorizationStatus }, "authorization.request": { $0.requestAuthorization },
        "authorization.list": { $0.listAuthorizations }, "authorization.grant": { $0.grant },
        "authorization.deny": { $0.deny }, "authorization.reset": { $0.resetAuthorization },
    ]

    /// What the caller may do, by medium.
    func authorizations(of caller: Caller, _ media: [AuthorizationMedia] = AuthorizationMedia.allCases) -> JSONValue {
        .object(
            Dictionary(
                media.map { ($0.rawValue, .string(permission.authorization(of: caller, $0).rawValue)) },
                uniquingKeysWith: { first, _ in first }))
    }

    /// Refuses what changes anything to who may not; by the media of the devices that the params name. What names none, or names them
    /// by a rig, a session or a profile, is about cameras.
    func checkPermission(_ method: Method, _ caller: Caller, _ params: JSONValue) throws(BusError) {
        guard method.needs == .permission else { return }
        var devices = params["device"]?.string.map { [$0] } ?? []
        devices += params["devices"]?.string.map { [$0] } ?? params["devices"]?.array?.compactMap(\.string) ?? []
        devices += params["changes"]?.array?.compactMap { $0["device"]?.string } ?? []
        let media = devices.map { fleet.workers[$0]?.device.identity.authorizationMedia ?? .video }
        try permission.authorize(caller, media.isEmpty ? [.video] : Set(media))
    }

    func authorizationStatus(_ call: Call, _ respond: @escaping Responder) {
        let media = call.media.isEmpty ? AuthorizationMedia.allCases : call.media
        let asked = permission.book.questions[call.caller.peer.uid] ?? [:]
        respond(
            .success([
                "uid": JSONValue(call.caller.peer.uid), "role": .string(permission.role(of: call.caller).rawValue),
                "authorization": authorizations(of: call.caller, media),
                "asked": JSONValue(media.filter { asked[$0] != nil }.map(\.rawValue)),
            ]))
    }

    func requestAuthorization(_ call: Call, _ respond: @escaping Responder) {
        guard let media = call.media.first else { return respond(.failure(.invalidParams("media", "is needed"))) }
        let reason = (call.string("reason") ?? "")
        // An administrator reads it on a terminal.
        guard reason.unicodeScalars.allSatisfy({ !$0.properties.isDefaultIgnorableCodePoint && $0.isPrintable }) else {
            return respond(.failure(.invalidParams("reason", "is one line of text, without control characters")))
        }
        guard reason.unicodeScalars.contains(where: { !$0.properties.isWhitespace }) else {
            return respond(.failure(.invalidParams("reason", "say what for: an administrator reads it")))
        }
        let ticket = permission.ask(
            call.caller, startTime: holder(call.caller).startTime, media, reason: reason,
            program: programName(call.caller), wait: call.duration("wait") ?? 0
        ) { result in
            respond(
                result.map { ["media": .string(media.rawValue), "status": .string($0.rawValue)] })
        }
        if let ticket, let key = call.key {
            cancellations[key] = { [weak self] in self?.permission.cancel(ticket) }
        }
    }

    func listAuthorizations(_ call: Call, _ respond: @escaping Responder) {
        let book = permission.book
        var requests: [(since: Int64, uid: UInt32, json: JSONValue)] = []
        for (uid, questions) in book.questions {
            for (media, question) in questions {
                requests.append(
                    (
                        question.since, uid,
                        [
                            "uid": JSONValue(uid), "media": .string(media.rawValue),
                            "reason": question.reason.map(JSONValue.string) ?? .null, "pid": JSONValue(question.pid),
                            "program": .string(question.program), "since": JSONValue(question.since),
                        ]
                    ))
            }
        }
        var decisions: [JSONValue] = []
        for (uid, decided) in book.decisions.sorted(by: { $0.key < $1.key }) {
            for media in AuthorizationMedia.allCases {
                guard let decision = decided[media] else { continue }
                decisions.append([
                    "uid": JSONValue(uid), "media": .string(media.rawValue),
                    "status": .string(decision.status.rawValue), "once": .bool(decision.isOnce),
                    "by": JSONValue(decision.by), "since": JSONValue(decision.since),
                ])
            }
        }
        requests.sort { ($0.since, $0.uid) < ($1.since, $1.uid) }
        respond(.success(["requests": .array(requests.map(\.json)), "decisions": .array(decisions)]))
    }

    func grant(_ call: Call, _ respond: @escaping Responder) { decide(call, isGranted: true, respond) }

    func deny(_ call: Call, _ respond: @escaping Responder) { decide(call, isGranted: false, respond) }

    private func decide(_ call: Call, isGranted: Bool, _ respond: @escaping Responder) {
        let (uid, media) = (call.uid, call.media)
        permission.decide(
            uid: uid, media, isGranted: isGranted, isOnce: call.params["once"]?.bool ?? false, by: call.caller
        ) { result in
            respond(result.map { Self.told($0, Self.decided(uid, media)) })
        }
    }

    func resetAuthorization(_ call: Call, _ respond: @escaping Responder) {
        let uid = call.uid
        permission.reset(uid: uid, call.media.isEmpty ? AuthorizationMedia.allCases : call.media, by: call.caller) {
            media, isKept in respond(.success(Self.told(isKept, Self.decided(uid, media))))
        }
    }

    private static func decided(_ uid: UInt32, _ media: [AuthorizationMedia]) -> JSONValue {
        ["uid": JSONValue(uid), "media": JSONValue(media.map(\.rawValue))]
    }

    /// What the caller's program calls itself.
    func programName(_ caller: Caller) -> String {
        clientNames[caller.connection] ?? ProcessTable.name(of: caller.peer.pid) ?? "unknown"
    }

    // MARK: Enforcement

    /// Has all who see to it know who may do what.
    func connectPermission() {
        permission.observe { [weak self] in self?.permissionChanged() }
        fleet.doors = { [weak self] in self?.permission.book.doors($0.authorizationMedia) }
        fleet.onRefused = { [weak self] device, uid, gid, pid in
            self?.permission.tried(
                uid: uid, gid: gid, pid: pid, device.authorizationMedia,
                program: ProcessTable.name(of: pid) ?? "unknown")
        }
        fleet.onSetRefused = { [weak self] uid, gid, pid in
            self?.permission.tried(
                uid: uid, gid: gid, pid: pid, .video, program: ProcessTable.name(of: pid) ?? "unknown")
        }
        // Before any matcher is started.
        matchers.admit(permission.book.doors(.video))
    }

    private func permissionChanged() {
        guard !isStopping else { return }
        for worker in fleet.workers.values { admit(worker) }
        matchers.admit(permission.book.doors(.video))
        endUnauthorized()
    }

    /// Tells a worker who may come in.
    func admit(_ worker: WorkerHandle) {
        worker.order(.admit(permission.book.doors(worker.device.identity.authorizationMedia)))
    }

    /// Ends what those have who may not change their devices any more: locks, waits for them, sessions, sources, and what they have set going.
    func endUnauthorized() {
        locks.endUnauthorized { [self] in isUnauthorized($0, $1) }
        sessions.permissionChanged()
        exposures.endUnauthorized { [self] holder, uniqueID in
            fleet.worker(of: uniqueID).map { isUnauthorized(holder, [$0.device.id]) } ?? false
        }
        for worker in fleet.workers.values { judgeZoom(worker) }
        movies.review()
        // First those that may not be taken: of them it is not told that a session is otherwise.
        photos.review()
        reviewLivePhotos()
        // Photos that were taken before.
        keptAnswers.forget { [permission] peer in
            !permission.mayKeep(uid: peer.uid, gid: peer.gid, .video)
        }
        sources.deleteUnauthorized { [self] in !permission.mayChange(uid: $0.uid, gid: $0.gid, .video) }
    }

    func isUnauthorized(_ holder: LockHolder, _ devices: [String]) -> Bool {
        devices.contains { device in
            guard let identity = fleet.workers[device]?.device.identity else { return false }
            return !permission.mayChange(uid: holder.uid, gid: holder.gid, identity.authorizationMedia)
        }
    }
}

extension Coordinator.Call {
    /// The media that are named; a bare string is one.
    fileprivate var media: [AuthorizationMedia] {
        let named = strings("media").compactMap(AuthorizationMedia.init)
        return AuthorizationMedia.allCases.filter(named.contains)
    }

    // The method's schema sees to it that there is one.
    fileprivate var uid: UInt32 { params["uid"]?.integer.flatMap { UInt32(exactly: $0) } ?? .max }
}

extension DeviceIdentity {
    /// What is needed to see or hear the device.
    var authorizationMedia: AuthorizationMedia { mediaType == .audio ? .audio : .video }
}

extension Unicode.Scalar {
    fileprivate var isPrintable: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse, .format: false
        default: true
        }
    }
}
