import CZeroMQ

/// A connection that was ended for what its peer sent.
public struct ConnectionCut: Hashable, Sendable {
    /// What exceeded a limit.
    public enum Excess: UInt32, Sendable, CustomStringConvertible {
        /// A message has too many bytes.
        case message = 1
        /// Frames that do not belong together, or not to this kind of socket.
        case frames
        /// 8192 messages of the connection wait to be read.
        case waiting
        /// 64 MiB of the user's messages to the socket wait to be read, or are incomplete.
        case user
        /// Something else than subscriptions and their ends, to an XPUB.
        case noSubscription
        case subscriptions
        /// Ends of subscriptions that there were not.
        case unsubscriptions

        public var description: String {
            switch self {
            case .message: "a message is too long"
            case .frames: "frames that ZMTP does not permit there"
            case .waiting: "too many messages of the connection that are not read yet"
            case .user: "too many bytes of the user's messages that are not read yet"
            case .noSubscription: "a message that is no subscription"
            case .subscriptions: "too many subscriptions"
            case .unsubscriptions: "too many ends of subscriptions that do not exist"
            }
        }
    }

    public let excess: Excess
    public let uid: UInt32
    public let pid: Int32

    public init(_ excess: Excess, uid: UInt32, pid: Int32) {
        self.excess = excess
        self.uid = uid
        self.pid = pid
    }

    init?(_ cut: czeromq_cut) {
        guard let excess = Excess(rawValue: UInt32(cut.excess)) else { return nil }
        self.init(excess, uid: cut.uid, pid: cut.pid)
    }

    var form: czeromq_cut { czeromq_cut(excess: excess.rawValue, uid: uid, pid: pid) }
}
