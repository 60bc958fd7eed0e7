import BusProtocol
import JSON
import Synchronization
import ZeroMQ

/// Counts the bytes of photos that are kept for replies, until those who asked have got them: who doesn't read what it asks for must
/// not fill the memory, nor take what others need.
final class AttachmentBudget {
    /// Bytes that are counted, from any thread.
    private final class Counter: Sendable {
        let bytes = Atomic<Int>(0)
    }

    /// Counted until libzmq is done with the bytes, in whichever reply they are then.
    private final class Loan: MessageOwner, @unchecked Sendable {
        private let frame: Message
        private let count: Int
        private let counters: [Counter]

        init(_ frame: Message, _ counters: [Counter]) {
            self.frame = frame
            self.counters = counters
            count = frame.count
            super.init()
            for counter in counters { counter.bytes.wrappingAdd(count, ordering: .relaxed) }
        }

        override func giveBack() {
            for counter in counters { counter.bytes.wrappingSubtract(count, ordering: .relaxed) }
        }
    }

    /// Of all users, and of one: more than one reply may have.
    static let maximum = 512 << 20
    static let maximumOfUser = 320 << 20

    private let all = Counter()
    private var users: [UInt32: Counter] = [:]

    /// The same bytes, not copied, and counted from now on.
    ///
    /// - Throws: `limitExceeded` {limit: "photoReplies", maximum}: there is no room for them now.
    func count(_ frame: Message, for uid: UInt32) throws(BusError) -> Message {
        users = users.filter { $0.value.bytes.load(ordering: .relaxed) > 0 }
        let user = users[uid] ?? Counter()
        guard user.bytes.load(ordering: .relaxed) + frame.count <= Self.maximumOfUser else {
            throw Self.refusal(
                "Replies to you that are still on their way leave no room for the photos; read them, or have photos delivered to the library.",
                Self.maximumOfUser)
        }
        guard all.bytes.load(ordering: .relaxed) + frame.count <= Self.maximum else {
            throw Self.refusal(
                "Replies to other users that are still on their way leave no room for the photos; ask again later, or have them delivered to the library.",
                Self.maximum)
        }
        users[uid] = user
        let loan = Loan(frame, [all, user])
        let counted = Message()
        do {
            try frame.withUnsafeBytes { (bytes) throws(ZeroMQError) in try counted.borrow(bytes, from: loan) }
        } catch {
            throw BusError(.internalError, "A photo can't be put into a reply: \(error)")
        }
        return counted
    }

    private static func refusal(_ text: String, _ maximum: Int) -> BusError {
        BusError(.limitExceeded, text, ["limit": "photoReplies", "maximum": JSONValue(maximum)])
    }
}
