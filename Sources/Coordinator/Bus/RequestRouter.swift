import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import Sodium

/// A request that may be asked again: who asked, and under which key.
struct RequestKey: Hashable {
    let uid: UInt32
    let key: String
}

/// From a request to the method that serves it.
extension Coordinator {
    func handle(_ sender: Caller, _ request: Request, _ respond: @escaping ReplyTaker) {
        guard !isStopping, !isFinishing else {
            return respond(
                .failure(BusError(.shuttingDown, "The bus is shutting down; ask again when it is back.")))
        }
        let caller: Caller
        do throws(BusError) {
            caller = try asker(sender, request)
        } catch {
            return respond(.failure(error))
        }
        guard let served = Self.allServices[request.method] else {
            return respond(.failure(.methodNotFound(request.method)))
        }
        let (method, serve) = (served.method, served.serve)
        if let error = method.params.validate(request.params) { return respond(.failure(error)) }
        if method.admin, !permission.isAdmin(caller) { return respond(.failure(adminNeeded(method, caller))) }
        do throws(BusError) {
            try checkPermission(method, caller, request.params)
            try checkPlace(method, caller, request.params)
        } catch {
            return respond(.failure(error))
        }
        guard let key = request.key else { return serve(self)(Call(caller, request), respond) }
        serveOnce(caller, request, key: key, method, serve(self), respond)
    }

    private func adminNeeded(_ method: Method, _ caller: Caller) -> BusError {
        let role = permission.role(of: caller).rawValue
        let who =
            caller.remote == nil
            ? "root, the user that the bus runs as, and whom its configuration makes one"
            : "the key of this client has the role '\(role)', and 'admin' is needed (camerabus keys role)"
        return BusError(
            .unauthorized, "\(method.name) is for administrators: \(who).", ["status": "denied", "needed": "admin"])
    }

    /// A request with a key is carried out once, however often it is asked; one that changes nothing may be carried out again, so that nobody's
    /// reading takes the room of answers that can't be had a second time.
    private func serveOnce(
        _ caller: Caller, _ request: Request, key: String, _ method: Method,
        _ serve: @escaping (Call, @escaping ReplyTaker) -> Void, _ respond: @escaping ReplyTaker
    ) {
        let name = RequestKey(uid: caller.peer.uid, key: key)
        let now = MonotonicClock.now()
        do throws(BusError) {
            switch try ledger.begin(
                uid: name.uid, key: key, method: request.method, params: request.params, at: now)
            {
            case .run:
                joined[name] = [respond]
                keptAnswers.forget(name)
                serve(Call(caller, request)) { [weak self] answer in
                    guard let self else { return }
                    cancellations[name] = nil
                    let later = answer.later.map { .success($0) } ?? answer.result
                    ledger.finish(
                        uid: name.uid, key: key, result: method.isRepeatable ? .success([:]) : later,
                        at: MonotonicClock.now())
                    if !method.isRepeatable { keptAnswers.keep(answer, for: name, of: caller.peer) }
                    let waiting = joined.removeValue(forKey: name) ?? []
                    for respond in waiting { respond(answer.shared) }
                }
            case .join:
                guard joined[name, default: []].count < 64 else {
                    throw BusError(
                        .limitExceeded, "This request is being asked too often; wait for its answer.",
                        ["limit": "repetitions", "maximum": 64])
                }
                joined[name, default: []].append(respond)
            case .replay where method.isRepeatable: serve(Call(caller, request), respond)
            case .replay(let result): respond(keptAnswers[name] ?? CallReply(result: result))
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// What a method is called with. Its params have the shape that the method table says.
    struct Call {
        let caller: Caller
        let params: JSONValue
        let key: RequestKey?

        /// What follows from another request.
        init(_ caller: Caller, params: JSONValue, key: RequestKey?) {
            self.caller = caller
            self.params = params
            self.key = key
        }

        init(_ caller: Caller, _ request: Request) {
            self.caller = caller
            params = request.params
            key = request.key.map { RequestKey(uid: caller.peer.uid, key: $0) }
        }

        /// What the same request, asked again, is known by over a restart; nil without a key.
        var digest: String? {
            key.map { hexadecimal(sha256(Array("\($0.uid) \($0.key)".utf8) + [0] + params.serialized)) }
        }

        func string(_ name: String) -> String? { params[name]?.string }

        /// One or several names: a bare string is one.
        func strings(_ name: String) -> [String] {
            if let one = params[name]?.string { return [one] }
            return params[name]?.array?.compactMap(\.string) ?? []
        }

        /// Milliseconds, in nanoseconds.
        func duration(_ name: String) -> Int64? {
            params[name]?.double.map { Int64(($0 * 1_000_000).rounded()) }
        }
    }

    typealias Service = @Sendable (Coordinator) -> (Call, @escaping Responder) -> Void
    /// One whose answers have further frames.
    typealias AttachingService = @Sendable (Coordinator) -> (Call, @escaping ReplyTaker) -> Void

    /// A method and what serves it, found together.
    private final class Served: Sendable {
        let method: Method
        let serve: AttachingService

        init(_ method: Method, _ serve: @escaping AttachingService) {
            self.method = method
            self.serve = serve
        }
    }

    private static let allServices: [String: Served] = {
        var all: [String: Served] = [:]
        func add(_ name: String, _ serve: @escaping AttachingService) {
            if all[name] == nil, let method = MethodTable[name] { all[name] = Served(method, serve) }
        }
        for services in [
            busServices, profileServices, rigServices, sessionServices, faultServices, sourceServices,
            authorizationServices, cameraServices, movieServices, libraryServices, takeServices,
        ] {
            for (name, serve) in services { add(name, attaching(serve)) }
        }
        for (name, serve) in photoServices { add(name, serve) }
        for (name, serve) in libraryReading { add(name, serve) }
        return all
    }()

    // The same, without further frames.
    private static func attaching(_ serve: @escaping Service) -> AttachingService {
        { coordinator in
            let serve = serve(coordinator)
            return { call, respond in serve(call) { respond(CallReply(result: $0)) } }
        }
    }

    private static let busServices: [String: Service] = [
        "bus.hello": { $0.hello }, "bus.ping": { _ in { $1(.success(.object([:]))) } }, "bus.cancel": { $0.cancel },
        "bus.shutdown": { $0.shutDown }, "bus.snapshot": { $0.snapshot },
        "bus.methods": { _ in { $1(.success(MethodTable.json)) } },
        "bus.metrics": { $0.metrics }, "bus.clock": { $0.clock }, "bus.leave": { $0.leave },
        "device.list": { $0.list }, "device.get": { $0.get },
        "device.rename": { $0.rename }, "device.formats": { $0.formats }, "device.controls": { $0.controls },
        "device.who": { $0.who }, "device.lock": { $0.lock },
        "device.unlock": { $0.unlock }, "device.renew": { $0.renew }, "device.takeOver": { $0.takeOver },
        "device.locks": { $0.listLocks },
        "device.configure": { $0.configure }, "device.set": { $0.set },
    ]
}
