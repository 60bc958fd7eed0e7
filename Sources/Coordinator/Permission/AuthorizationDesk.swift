import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Who may do what: answers it, takes questions to the administrators, and has their answers kept, published and enforced.
///
/// The rules are ``AuthorizationTable``'s; here are the disk, those who wait for an answer, and those who want to know.
final class AuthorizationDesk {
    private struct Waiter {
        let uid: UInt32
        let gid: UInt32
        let media: AuthorizationMedia
        /// Whose request it is; a process that can't be watched has no start time.
        let pid: Int32
        let startTime: UInt64?
        let completion: (Result<AuthorizationStatus, BusError>) -> Void
        let timer: Loop.Token
    }

    private let loop: Loop
    private let events: EventSocket
    private let keeper: AuthorizationKeeper
    private let holders: HolderWatch
    private let logger: Logger
    private(set) var book: AuthorizationTable
    private var waiters: [UInt64: Waiter] = [:]
    private var lastTicket: UInt64 = 0
    private var observers: [() -> Void] = []

    /// Requests of one user that may wait, and of all.
    private static let maximumWaitersPerUser = 16
    private static let maximumWaiters = 1024

    init(
        _ loop: Loop, events: EventSocket, _ book: AuthorizationTable, _ keeper: AuthorizationKeeper,
        _ holders: HolderWatch, logger: Logger
    ) {
        self.loop = loop
        self.events = events
        self.book = book
        self.keeper = keeper
        self.holders = holders
        self.logger = logger
        holders.whenEnded { [weak self] pid, startTime in self?.waiterEnded(pid: pid, startTime: startTime) }
        for uid in book.users { publish(uid) }
    }

    /// Has the body called whenever somebody's permission may have changed.
    func observe(_ body: @escaping () -> Void) { observers.append(body) }

    // MARK: What is so

    /// Whether the caller may see or hear what is of that medium, or put it into the library.
    func authorization(of caller: Caller, _ media: AuthorizationMedia) -> AuthorizationStatus {
        book.status(uid: caller.peer.uid, groups: [caller.peer.gid], media: media)
    }

    func role(of caller: Caller) -> AuthorizationRole {
        book.role(uid: caller.peer.uid, groups: [caller.peer.gid])
    }

    func isAdmin(_ caller: Caller) -> Bool { role(of: caller) == .admin }

    /// Whether the caller may ask for those on other machines.
    func isGateway(_ caller: Caller) -> Bool { caller.peer.uid == book.policy.gateway || isAdmin(caller) }

    /// Those on other machines of whom is known who they are.
    private static let maximumRemotes = 4096

    /// A gateway says who somebody on another machine is; who is less than before loses at once what it may not have any more.
    ///
    /// - Returns: false: there are too many.
    func setRemote(uid: UInt32, _ role: AuthorizationRole) -> Bool {
        let before = book.policy.remotes[uid]
        guard before != role else { return true }
        if before == nil, book.policy.remotes.count >= Self.maximumRemotes {
            book.policy.remotes = book.policy.remotes.filter { $0.value != AuthorizationRole.none }
            guard book.policy.remotes.count < Self.maximumRemotes else { return false }
        }
        book.policy.remotes[uid] = role
        // Who was not heard of kept what it had; with this role there may be something that it may not.
        if before != nil || min(role, book.policy.remoteLimit) < .control { changedNow() }
        return true
    }

    /// Whether that user may change what is of that medium, and keep what does.
    func mayChange(uid: UInt32, gid: UInt32, _ media: AuthorizationMedia) -> Bool {
        book.isUnheard(uid: uid) || book.mayChange(uid: uid, groups: [gid], media: media)
    }

    /// Whether what that user has of that medium goes on.
    func mayKeep(uid: UInt32, gid: UInt32, _ media: AuthorizationMedia) -> Bool {
        book.isUnheard(uid: uid) || book.status(uid: uid, groups: [gid], media: media) == .authorized
    }

    /// Lets the caller change what is of these media.
    ///
    /// - Throws: `unauthorized` {status, needed}, with what is to be done.
    func authorize(_ caller: Caller, _ needed: Set<AuthorizationMedia>) throws(BusError) {
        let (uid, gid) = (caller.peer.uid, caller.peer.gid)
        for media in AuthorizationMedia.allCases where needed.contains(media) && !mayChange(uid: uid, gid: gid, media) {
            throw refusal(caller, media)
        }
    }

    /// Why the caller may not have, or change, what is of that medium.
    func refusal(_ caller: Caller, _ media: AuthorizationMedia) -> BusError {
        refusal(uid: caller.peer.uid, gid: caller.peer.gid, media)
    }

    /// Why that user may not have, or change, what is of that medium.
    func refusal(uid: UInt32, gid: UInt32, _ media: AuthorizationMedia) -> BusError {
        let status = book.status(uid: uid, groups: [gid], media: media)
        if RemoteUser.uids.contains(uid) {
            let role = book.role(uid: uid, groups: [])
            return BusError(
                .unauthorized,
                "The key of this client has the role '\(role.rawValue)', which is not enough for that; 'camerabus keys', typed by an "
                    + "administrator of the bus, gives another.",
                [
                    "status": .string(AuthorizationStatus.restricted.rawValue),
                    "needed": status == .authorized ? "control" : .string(media.rawValue),
                ])
        }
        let message: String
        switch status {
        case .authorized:
            return BusError(
                .unauthorized,
                "The configuration lets uid \(uid) look and change nothing (its role is view, [permission] in camerabus.toml).",
                ["status": .string(AuthorizationStatus.restricted.rawValue), "needed": "control"])
        case .notDetermined:
            message =
                "Nobody has allowed uid \(uid) \(media.rawValue) yet: 'camerabus ask \(media.rawValue) --reason TEXT' asks for it, and "
                + "'camerabus allow \(uid) \(media.rawValue)', typed by an administrator, allows it."
        case .denied:
            message =
                "An administrator has refused uid \(uid) \(media.rawValue); 'camerabus allow \(uid) \(media.rawValue)', typed by one, allows it."
        case .restricted:
            message =
                "The configuration keeps uid \(uid) from \(media.rawValue): see [permission] in camerabus.toml."
        }
        return BusError(
            .unauthorized, message, ["status": .string(status.rawValue), "needed": .string(media.rawValue)])
    }

    // MARK: Questions

    /// Asks the administrators for the caller, who says what for; the completion is called once, perhaps at once.
    ///
    /// - Parameters:
    ///   - startTime: of the caller's process; nil: it can't be watched.
    ///   - wait: how long to wait for the answer, nanoseconds; then, or with 0, the status is told as it is.
    /// - Returns: the ticket to ``cancel(_:)`` with; nil when nothing waits.
    func ask(
        _ caller: Caller, startTime: UInt64?, _ media: AuthorizationMedia, reason: String, program: String, wait: Int64,
        completion: @escaping (Result<AuthorizationStatus, BusError>) -> Void
    ) -> UInt64? {
        let peer = caller.peer
        do {
            let question = AuthorizationTable.Question(
                reason: reason, since: BookKeeper.now, pid: peer.pid, program: program)
            switch try book.ask(uid: peer.uid, groups: [peer.gid], media: media, question) {
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
                        .limitExceeded, "Too many requests for permission wait; ask again without wait, or later.",
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

    /// The process has ended, or has let go of its last connection for too long: nobody is there to be answered. What was asked stays.
    func waiterEnded(pid: Int32, startTime: UInt64) {
        for (ticket, waiter) in waiters where waiter.pid == pid && waiter.startTime == startTime {
            end(ticket, .failure(Self.nobodyThere))
        }
    }

    private static let nobodyThere = BusError(.cancelled, "The process that asked has ended.")

    /// Gives up a request that waits, and with the last one of its user what it asked for.
    func cancel(_ ticket: UInt64) {
        guard let waiter = waiters[ticket] else { return }
        let isLast = !waiters.contains {
            $0.key != ticket && $0.value.uid == waiter.uid && $0.value.media == waiter.media
        }
        if isLast, book.withdraw(uid: waiter.uid, media: waiter.media) {
            tell(waiter.uid, "withdrawn", waiter.media)
        }
        end(ticket, .failure(BusError(.cancelled, "The request for permission was given up.")))
    }

    /// Somebody tried to get what is of that medium without having asked: the bus asks, once.
    func tried(uid: UInt32, gid: UInt32, pid: Int32, _ media: AuthorizationMedia, program: String) {
        let question = AuthorizationTable.Question(reason: nil, since: BookKeeper.now, pid: pid, program: program)
        if book.askByItself(uid: uid, groups: [gid], media: media, question) { tellAsked(uid, media, question) }
    }

    private func tellAsked(_ uid: UInt32, _ media: AuthorizationMedia, _ question: AuthorizationTable.Question) {
        logger.notice(
            "permission is asked for: 'camerabus allow \(uid) \(media.rawValue)' gives it",
            metadata: [LogKeys.peerUID: "\(uid)", LogKeys.peerPID: "\(question.pid)", "media": "\(media.rawValue)"])
        tell(uid, "requested", media)
    }

    // MARK: Decisions

    /// An administrator allows or refuses a user something.
    ///
    /// - Parameter completion: false: it holds, but could not be kept.
    func decide(
        uid: UInt32, _ media: [AuthorizationMedia], isGranted: Bool, isOnce: Bool, by admin: Caller,
        completion: @escaping (Result<Bool, BusError>) -> Void
    ) {
        let decision = AuthorizationTable.Decision(
            isGranted: isGranted, isOnce: isOnce, since: BookKeeper.now, by: admin.peer.uid)
        var changed = book
        do {
            for media in media { try changed.decide(uid: uid, media: media, decision) }
        } catch {
            return completion(.failure(Self.error(error, uid: uid)))
        }
        book = changed
        log(isGranted ? "allowed" : "refused", uid, media, admin)
        for media in media { tell(uid, isGranted ? "granted" : "denied", media, ["once": .bool(isOnce)]) }
        changedNow()
        keeper.save(book) { completion(.success($0)) }
    }

    /// Forgets what was decided and asked.
    ///
    /// - Parameter completion: the media that anything was forgotten of; false: it could not be kept.
    func reset(
        uid: UInt32, _ media: [AuthorizationMedia], by admin: Caller,
        completion: @escaping ([AuthorizationMedia], Bool) -> Void
    ) {
        let changed = book.reset(uid: uid, media: media)
        guard !changed.isEmpty else { return completion([], true) }
        log("reset", uid, changed, admin)
        for media in changed { tell(uid, "reset", media) }
        changedNow()
        keeper.save(book) { completion(changed, $0) }
    }

    /// The user has left the bus: what was decided for once is over.
    func left(uid: UInt32) {
        let media = book.endOnce(uid: uid)
        guard !media.isEmpty else { return }
        logger.notice("what was decided for once is over", metadata: [LogKeys.peerUID: "\(uid)"])
        for media in media { tell(uid, "ended", media) }
        changedNow()
        keeper.save(book) { _ in }
    }

    /// The configuration was read again.
    func setPolicy(_ read: AuthorizationPolicy) {
        var policy = read
        // Those are not the configuration's.
        policy.remotes = book.policy.remotes
        guard policy != book.policy else { return }
        book.policy = policy
        changedNow()
    }

    /// The bus ends in order: so does what was decided for once, and nobody is waited for.
    func shutDown() {
        for ticket in waiters.keys {
            end(ticket, .failure(BusError(.shuttingDown, "The bus is shutting down; ask again when it is back.")))
        }
        let users = book.onceUsers
        guard !users.isEmpty else { return }
        for uid in users { book.endOnce(uid: uid) }
        keeper.save(book) { _ in }
    }

    // First those who enforce it, then those who wait.
    private func changedNow() {
        for observer in observers { observer() }
        for (ticket, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            let status = book.status(uid: waiter.uid, groups: [waiter.gid], media: waiter.media)
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
                "uid \(uid) is a client on another machine, whose key says what it may; 'camerabus keys role' changes that"
            )
        case .configured(let role):
            let who =
                uid == 0 ? "root is an administrator" : "the configuration gives uid \(uid) the role '\(role.rawValue)'"
            return .invalidParams(
                "uid", "\(who), which goes before what administrators decide; change [permission] there")
        case .tooMany(let maximum):
            return BusError(
                .limitExceeded, "Permission is asked for, or decided about, too many users; reset some of them.",
                ["limit": "authorizations", "maximum": JSONValue(maximum)])
        }
    }

    // MARK: What is published

    private func tell(_ uid: UInt32, _ event: String, _ media: AuthorizationMedia, _ members: [String: JSONValue] = [:])
    {
        publish(uid)
        events.event(
            "event/authorization/\(uid)", event, members.merging(["media": .string(media.rawValue)]) { $1 })
    }

    private func publish(_ uid: UInt32) { events.set("state/authorization/\(uid)", value(uid)) }

    // What somebody has asked for, and with which words, is for administrators.
    private func value(_ uid: UInt32) -> JSONValue? {
        let (decisions, questions) = (book.decisions[uid] ?? [:], book.questions[uid] ?? [:])
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
