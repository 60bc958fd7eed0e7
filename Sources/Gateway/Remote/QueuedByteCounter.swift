import ZeroMQ

/// Counts by key the bytes that libzmq still holds. A client that does not read must not fill the memory, over any
/// number of connections.
final class QueuedByteCounter {
    private let maximum: Int
    private var counts: [String: ByteCount] = [:]

    /// Of a key. One message more than that may be there.
    static let maximum = 128 << 20
    /// What is shorter isn't counted: libzmq bounds how many there are.
    private static let shortBytes = 4096

    init(maximum: Int = maximum) { self.maximum = maximum }

    /// Bytes of that key that libzmq has.
    func bytes(of key: String) -> Int { counts[key]?.bytes ?? 0 }

    /// Whether it may be given something more, or so many bytes, which are few enough to go in any case.
    func hasRoom(for key: String, _ bytes: Int = .max) -> Bool {
        bytes <= Self.shortBytes || self.bytes(of: key) < maximum
    }

    /// The same bytes, not copied, and counted from now on.
    func counted(_ frame: Message, for key: String) throws(ZeroMQError) -> Message {
        let counted = Message()
        guard frame.count > Self.shortBytes else {
            try counted.share(frame)
            return counted
        }
        if counts[key] == nil {
            counts = counts.filter { $0.value.bytes > 0 }
        }
        let count = counts[key] ?? ByteCount()
        counts[key] = count
        try counted.share(frame, countedIn: [count])
        return counted
    }
}
