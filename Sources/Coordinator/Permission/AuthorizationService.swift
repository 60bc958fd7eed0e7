import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// The permission of users: roles, questions to the administrators, and their decisions, which are kept, published and
/// enforced.
///
/// ``AuthorizationTable`` has the rules. This class adds the disk, the requests that wait for a decision, and the
/// events.
final class AuthorizationService: ProblemReporter {
    private struct Waiter {
        let uid: UInt32
        let gid: UInt32
        let media: AuthorizationMedia
        /// The process of the request; without a start time it can't be watched.
        let pid: Int32
        let startTime: UInt64?
        let completion: (Result<AuthorizationStatus, BusError>) -> Void
        let timer: Loop.Token
    }

    private let loop: Loop
    private let events: EventSocket
    private let store: AuthorizationStore
    private let holders: HolderWatcher
    let clients: ClientRegistry
    let cancellations: CancellationTable
    private let logger: Logger
    private(set) var table: AuthorizationTable
    private var waiters: [UInt64: Waiter] = [:]
    private var lastTicket: UInt64 = 0
    private var observers: [() -> Void] = []
    /// Users and groups in the configuration that this machine does not have.
    private var unknownUsers: [Problem]

    /// Requests of one user that may wait, and of all.
    private static let maximumWaitersPerUser = 16
    private static let maximumWaiters = 1024

    init(
        _ loop: Loop, events: EventSocket, _ table: AuthorizationTable, _ store: AuthorizationStore,
        unknown: [String], _ holders: HolderWatcher, _ clients: ClientRegistry, _ cancellations: CancellationTable,
        logger: Logger
    ) {
        self.clients = clients
        self.cancellations = cancellations
        unknownUsers = unknown.map { .userUnknown($0) }
        self.loop = loop
        self.events = events
        self.table = table
        self.store = store
        self.holders = holders
        self.logger = logger
        holders.whenEnded { [weak self] pid, startTime in self?.waiterEnded(pid: pid, startTime: startTime) }
        for uid in table.users { publish(uid) }
    }

    /// Calls the body whenever a user's permission may have changed.
    func observe(_ body: @escaping () -> Void) { observers.append(body) }

    /// What a person should know about permission.
    var problems: [Problem] { store.problems + unknownUsers }

    // MARK: Roles and status

    /// Whether the caller may see or hear that medium, or put it into the library.
    func authorization(of caller: Caller, _ media: AuthorizationMedia) -> AuthorizationStatus {
        table.status(uid: caller.peer.uid, groups: [caller.peer.gid], media: media)
    }

    func role(of caller: Caller) -> AuthorizationRole {
        table.role(uid: caller.peer.uid, groups: [caller.peer.gid])
    }

    /// Whether the configuration leaves a remote user less than its gateway reports.
    func isLimited(_ caller: Caller) -> Bool {
        table.policy.remotes[caller.peer.uid].map { role(of: caller) < $0 } ?? false
    }

    func isAdmin(_ caller: Caller) -> Bool { role(of: caller) == .admin }

    /// The caller, as one who wants to change what belongs to a user.
    func editor(_ caller: Caller) -> Editor { Editor(uid: caller.peer.uid, isAdmin: isAdmin(caller)) }

    /// Whether the caller may send requests for remote users.
    func isGateway(_ caller: Caller) -> Bool { caller.peer.uid == table.policy.gateway || isAdmin(caller) }

    /// The most remote users whose roles are known.
    private static let maximumRemotes = 4096

    /// Sets the role of a remote user, as a gateway reports it. A lower role ends at once what it does not allow.
    ///
    /// - Returns: false: there are too many.
    func setRemote(uid: UInt32, _ role: AuthorizationRole) -> Bool {
        let before = table.policy.remotes[uid]
        guard before != role else { return true }
        if before == nil, table.policy.remotes.count >= Self.maximumRemotes {
            table.policy.remotes = table.policy.remotes.filter { $0.value != AuthorizationRole.none }
            guard table.policy.remotes.count < Self.maximumRemotes else { return false }
        }
        table.policy.remotes[uid] = role
        // An unknown user kept what it had. This role may not allow all of that.
        if before != nil || min(role, table.policy.remoteLimit) < .control { changedNow() }
        return true
    }

    /// What clients on other machines may do, for their gateways.
    var remotePermission: RemotePermission { RemotePermission(table.policy) }

    /// Whether the user may change devices of that medium, and keep what changes them.
    func mayChange(uid: UInt32, gid: UInt32, _ media: AuthorizationMedia) -> Bool {
        table.isUnheard(uid: uid) || table.mayChange(uid: uid, groups: [gid], media: media)
    }

    /// Whether the user keeps what it has of that medium.
    func mayKeep(uid: UInt32, gid: UInt32, _ media: AuthorizationMedia) -> Bool {
        table.isUnheard(uid: uid) || table.status(uid: uid, groups: [gid], media: media) == .authorized
    }

    /// Lets the caller change devices of these media.
    ///
    /// - Throws: `unauthorized` {status, needed}, with advice.
    func authorize(_ caller: Caller, _ needed: Set<AuthorizationMedia>) throws(BusError) {
        let (uid, gid) = (caller.peer.uid, caller.peer.gid)
        for media in AuthorizationMedia.allCases where needed.contains(media) && !mayChange(uid: uid, gid: gid, media) {
            throw refusal(caller, media)
        }
    }

    /// Why the caller may not have, or change, that medium.
    func refusal(_ caller: Caller, _ media: AuthorizationMedia) -> BusError {
        refusal(uid: caller.peer.uid, gid: caller.peer.gid, media)
    }

    /// Why the user may not have, or change, that medium.
    func refusal(uid: UInt32, gid: UInt32, _ media: AuthorizationMedia) -> BusError {
        let status = table.status(uid: uid, groups: [gid], media: media)
        if RemoteUser.uids.contains(uid) {
            return remotePermission.refusal(
                of: table.policy.remotes[uid] ?? AuthorizationRole.none,
                needed: status == .authorized ? "control" : media.rawValue)
        }
        let message: String
        switch status {
        case .authorized:
            return BusError(
                .unauthorized,
                "The configuration allows uid \(uid) to read only (its role is view, [permission] in "
                    + "camerabus.toml).",
                ["status": .string(AuthorizationStatus.restricted.rawValue), "needed": "control"])
        case .notDetermined:
            message =
                "Nobody has allowed uid \(uid) \(media.rawValue) yet: 'camerabus ask \(media.rawValue) --reason TEXT' "
                + "asks for it, and "
                + "'camerabus allow \(uid) \(media.rawValue)', typed by an administrator, allows it."
        case .denied:
            message =
                "An administrator has refused uid \(uid) \(media.rawValue); 'camerabus allow \(uid) "
                + "\(media.rawValue)', typed by one, allows it."
        case .restricted:
            message =
                "The configuration keeps uid \(uid) from \(media.rawValue): see [permission] in camerabus.toml."
        }
        return BusError(
            .unauthorized, message, ["status": .string(status.rawValue), "needed": .string(media.rawValue)])
    }

    // MARK: Questions

    /// Asks the administrators for the caller. The completion is called once, perhaps at once.
    ///
    /// - Parameters:
    ///   - startTime: of the caller's process; nil: it can't be watched.
    ///   - wait: how long to wait for the decision, nanoseconds; then, or with 0, the present status is returned.
    /// - Returns: the ticket to ``cancel(_:)`` with; nil when nothing waits.
    func ask(
        _ caller: Caller, startTime: UInt64?, _ media: AuthorizationMedia, reason: String, program: String, wait: Int64,
        completion: @escaping (Result<AuthorizationStatus, BusError>) -> Void
    ) -> UInt64? {
        let peer = caller.peer
        do {
            let question = AuthorizationTable.Question(
                reason: reason, since: DeviceStore.now, pid: peer.pid, program: program)
            switch try table.ask(uid: peer.uid, groups: [peer.gid], media: media, question) {
            case .decided(let status):
                completion(.success(status))
                return nil
            case .pending(let isNew): if isNew { tellAsked(peer.uid, media, question) }
            }
        } catch {
            completion(.failure(Self.error(error, uid: peer.uid)))
            return nil
        }
        guard wait > 0 else {
            completion(.success(.notDetermined))
            return nil
        }
        guard waiters.count < Self.maximumWaiters,
            waiters.values.count(where: { $0.uid == peer.uid }) < Self.maximumWaitersPerUser
        else {
            completion(
                .failure(
                    BusError(
                        .limitExceeded,
                        "Too many requests are waiting for permission; try again later, or without 'wait'.",
                        ["limit": "authorizationWaiters", "maximum": JSONValue(Self.maximumWaitersPerUser)])))
            return nil
        }
        let watched = peer.pid > 0 ? startTime : nil
        if let watched, !holders.retain(pid: peer.pid, startTime: watched) {
            completion(.failure(Self.nobodyThere))
            return nil
        }
        lastTicket += 1
        let ticket = lastTicket
        let timer = loop.schedule(afterMilliseconds: wait / 1_000_000) { [weak self] in
            self?.end(ticket, .success(.notDetermined))
        }
        waiters[ticket] = Waiter(
            uid: peer.uid, gid: peer.gid, media: media, pid: peer.pid, startTime: watched, completion: completion,
            timer: timer)
        return ticket
    }

    private func end(_ ticket: UInt64, _ result: Result<AuthorizationStatus, BusError>) {
        guard let waiter = waiters.removeValue(forKey: ticket) else { return }
        loop.cancel(waiter.timer)
        if let startTime = waiter.startTime { holders.release(pid: waiter.pid, startTime: startTime) }
        waiter.completion(result)
    }

    /// The process has ended, or has been without a connection for too long: its requests fail. Its questions stay.
    func waiterEnded(pid: Int32, startTime: UInt64) {
        for (ticket, waiter) in waiters where waiter.pid == pid && waiter.startTime == startTime {
            end(ticket, .failure(Self.nobodyThere))
        }
    }

    private static let nobodyThere = BusError(.cancelled, "The process that asked has ended.")

    /// Gives up a request that waits, and with the last request of its user also the question.
    func cancel(_ ticket: UInt64) {
        guard let waiter = waiters[ticket] else { return }
        let isLast = !waiters.contains {
            $0.key != ticket && $0.value.uid == waiter.uid && $0.value.media == waiter.media
        }
        if isLast, table.withdraw(uid: waiter.uid, media: waiter.media) {
            tell(waiter.uid, "withdrawn", waiter.media)
        }
        end(ticket, .failure(BusError(.cancelled, "The request for permission was cancelled.")))
    }

    /// A user tried to use a medium without having asked: the bus asks the administrators, once.
    func tried(uid: UInt32, gid: UInt32, pid: Int32, _ media: AuthorizationMedia, program: String) {
        let question = AuthorizationTable.Question(reason: nil, since: DeviceStore.now, pid: pid, program: program)
        if table.askByItself(uid: uid, groups: [gid], media: media, question) { tellAsked(uid, media, question) }
    }

    /// A worker or a matcher has turned away a subscriber without permission.
    func refused(uid: UInt32, gid: UInt32, pid: Int32, _ media: AuthorizationMedia) {
        tried(uid: uid, gid: gid, pid: pid, media, program: ProcessTable.name(of: pid) ?? "unknown")
    }

    private func tellAsked(_ uid: UInt32, _ media: AuthorizationMedia, _ question: AuthorizationTable.Question) {
        logger.notice(
            "a user asks for permission: 'camerabus allow \(uid) \(media.rawValue)' gives it",
            metadata: [LogKeys.peerUID: "\(uid)", LogKeys.peerPID: "\(question.pid)", "media": "\(media.rawValue)"])
        tell(uid, "requested", media)
    }

    // MARK: Decisions

    /// An administrator allows or refuses media to a user.
    ///
    /// - Parameter completion: false: the decision holds, but could not be written.
    func decide(
        uid: UInt32, _ media: [AuthorizationMedia], isGranted: Bool, isOnce: Bool, by admin: Caller,
        completion: @escaping (Result<Bool, BusError>) -> Void
    ) {
        let decision = AuthorizationTable.Decision(
            isGranted: isGranted, isOnce: isOnce, since: DeviceStore.now, by: admin.peer.uid)
        var changed = table
        do {
            for media in media { try changed.decide(uid: uid, media: media, decision) }
        } catch {
            return completion(.failure(Self.error(error, uid: uid)))
        }
        table = changed
        log(isGranted ? "allowed" : "refused", uid, media, admin)
        for media in media { tell(uid, isGranted ? "granted" : "denied", media, ["once": .bool(isOnce)]) }
        changedNow()
        store.save(table) { completion(.success($0)) }
    }

    /// Forgets decisions and questions.
    ///
    /// - Parameter completion: the media with something to forget; false: it could not be written.
    func reset(
        uid: UInt32, _ media: [AuthorizationMedia], by admin: Caller,
        completion: @escaping ([AuthorizationMedia], Bool) -> Void
    ) {
        let changed = table.reset(uid: uid, media: media)
        guard !changed.isEmpty else { return completion([], true) }
        log("reset", uid, changed, admin)
        for media in changed { tell(uid, "reset", media) }
        changedNow()
        store.save(table) { completion(changed, $0) }
    }

    /// The user has left the bus: decisions for once end.
    func left(uid: UInt32) {
        let media = table.endOnce(uid: uid)
        guard !media.isEmpty else { return }
        logger.notice("a decision for once has ended", metadata: [LogKeys.peerUID: "\(uid)"])
        for media in media { tell(uid, "ended", media) }
        changedNow()
        store.save(table) { _ in }
    }

    /// The configuration was read again.
    ///
    /// - Parameter unknown: users and groups in it that this machine does not have.
    func setPolicy(_ read: AuthorizationPolicy, unknown: [String]) {
        unknownUsers = unknown.map { .userUnknown($0) }
        var policy = read
        // The remote users do not come from the configuration.
        policy.remotes = table.policy.remotes
        guard policy != table.policy else { return }
        table.policy = policy
        changedNow()
    }

    /// The bus ends: so do decisions for once, and requests that wait fail.
    func shutDown() {
        for ticket in waiters.keys {
            end(ticket, .failure(BusError(.shuttingDown, "The bus is shutting down; try again when it is back.")))
        }
        let users = table.onceUsers
        guard !users.isEmpty else { return }
        for uid in users { table.endOnce(uid: uid) }
        store.save(table) { _ in }
    }

    // First enforcement, then the requests that wait.
    private func changedNow() {
        for observer in observers { observer() }
        for (ticket, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            let status = table.status(uid: waiter.uid, groups: [waiter.gid], media: waiter.media)
            if status != .notDetermined { end(ticket, .success(status)) }
        }
    }

    private func log(_ what: String, _ uid: UInt32, _ media: [AuthorizationMedia], _ admin: Caller) {
        logger.notice(
            "permission \(what)",
            metadata: [
                LogKeys.peerUID: "\(uid)", "media": "\(media.map(\.rawValue).joined(separator: " "))",
                "by": "\(admin.peer.uid)",
            ])
    }

    private static func error(_ refusal: AuthorizationTable.Refusal, uid: UInt32) -> BusError {
        switch refusal {
        case .configured where RemoteUser.uids.contains(uid):
            return .invalidParams(
                "uid",
                "uid \(uid) is a client on another machine; its key sets its permission, and 'camerabus keys role' "
                    + "changes that"
            )
        case .configured(let role):
            let who =
                uid == 0 ? "root is an administrator" : "the configuration gives uid \(uid) the role '\(role.rawValue)'"
            return .invalidParams(
                "uid", "\(who), and that can't be changed here; change [permission] in camerabus.toml")
        case .tooMany(let maximum):
            return BusError(
                .limitExceeded, "There are requests or decisions for too many users; reset some of them.",
                ["limit": "authorizations", "maximum": JSONValue(maximum)])
        }
    }

    // MARK: Events and state

    private func tell(_ uid: UInt32, _ event: String, _ media: AuthorizationMedia, _ members: [String: JSONValue] = [:])
    {
        publish(uid)
        events.event(
            "event/authorization/\(uid)", event, members.merging(["media": .string(media.rawValue)]) { $1 })
    }

    private func publish(_ uid: UInt32) { events.set("state/authorization/\(uid)", value(uid)) }

    // The reasons of questions are for administrators.
    private func value(_ uid: UInt32) -> JSONValue? {
        let (decisions, questions) = (table.decisions[uid] ?? [:], table.questions[uid] ?? [:])
        guard !decisions.isEmpty || !questions.isEmpty else { return nil }
        var decided: [String: JSONValue] = [:]
        for (media, decision) in decisions {
            decided[media.rawValue] = [
                "status": .string(decision.status.rawValue), "once": .bool(decision.isOnce),
                "since": JSONValue(decision.since),
            ]
        }
        return [
            "uid": JSONValue(uid), "decided": .object(decided),
            "asked": JSONValue(AuthorizationMedia.allCases.filter { questions[$0] != nil }.map(\.rawValue)),
        ]
    }
}
