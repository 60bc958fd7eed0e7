public import BusProtocol
import JSON
public import ZeroMQ

/// Counts the bytes of large replies until libzmq has sent them: a client that does not read its replies must not fill
/// the memory.
public final class ReplyBudget {
    /// Bytes of one connection, and of all connections of one user.
    private let (maximum, maximumOfUser): (Int, Int)
    private var connections: [[UInt8]: ByteCount] = [:]
    private var users: [UInt32: ByteCount] = [:]

    /// Smaller replies are not counted: a socket keeps 16 of them.
    public static let smallBytes = 4096

    public init(maximum: Int = 32 << 20, maximumOfUser: Int = 64 << 20) {
        (self.maximum, self.maximumOfUser) = (maximum, maximumOfUser)
    }

    /// Whether so many bytes may be sent to the connection now. One reply may be larger than the budget.
    public func hasRoom(_ bytes: Int, _ connection: [UInt8], uid: UInt32) -> Bool {
        let (held, ofUser) = (connections[connection]?.bytes ?? 0, users[uid]?.bytes ?? 0)
        return (held == 0 || held + bytes <= maximum) && (ofUser == 0 || ofUser + bytes <= maximumOfUser)
    }

    /// A message with these bytes, which count until libzmq has sent them.
    public func message(_ bytes: [UInt8], _ connection: [UInt8], uid: UInt32) throws(ZeroMQError) -> Message {
        connections = connections.filter { $0.value.bytes > 0 }
        users = users.filter { $0.value.bytes > 0 }
        let (own, ofUser) = (connections[connection] ?? ByteCount(), users[uid] ?? ByteCount())
        (connections[connection], users[uid]) = (own, ofUser)
        let (plain, counted) = (Message(), Message())
        try plain.allocate(count: bytes.count)
        plain.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
        try counted.share(plain, countedIn: [own, ofUser])
        return counted
    }

    /// What a client gets instead of a reply for which there is no room.
    public var refusal: BusError {
        BusError(
            .limitExceeded,
            "The replies that you have not read yet take \(maximum >> 20) MiB on this connection, or "
                + "\(maximumOfUser >> 20) MiB on all of yours; read them, then ask again.",
            ["limit": "replyBytes", "maximum": JSONValue(maximum)])
    }
}
