import Glibc
import LinuxIO
import Synchronization
package import ZeroMQ

/// Counts the memory that slow subscribers hold in addition to the rings in use: copies of frames, and ended rings. A
/// budget limits it.
package final class PayloadMemory: Sendable {
    /// A copy of a payload. It counts until libzmq releases it.
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

    /// A received message that is passed on. It counts until libzmq releases it.
    private final class Loan: MessageOwner, @unchecked Sendable {
        private let message: Message
        private let memory: PayloadMemory

        /// - Parameter message: counted already, and not used by anyone else.
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
    package init(budget: Int) { self.budget = max(0, budget) }

    /// A sixteenth of the machine's memory, and between 64 and 512 MiB.
    package static var defaultBudget: Int { min(max(ProcessMemory.physicalBytes / 16, 64 << 20), 512 << 20) }

    /// Bytes that are held now.
    package var held: Int { taken.load(ordering: .relaxed) }

    /// Whether so many more bytes fit, in addition to `others`, which are about to be taken.
    package func hasRoom(for bytes: Int, beside others: Int = 0) -> Bool { bytes <= budget - others - held }

    /// Whether so many bytes exceed the whole budget.
    package func exceedsAll(_ bytes: Int) -> Bool { bytes > budget }

    /// More than half of the budget is used: stalled subscribers are to be cut off before others lose frames.
    package var isPressed: Bool { held > budget / 2 }

    /// How often memory was refused.
    package var refused: UInt64 { refusals.load(ordering: .relaxed) }

    /// Gives the message so many bytes of its own. The closure writes them.
    ///
    /// - Returns: false when the budget or the machine has no memory left; the message is empty then.
    package func fill(
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

    /// Gives the message the bytes of a received message, without a copy. The received message must not be used any
    /// more.
    ///
    /// - Returns: false when the budget has no room; the message is empty then.
    package func lend(_ message: Message, _ source: Message) -> Bool {
        message.removeAll()
        guard take(source.count) else { return false }
        let loan = Loan(source, self)
        return source.withUnsafeBytes { bytes in (try? message.borrow(bytes, from: loan)) != nil }
    }

    /// Counts bytes that cannot be refused any more.
    package func add(_ bytes: Int) { taken.add(bytes, ordering: .relaxed) }

    package func giveBack(_ bytes: Int) { taken.subtract(bytes, ordering: .relaxed) }

    private func take(_ bytes: Int) -> Bool {
        let (_, sum) = taken.add(bytes, ordering: .relaxed)
        if sum <= budget { return true }
        giveBack(bytes)
        refusals.add(1, ordering: .relaxed)
        return false
    }
}
