import Glibc
import LinuxIO
import Synchronization
import ZeroMQ

/// The memory that slow subscribers hold beside the rings in use: copies of frames, and rings that have ended. No more than a budget.
final class PayloadMemory: Sendable {
    /// A copy, which counts for as long as libzmq has it.
    private final class Copy: MessageOwner, @unchecked Sendable {
        let bytes: UnsafeMutableRawBufferPointer
        private let memory: PayloadMemory

        /// - Parameter bytes: of `malloc`, and counted already.
        init(_ bytes: UnsafeMutableRawBufferPointer, _ memory: PayloadMemory) {
            self.bytes = bytes
            self.memory = memory
        }

        deinit {
            free(bytes.baseAddress)
            memory.giveBack(bytes.count)
        }
    }

    /// A message that came from elsewhere, which counts for as long as libzmq has it.
    private final class Loan: MessageOwner, @unchecked Sendable {
        private let message: Message
        private let memory: PayloadMemory

        /// - Parameter message: counted already; nobody else uses it.
        init(_ message: Message, _ memory: PayloadMemory) {
            self.message = message
            self.memory = memory
        }

        deinit { memory.giveBack(message.count) }
    }

    private let budget: Int
    private let taken = Atomic<Int>(0)
    private let refusals = Atomic<UInt64>(0)

    /// - Parameter budget: bytes.
    init(budget: Int) { self.budget = max(0, budget) }

    /// A sixteenth of the machine's memory, and between 64 and 512 MiB.
    static var defaultBudget: Int { min(max(ProcessMemory.physicalBytes / 16, 64 << 20), 512 << 20) }

    /// Bytes that are held now.
    var held: Int { taken.load(ordering: .relaxed) }

    /// Whether there is room for so many bytes more, beside what is about to be taken.
    func hasRoom(for bytes: Int, beside others: Int = 0) -> Bool { bytes <= budget - others - held }

    /// Whether so many bytes are more than there ever is room for.
    func exceedsAll(_ bytes: Int) -> Bool { bytes > budget }

    /// More than half of the budget is spent: whoever takes nothing is to be cut off before others lose by it.
    var isPressed: Bool { held > budget / 2 }

    /// How often there was no room.
    var refused: UInt64 { refusals.load(ordering: .relaxed) }

    /// Gives the message so many bytes of its own, which the body writes.
    ///
    /// - Returns: false when the budget, or the machine, has no room for it; the message is empty then.
    func fill(
        _ message: Message, count: Int, _ write: (UnsafeMutableRawBufferPointer) -> Void
    ) -> Bool {
        message.removeAll()
        guard take(count) else { return false }
        var memory: UnsafeMutableRawPointer?
        guard posix_memalign(&memory, 64, max(1, count)) == 0, let memory else {
            giveBack(count)
            refusals.add(1, ordering: .relaxed)
            return false
        }
        let copy = Copy(UnsafeMutableRawBufferPointer(start: memory, count: count), self)
        write(copy.bytes)
        return (try? message.borrow(UnsafeRawBufferPointer(copy.bytes), from: copy)) != nil
    }

    /// Gives the message the bytes of one that came from elsewhere and is not used any more, without a copy.
    ///
    /// - Returns: false when the budget has no room for it; the message is empty then.
    func lend(_ message: Message, _ source: Message) -> Bool {
        message.removeAll()
        guard take(source.count) else { return false }
        let loan = Loan(source, self)
        return source.withUnsafeBytes { bytes in (try? message.borrow(bytes, from: loan)) != nil }
    }

    /// Counts what can't be refused any more.
    func add(_ bytes: Int) { taken.add(bytes, ordering: .relaxed) }

    func giveBack(_ bytes: Int) { taken.subtract(bytes, ordering: .relaxed) }

    private func take(_ bytes: Int) -> Bool {
        let (_, sum) = taken.add(bytes, ordering: .relaxed)
        if sum <= budget { return true }
        giveBack(bytes)
        refusals.add(1, ordering: .relaxed)
        return false
    }
}
