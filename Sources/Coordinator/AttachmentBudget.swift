import Synchronization
import ZeroMQ

/// Counts the bytes of photos that are kept for replies, until those who asked have got them: who doesn't read what it asks for must
/// not fill the memory.
final class AttachmentBudget: Sendable {
    /// Counted until libzmq is done with the bytes, in whichever reply they are then.
    private final class Loan: MessageOwner, @unchecked Sendable {
        private let frame: Message
        private let count: Int
        private let budget: AttachmentBudget

        init(_ frame: Message, _ count: Int, _ budget: AttachmentBudget) {
            self.frame = frame
            self.count = count
            self.budget = budget
        }

        override func giveBack() { budget.used.wrappingSubtract(count, ordering: .relaxed) }
    }

    let maximum: Int
    private let used = Atomic<Int>(0)

    init(maximum: Int = 512 << 20) { self.maximum = maximum }

    /// Bytes that are counted now.
    var bytes: Int { used.load(ordering: .relaxed) }

    /// The same bytes, not copied, and counted from now on; nil: there is no room for them.
    func count(_ frame: Message) -> Message? {
        let count = frame.count
        guard used.wrappingAdd(count, ordering: .relaxed).newValue <= maximum else {
            used.wrappingSubtract(count, ordering: .relaxed)
            return nil
        }
        let loan = Loan(frame, count, self)
        let counted = Message()
        do {
            try frame.withUnsafeBytes { (bytes) throws(ZeroMQError) in try counted.borrow(bytes, from: loan) }
        } catch {
            return nil
        }
        return counted
    }
}
