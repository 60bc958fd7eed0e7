import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `session.create`, `configure`, `canAdd`, `start`, `stop`, `delete`, `get`, `list`, `switchCamera`
final class SessionService: MethodService {
    private let sessions: SessionRegistry
    private let access: SessionAccess
    private let permission: AuthorizationService
    private let clients: ClientRegistry
    private let resolver: DeviceResolver
    private let workers: WorkerSupervisor
    private let locks: LockService
    private let pressures: PressureRegistry

    init(
        _ sessions: SessionRegistry, _ access: SessionAccess, _ permission: AuthorizationService,
        _ clients: ClientRegistry, _ resolver: DeviceResolver, _ workers: WorkerSupervisor, _ locks: LockService,
        _ pressures: PressureRegistry
    ) {
        self.sessions = sessions
        self.access = access
        self.permission = permission
        self.clients = clients
        self.resolver = resolver
        self.workers = workers
        self.locks = locks
        self.pressures = pressures
    }

    var methods: [String: Handler] {
        [
            "session.create": .plain(create), "session.configure": .plain(configure), "session.canAdd": .plain(canAdd),
            "session.start": .plain(start), "session.stop": .plain(stop), "session.delete": .plain(delete),
            "session.get": .plain(get), "session.list": .plain(list), "session.switchCamera": .plain(switchCamera),
        ]
    }

    private func create(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try access.check(call.caller)
            let owner = clients.holder(call.caller)
            // Its reply was lost with the coordinator that made it.
            if let made = sessions.made(for: call.digest, by: owner) { return respond(.success(try reply(made.id))) }
            var session = CaptureSession(
                id: hexadecimal(randomBytes(4)), name: call.string("name"), owner: owner,
                isDetached: call.params["detached"]?.bool ?? false, since: MonotonicClock.now(), request: call.digest)
            var actions: [(action: SessionAction, path: String)] = []
            if let preset = call.params["preset"] {
                actions.append((.preset(try SessionAction.preset(preset, "preset")), "preset"))
            }
            if let priority = call.params["priority"] {
                actions.append((.priority(try SessionAction.priority(priority, "priority")), "priority"))
            }
            let outputs = call.params["outputs"]?.array ?? ["videoData"]
            if let inputs = call.params["inputs"]?.array {
                for (index, input) in inputs.enumerated() {
                    let path = "inputs[\(index)]"
                    actions += try resolver.expanded(.addInput(try SessionAction.input(input, path)), path)
                }
            } else {
                for device in defaultInputs(for: outputs) {
                    actions.append((.addInput(SessionInput(device: device)), "inputs"))
                }
            }
            for (index, output) in outputs.enumerated() {
                let path = "outputs[\(index)]"
                actions.append((try SessionAction.parse(["addOutput": output], path: path), path))
            }
            try access.checkPriority(call.caller, session, actions.map(\.action))
            // What nobody has named is not refused.
            let isNamed = call.params["outputs"] != nil
            try session.configure(actions, in: isNamed ? surroundings : resolver.surroundings)
            try access.check(call.caller, session)
            try sessions.add(session)
            access.ask(call.caller, session)
            respond(.success(try reply(session.id)))
        } catch {
            respond(.failure(error))
        }
    }

    private func configure(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try access.check(call.caller)
            let entry = try ownSession(call)
            guard entry.trial == nil else { throw Self.isSwitching(entry) }
            var actions: [(action: SessionAction, path: String)] = []
            for (index, action) in (call.params["actions"]?.array ?? []).enumerated() {
                let path = "actions[\(index)]"
                actions += try resolver.expanded(try SessionAction.parse(action, path: path), path)
            }
            try access.checkPriority(call.caller, entry.session, actions.map(\.action))
            let surroundings = surroundings
            let lockID = try lockID(call)
            let live = entry.session.photoOutput?.livePhoto
            try sessions.change(entry.session.id, isChecked: true) { session throws(BusError) in
                session.lockID = lockID ?? session.lockID
                try session.configure(actions, in: surroundings)
                try access.check(call.caller, session)
            }
            access.ask(call.caller, entry.session)
            livePhotosConfigured(entry.session, before: live)
            if lockID != nil { sessions.reviewAll(entry) }
            // The change is made; whether the session can run with it is in its state.
            replyWhenSettled(entry.session.id, isDone: true, respond)
        } catch {
            respond(.failure(error))
        }
    }

    private func canAdd(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let session = try sessions.entry(call.string("session") ?? "").session
            let change = try change(call.params["action"] ?? .null, call.caller)
            do throws(BusError) {
                let changed = try change(session)
                if session.run.isActive { try sessions.checkBandwidth(changed) }
                respond(.success(["can": true, "why": .null, "reason": .null]))
            } catch {
                // A request that makes no sense is no answer to whether it could be.
                guard error.reason != .invalidParams else { throw error }
                let why = error.data["why"]?.string ?? error.message
                respond(
                    .success(["can": false, "why": .string(why), "reason": .string(error.reason.rawValue)]))
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// What an action, or {switchCamera: a device's id, or null}, makes of a session.
    private func change(
        _ action: JSONValue, _ caller: Caller
    ) throws(BusError) -> (CaptureSession) throws(BusError) -> CaptureSession {
        if let device = action["switchCamera"], action.object?.count == 1 {
            return { [self] session throws(BusError) in try switched(session, to: device.string).session }
        }
        let action = try SessionAction.parse(action, path: "action")
        return { [self] session throws(BusError) in
            try access.checkPriority(caller, session, [action])
            var session = session
            try session.configure(try resolver.expanded(action, "action"), in: surroundings)
            return session
        }
    }

    private func start(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try access.check(call.caller)
            let entry = try ownSession(call)
            try access.check(call.caller, entry.session)
            access.ask(call.caller, entry.session)
            let lockID = try lockID(call)
            if !entry.session.run.isActive {
                var session = entry.session
                session.lockID = lockID ?? session.lockID
                try sessions.checkBandwidth(session)
                pressures.look()
            }
            try sessions.start(entry.session.id, lockID: lockID)
            if lockID != nil { sessions.reviewAll(entry) }
            replyWhenSettled(entry.session.id, respond)
        } catch {
            respond(.failure(error))
        }
    }

    private func stop(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in
                let entry = try ownSession(call)
                let isKept = try sessions.stop(entry.session.id)
                return try reply(entry.session.id).marked(isKept: isKept)
            })
    }

    private func delete(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in
                let entry = try ownSession(call)
                let isKept = try sessions.delete(entry.session.id)
                return JSONValue.object(["session": .string(entry.session.id)]).marked(isKept: isKept)
            })
    }

    private func get(_ call: Call, _ respond: @escaping Responder) {
        respond(Result { () throws(BusError) in try reply(call.string("session") ?? "") })
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        let values = sessions.sessions.compactMap { session in
            sessions.entries[session.id].map(sessions.value)
        }
        respond(.success(["sessions": .array(values)]))
    }

    // MARK: Switching

    private func switchCamera(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try access.check(call.caller)
            let entry = try ownSession(call)
            guard entry.trial == nil else { throw Self.isSwitching(entry) }
            let session = entry.session
            var (candidate, old, device, dropped) = try switched(session, to: call.string("device"))
            try access.check(call.caller, candidate)
            // In force with the other camera, and not before: if that can't be had, the session is as it was.
            candidate.lockID = try lockID(call) ?? session.lockID
            let answer = { [weak self] (error: BusError?) in
                guard let self else { return }
                if let error { return respond(.failure(error)) }
                respond(
                    Result { () throws(BusError) in
                        var members = try reply(session.id).object ?? [:]
                        // It may have another name by now.
                        let active = try sessions.entry(session.id).session.camera?.device ?? device
                        members["active"] = .string(active)
                        members["switched"] = .bool(device != old)
                        members["dropped"] = .array(dropped)
                        return .object(members)
                    })
            }
            guard device != old, session.run.isActive else {
                try sessions.change(session.id) { $0 = candidate }
                return answer(nil)
            }
            try sessions.checkBandwidth(candidate)
            sessions.tryOut(entry, candidate, device, answer)
        } catch {
            respond(.failure(error))
        }
    }

    /// A session with another camera; nil: the one that is taken where none is named.
    private func switched(
        _ session: CaptureSession, to named: String?
    ) throws(BusError) -> (session: CaptureSession, old: String, device: String, dropped: [JSONValue]) {
        guard let old = session.camera?.device else {
            let count = session.inputs.count { $0.mediaType == .video }
            throw BusError(
                .cannotAddInput, "Only a session with one camera can switch it; this one has \(count).",
                ["why": "the session has not just one camera"])
        }
        let device: String
        if let named { device = named } else { device = try otherCamera(than: old) }
        let (candidate, dropped) = try session.switched(to: device, in: resolver.surroundings)
        return (candidate, old, device, dropped)
    }

    private static func isSwitching(_ entry: SessionRegistry.Entry) -> BusError {
        BusError(
            .cannotAddInput, "The session's camera is being switched; try again when that is done.",
            ["why": "the session's camera is being switched"])
    }

    /// From one that looks back to one that looks to the front; from any other to one that looks back.
    private func otherCamera(than device: String) throws(BusError) -> String {
        let cameras = workers.deviceIDs.compactMap { workers[$0] }.filter {
            $0.device.identity.mediaType == .video && $0.isConnected && $0.device.id != device
        }
        let isBack = workers[device]?.device.identity.position == .back
        let wanted: DevicePosition = isBack ? .front : .back
        guard let other = cameras.first(where: { $0.device.identity.position == wanted }) ?? cameras.first else {
            throw BusError(
                .cannotAddInput, "There is no other camera to switch to.", ["why": "there is only one camera"])
        }
        return other.device.id
    }

    /// What a session has that names no inputs: the default camera, unless it is to have sound only, and for an
    /// `audioData` output the default microphone.
    private func defaultInputs(for outputs: [JSONValue]) -> [String] {
        let kinds = Set(outputs.compactMap { $0.string ?? $0["type"]?.string })
        let sound = SessionOutput.Kind.audioData.rawValue
        let camera = kinds == [sound] ? nil : defaultDevice(.video)
        let microphone = kinds.contains(sound) ? defaultDevice(.audio) : nil
        return [camera, microphone].compactMap { $0 }
    }

    /// The first in the order in which devices are offered, which of cameras begins with those that look back.
    private func defaultDevice(_ medium: MediaType) -> String? {
        let devices = workers.deviceIDs.compactMap { workers[$0] }.filter {
            $0.device.identity.mediaType == medium
        }
        return (devices.first { $0.isConnected } ?? devices.first)?.device.id
    }

    // MARK: The parts

    /// The devices that a session can have, and what they would deliver to it.
    private var surroundings: CaptureSession.Surroundings {
        var surroundings = resolver.surroundings
        surroundings.pixelFormat = { [sessions] in sessions.pixelFormat($0, $1) }
        return surroundings
    }

    /// Marks pictures of a running session as another generation when its live photos have changed, except those of
    /// cameras that others have locked.
    private func livePhotosConfigured(_ session: CaptureSession, before: LivePhotoOutput?) {
        guard session.run.state == .running, let now = session.photoOutput?.livePhoto,
            now.consequence(since: before ?? LivePhotoOutput()) == .reconfiguration
        else { return }
        for device in workers.photoConnections(of: session).map(\.input) {
            let lock = sessions.held(device).flatMap { $0.id == session.lockID ? $0 : nil }
            sessions.carryOut(["device": .string(device)], of: device, lock) { _ in }
        }
    }

    /// The session, if the caller may change it.
    private func ownSession(_ call: Call) throws(BusError) -> SessionRegistry.Entry {
        let entry = try sessions.entry(call.string("session") ?? "")
        try entry.session.check(permission.editor(call.caller))
        return entry
    }

    /// The public id of the lock that the call shows; nil: it shows none.
    private func lockID(_ call: Call) throws(BusError) -> String? {
        guard let token = call.string("lock") else { return nil }
        return try locks.authorize(token: token, devices: []).id
    }

    /// - Parameter isDone: what was asked for stays, whatever becomes of the session.
    private func replyWhenSettled(_ id: String, isDone: Bool = false, _ respond: @escaping Responder) {
        sessions.whenSettled(id) { [weak self] in
            guard let self else { return }
            respond(
                Result { () throws(BusError) in
                    let entry = try sessions.entry(id)
                    if !isDone, let error = entry.error, !entry.session.run.isWanted { throw error }
                    return try reply(id)
                })
        }
    }

    /// {session, state, resolved, hardwareCost, explanation}
    private func reply(_ id: String) throws(BusError) -> JSONValue {
        let entry = try sessions.entry(id)
        var (resolved, explanation) = (sessions.resolved(entry), sessions.explanation(entry))
        if !entry.session.run.isWanted { (resolved, explanation) = sessions.forecast(entry.session) }
        return [
            "session": .string(id), "state": sessions.value(entry), "resolved": .array(resolved),
            "hardwareCost": .number(BandwidthBudget.rounded(sessions.hardwareCost(entry.session))),
            "explanation": JSONValue(explanation),
        ]
    }
}
