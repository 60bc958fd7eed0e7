public import JSON

/// The permission of each user: the roles of the configuration, and the decisions of administrators where a role leaves
/// them the choice.
///
/// A value; its owner decides when to write the decisions to disk (``json``). It is bounded.
public struct AuthorizationTable: Hashable, Sendable {
    /// What an administrator has decided.
    public struct Decision: Hashable, Sendable {
        public var isGranted: Bool
        /// It ends when the user has left the bus, or the bus ends in order.
        public var isOnce: Bool
        /// Seconds since 1970.
        public var since: Int64
        /// The administrator's uid.
        public var by: UInt32

        public init(isGranted: Bool, isOnce: Bool, since: Int64, by: UInt32) {
            self.isGranted = isGranted
            self.isOnce = isOnce
            self.since = since
            self.by = by
        }

        public var status: AuthorizationStatus { isGranted ? .authorized : .denied }
    }

    /// A user's request that no administrator has answered.
    public struct Question: Hashable, Sendable {
        /// The reason, in the user's words; nil: the user has only tried, and the bus asks.
        public var reason: String?
        /// Seconds since 1970.
        public var since: Int64
        public var pid: Int32
        /// What the program calls itself.
        public var program: String

        public init(reason: String?, since: Int64, pid: Int32, program: String) {
            self.reason = reason
            self.since = since
            self.pid = pid
            self.program = program
        }
    }

    /// Why there is no decision.
    public enum Refusal: Error, Hashable, Sendable {
        /// The configuration has decided: what it makes of the user.
        case configured(AuthorizationRole)
        /// There are too many of them.
        case tooMany(maximum: Int)
    }

    public static let version = 1
    /// Users with a decision.
    public static let maximumUsers = 4096
    /// Users who have asked.
    public static let maximumQuestions = 256

    public var policy: AuthorizationPolicy
    public private(set) var decisions: [UInt32: [AuthorizationMedia: Decision]] = [:]
    public private(set) var questions: [UInt32: [AuthorizationMedia: Question]] = [:]
    /// What the bus has asked for users by itself, which it does once.
    private var asked: [UInt32: Set<AuthorizationMedia>] = [:]

    public init(policy: AuthorizationPolicy) { self.policy = policy }

    // MARK: State

    /// - Parameter groups: those that the kernel names.
    public func role(uid: UInt32, groups: Set<UInt32>) -> AuthorizationRole { policy.role(uid: uid, groups: groups) }

    /// - Parameter groups: those that the kernel names.
    public func status(uid: UInt32, groups: Set<UInt32>, media: AuthorizationMedia) -> AuthorizationStatus {
        policy.status(uid: uid, groups: groups, media) ?? decisions[uid]?[media]?.status ?? .notDetermined
    }

    /// Whether the user may change what is of that medium: a role that only looks may not, however it was asked.
    public func mayChange(uid: UInt32, groups: Set<UInt32>, media: AuthorizationMedia) -> Bool {
        role(uid: uid, groups: groups) != .view && status(uid: uid, groups: groups, media: media) == .authorized
    }

    /// Whether this is a remote user that no gateway has reported since the start of the bus. Such a user makes no
    /// requests, and keeps what it had until a gateway reports it: before that, its permission is unknown.
    public func isUnheard(uid: UInt32) -> Bool { RemoteUser.uids.contains(uid) && policy.remotes[uid] == nil }

    /// The access list for the workers of devices of that medium.
    public func accessList(_ media: AuthorizationMedia) -> AccessList {
        AccessList(
            policy: policy, media: media, granted: Set(decisions.filter { $0.value[media]?.isGranted == true }.keys))
    }

    /// Users with a decision or a request.
    public var users: Set<UInt32> { Set(decisions.keys).union(questions.keys) }

    // MARK: Requests

    /// The result of a request.
    public enum Answer: Hashable, Sendable {
        /// It is decided already.
        case decided(AuthorizationStatus)
        /// It is to be published; false: it was published before.
        case pending(isNew: Bool)
    }

    /// Adds a user's request. Only users who are `notDetermined` have one; a later reason replaces an earlier one.
    public mutating func ask(
        uid: UInt32, groups: Set<UInt32>, media: AuthorizationMedia, _ question: Question
    ) throws(Refusal) -> Answer {
        let status = status(uid: uid, groups: groups, media: media)
        guard status == .notDetermined else { return .decided(status) }
        let before = questions[uid]?[media]
        guard before != nil || questions[uid] != nil || questions.count < Self.maximumQuestions else {
            throw .tooMany(maximum: Self.maximumQuestions)
        }
        if let before, before.reason == question.reason || question.reason == nil { return .pending(isNew: false) }
        questions[uid, default: [:]][media] = question
        // A new reason for the same request is not published: a user could fill the log with reasons.
        return .pending(isNew: before?.reason == nil)
    }

    /// The bus asks for a user who has tried: once, until that is reset.
    ///
    /// - Returns: whether that is to be published.
    public mutating func askByItself(
        uid: UInt32, groups: Set<UInt32>, media: AuthorizationMedia, _ question: Question
    ) -> Bool {
        guard asked[uid]?.contains(media) != true, asked[uid] != nil || asked.count < Self.maximumUsers,
            case .pending(isNew: true)? = try? ask(uid: uid, groups: groups, media: media, question)
        else { return false }
        asked[uid, default: []].insert(media)
        return true
    }

    /// Withdraws the user's request.
    ///
    /// - Returns: false: there was none.
    @discardableResult
    public mutating func withdraw(uid: UInt32, media: AuthorizationMedia) -> Bool {
        guard questions[uid]?.removeValue(forKey: media) != nil else { return false }
        if questions[uid]?.isEmpty == true { questions[uid] = nil }
        return true
    }

    // MARK: Decisions

    /// An administrator answers, or changes what was answered.
    ///
    /// - Throws: for users who are decided about by the configuration, as far as that can be said without their groups.
    public mutating func decide(
        uid: UInt32, media: AuthorizationMedia, _ decision: Decision
    ) throws(Refusal) {
        let role = policy.role(uid: uid, groups: [])
        // The keys of remote users decide their permission.
        guard !RemoteUser.uids.contains(uid), role == .ask || isOpenByGroup(uid) else { throw .configured(role) }
        guard decisions[uid] != nil || decisions.count < Self.maximumUsers else {
            throw .tooMany(maximum: Self.maximumUsers)
        }
        decisions[uid, default: [:]][media] = decision
        withdraw(uid: uid, media: media)
    }

    // The group of a connection is not known here: the rule of a group may leave the choice.
    private func isOpenByGroup(_ uid: UInt32) -> Bool {
        uid != 0 && uid != policy.owner && policy.users[uid] == nil && policy.groups.values.contains(.ask)
    }

    /// Removes the user's decisions and requests.
    ///
    /// - Returns: the media for which anything has changed.
    @discardableResult
    public mutating func reset(uid: UInt32, media: [AuthorizationMedia]) -> [AuthorizationMedia] {
        media.filter { media in
            let wasAsked = asked[uid]?.remove(media) != nil
            if asked[uid]?.isEmpty == true { asked[uid] = nil }
            let wasWithdrawn = withdraw(uid: uid, media: media)
            let wasDecided = decisions[uid]?.removeValue(forKey: media) != nil
            if decisions[uid]?.isEmpty == true { decisions[uid] = nil }
            return wasAsked || wasWithdrawn || wasDecided
        }
    }

    /// Users who were allowed or refused something once.
    public var onceUsers: Set<UInt32> {
        Set(decisions.filter { $0.value.values.contains(where: \.isOnce) }.keys)
    }

    /// Removes the decisions for once about the user.
    ///
    /// - Returns: the media that it was about.
    @discardableResult
    public mutating func endOnce(uid: UInt32) -> [AuthorizationMedia] {
        reset(uid: uid, media: AuthorizationMedia.allCases.filter { decisions[uid]?[$0]?.isOnce == true })
    }
}

extension AuthorizationTable {
    /// Why a stored text cannot be read.
    public struct Damage: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String
    }

    /// What is kept: the decisions.
    ///
    /// - Parameter boot: names this run of the machine, which decisions for once don't outlive.
    public func json(boot: String) -> JSONValue {
        let users = decisions.map { uid, media in
            (
                "\(uid)",
                JSONValue.object(
                    Dictionary(
                        media.map { media, decision in
                            (
                                media.rawValue,
                                .members([
                                    "status": .string(decision.status.rawValue), "since": JSONValue(decision.since),
                                    "by": JSONValue(decision.by), "boot": decision.isOnce ? .string(boot) : nil,
                                ])
                            )
                        }, uniquingKeysWith: { first, _ in first }))
            )
        }
        return [
            "version": JSONValue(Self.version),
            "users": .object(Dictionary(users, uniquingKeysWith: { first, _ in first })),
        ]
    }

    /// Reads what ``json(boot:)`` wrote. If any part is wrong, all of it is refused: half a list might leave out a
    /// denial.
    public mutating func takeDecisions(_ json: JSONValue, boot: String) throws(Damage) {
        guard json["version"]?.integer == Int64(Self.version) else {
            throw Damage(description: "it has no version that this program supports")
        }
        guard let users = json["users"]?.object, users.count <= Self.maximumUsers else {
            throw Damage(description: "it has no users, or too many")
        }
        var found: [UInt32: [AuthorizationMedia: Decision]] = [:]
        for (name, value) in users {
            guard let uid = UInt32(name), let members = value.object else {
                throw Damage(description: "'\(name)' is no user")
            }
            for (word, entry) in members {
                guard let media = AuthorizationMedia(rawValue: word),
                    let status = entry["status"]?.string.flatMap(AuthorizationStatus.init),
                    status == .authorized || status == .denied, let since = entry["since"]?.integer,
                    let by = entry["by"]?.integer.flatMap({ UInt32(exactly: $0) })
                else { throw Damage(description: "the decision about uid \(uid) is incomplete") }
                let kept = entry["boot"]?.string
                guard kept == nil || kept == boot else { continue }
                found[uid, default: [:]][media] = Decision(
                    isGranted: status == .authorized, isOnce: kept != nil, since: since, by: by)
            }
        }
        decisions = found
    }
}
