import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// From a request to the service that serves its method: checks caller, shape, role, permission and place, then whether
/// the same request was sent before.
final class RequestRouter {
    /// A method and what serves it, found together.
    private final class Served {
        let method: Method
        let handler: Handler

        init(_ method: Method, _ handler: Handler) {
            self.method = method
            self.handler = handler
        }
    }

    private let served: [String: Served]
    private let lifecycle: Lifecycle
    private let permission: AuthorizationService
    private let access: DeviceAccess
    private let remotes: RemoteUserRegistry
    private let cancellations: CancellationTable
    private let replies: ReplyCache
    private var ledger = RequestTable()
    /// Takers that wait for one request's reply.
    private var joined: [RequestKey: [ReplyTaker]] = [:]

    /// Requests with the same key that may wait for one reply.
    private static let maximumJoined = 64

    /// - Throws: when a method of the table has no handler, or a handler no method.
    init(
        _ services: [any MethodService], _ lifecycle: Lifecycle, _ permission: AuthorizationService,
        _ access: DeviceAccess, _ remotes: RemoteUserRegistry, _ cancellations: CancellationTable, _ replies: ReplyCache
    ) throws(CoordinatorStartError) {
        self.lifecycle = lifecycle
        self.permission = permission
        self.access = access
        self.remotes = remotes
        self.cancellations = cancellations
        self.replies = replies
        var served: [String: Served] = [:]
        for (name, handler) in services.flatMap(\.methods) {
            guard let method = MethodTable[name] else {
                throw CoordinatorStartError(
                    description: "a service has the method \(name), and the method table has not")
            }
            guard served[name] == nil else {
                throw CoordinatorStartError(description: "two services have the method \(name)")
            }
            served[name] = Served(method, handler)
        }
        if let method = MethodTable.all.first(where: { served[$0.name] == nil }) {
            throw CoordinatorStartError(description: "the method \(method.name) has no service")
        }
        self.served = served
    }

    func handle(_ sender: Caller, _ request: Request, _ respond: @escaping ReplyTaker) {
        guard !lifecycle.isStopping, !lifecycle.isFinishing else {
            return respond(
                .failure(BusError(.shuttingDown, "The bus is shutting down; try again when it is back.")))
        }
        let caller: Caller
        do throws(BusError) {
            caller = try remotes.asker(sender, request)
        } catch {
            return respond(.failure(error))
        }
        guard let served = served[request.method] else {
            return respond(.failure(.methodNotFound(request.method)))
        }
        let (method, handler) = (served.method, served.handler)
        if let error = method.params.validate(request.params) { return respond(.failure(error)) }
        if method.admin, !permission.isAdmin(caller) { return respond(.failure(adminNeeded(method, caller))) }
        do throws(BusError) {
            try access.check(method, caller, request.params)
            try remotes.checkPlace(method, caller, request.params)
        } catch {
            return respond(.failure(error))
        }
        guard let key = request.key else { return handler(Call(caller, request), respond) }
        serveOnce(caller, request, key: key, method, handler, respond)
    }

    private func adminNeeded(_ method: Method, _ caller: Caller) -> BusError {
        let role = permission.role(of: caller).rawValue
        let who: String =
            if caller.remote == nil {
                "root, the user that runs the bus, and users with the role admin in its configuration"
            } else if permission.isLimited(caller) {
                "the bus limits clients on other machines to the role '\(role)' (permission.remote_role)"
            } else {
                "the key of this client has the role '\(role)', and 'admin' is needed (camerabus keys role)"
            }
        return BusError(
            .unauthorized, "\(method.name) is for administrators: \(who).", ["status": "denied", "needed": "admin"])
    }

    /// A request with a key is carried out once, however often it is sent. One that changes nothing may be carried out
    /// again: replies to it do not take the room of replies that can't be made a second time.
    private func serveOnce(
        _ caller: Caller, _ request: Request, key: String, _ method: Method,
        _ handler: Handler, _ respond: @escaping ReplyTaker
    ) {
        let name = RequestKey(uid: caller.peer.uid, key: key)
        let now = MonotonicClock.now()
        do throws(BusError) {
            switch try ledger.begin(
                uid: name.uid, key: key, method: request.method, params: request.params, at: now)
            {
            case .run:
                joined[name] = [respond]
                replies.forget(name)
                handler(Call(caller, request)) { [weak self] reply in
                    guard let self else { return }
                    cancellations.remove(name)
                    let later = reply.later.map { .success($0) } ?? reply.result
                    ledger.finish(
                        uid: name.uid, key: key, result: method.isRepeatable ? .success([:]) : later,
                        at: MonotonicClock.now())
                    if !method.isRepeatable { replies.keep(reply, for: name, of: caller.peer) }
                    let waiting = joined.removeValue(forKey: name) ?? []
                    for respond in waiting { respond(reply.shared) }
                }
            case .join:
                guard joined[name, default: []].count < Self.maximumJoined else {
                    throw BusError(
                        .limitExceeded, "This request was sent too often; wait for its answer.",
                        ["limit": "repetitions", "maximum": JSONValue(Self.maximumJoined)])
                }
                joined[name, default: []].append(respond)
            case .replay where method.isRepeatable: handler(Call(caller, request), respond)
            case .replay(let result): respond(replies[name] ?? CallReply(result: result))
            }
        } catch {
            respond(.failure(error))
        }
    }
}
