import LinuxIO
import Testing

@testable import BusServer

/// When a silent process hangs, and when it is only slow.
@Suite struct HangEvidenceTests {
    private static let look: Int64 = 300_000_000
    private static let second: Int64 = 1_000_000_000
    private static let idle = ThreadTimes(state: .sleeping, processor: 5_000_000_000, queued: 7, majorFaults: 3)

    /// Looks at a process whose thread 1 runs its loop, from its state before on, each look after the last one.
    ///
    /// - Parameter change: what happened to the threads of the process and of the watching one until the look of that
    ///   number.
    private func findings(
        _ count: Int, isLoading: Bool = false, every interval: Int64 = look, due: Int64 = look, isReadable: Bool = true,
        idle: ThreadTimes = idle,
        _ change: (Int, _ threads: inout [Int32: ThreadTimes], _ watchersThreads: inout [Int32: ThreadTimes]) -> Void
    ) -> [HangEvidence.Finding] {
        var evidence = HangEvidence(
            thread: 1, watchersThread: 8, isLoading: isLoading, stillLooks: 5, limit: 10 * Self.second)
        var threads: [Int32: ThreadTimes] = [1: idle, 2: idle]
        var watchersThreads: [Int32: ThreadTimes] = [8: Self.idle, 9: Self.idle]
        watchersThreads[8]?.state = .runnable
        return (0...count).map { number in
            if number > 0 { change(number, &threads, &watchersThreads) }
            return evidence.add(
                HangEvidence.Look(
                    time: 42 + Int64(number) * interval, threads: isReadable ? threads : nil,
                    watchersThreads: watchersThreads), interval: due)
        }
    }

    @Test(arguments: [ThreadTimes.State.sleeping, .stopped, .blocked])
    func `a thread that does not run although it could hangs at the fifth look`(_ state: ThreadTimes.State) {
        let found = findings(5) { _, threads, _ in threads[1]?.state = state }
        #expect(found == Array(repeating: .undecided, count: 5) + [.hangs])
    }

    @Test func `who can't be read is judged by the time alone`() {
        #expect(findings(5, isReadable: false) { _, _, _ in } == Array(repeating: .undecided, count: 5) + [.hangs])
    }

    @Test(arguments: [Int32(1), 2]) func `a thread that waits for a processor holds it`(_ thread: Int32) {
        // Until it runs the kernel has not accounted how long it waits.
        let waits = findings(1000) { _, threads, _ in threads[thread]?.state = .runnable }
        #expect(waits.dropFirst().allSatisfy { $0 == .held(.processor) })
        // It has waited, and now sleeps for a moment.
        let waited = findings(1000) { _, threads, _ in
            threads[thread]?.queued? += Self.look / 4
            threads[thread]?.processor += 1000
        }
        #expect(waited.dropFirst().allSatisfy { $0 == .held(.processor) })
    }

    @Test func `where the kernel accounts no time in the queue, the thread's state says it`() {
        let idle = ThreadTimes(state: .runnable, processor: 20_000_000, queued: nil, majorFaults: 0)
        let found = findings(1000, idle: idle) { number, threads, _ in
            // A tick now and then.
            if number % 7 == 0 { threads[1]?.processor += 10_000_000 }
            threads[2]?.state = .sleeping
        }
        #expect(found.dropFirst().allSatisfy { $0 == .held(.processor) })
    }

    @Test func `a loop that spins hangs when it has used up its time, on a busy machine later`() {
        let alone = findings(40) { _, threads, _ in
            threads[1]?.state = .runnable
            threads[1]?.processor += Self.look
        }
        #expect(alone.firstIndex(of: .hangs) == 34)
        let beside = findings(400) { _, threads, _ in
            threads[1]?.state = .runnable
            threads[1]?.processor += Self.look / 10
            threads[1]?.queued? += Self.look * 9 / 10
        }
        #expect(beside.firstIndex(of: .hangs) == 334)
        #expect(beside[1] == .held(.processor))
    }

    @Test func `a thread that runs now and then is given the whole limit`() {
        let found = findings(40) { number, threads, _ in if number % 3 == 0 { threads[1]?.processor += 1000 } }
        #expect(found.firstIndex(of: .hangs) == 34)
    }

    @Test func `looks that find it held begin the count anew`() {
        let found = findings(20) { number, threads, _ in if number % 4 == 0 { threads[2]?.queued? += Self.look } }
        #expect(!found.contains(.hangs))
    }

    @Test func `pages that come from the disk hold it`() {
        let found = findings(1000) { _, threads, _ in
            threads[1]?.state = .blocked
            threads[1]?.majorFaults += 1
        }
        #expect(found.dropFirst().allSatisfy { $0 == .held(.disk) })
    }

    @Test func `while it is loaded, a blocked thread waits for the disk, and a sleeping one hangs`() {
        let blocked = findings(1000, isLoading: true) { _, threads, _ in threads[1]?.state = .blocked }
        #expect(blocked.dropFirst().allSatisfy { $0 == .held(.disk) })
        #expect(findings(5, isLoading: true) { _, _, _ in }.last == .hangs)
    }

    @Test func `who is late himself blames nobody`() {
        let late = findings(1000, every: 2 * Self.look + 1) { _, _, _ in }
        #expect(late.dropFirst().allSatisfy { $0 == .held(.watcher) })
        let waits = findings(1000) { _, _, watchersThreads in watchersThreads[9]?.state = .runnable }
        #expect(waits.dropFirst().allSatisfy { $0 == .held(.watcher) })
        let waited = findings(1000) { _, _, watchersThreads in watchersThreads[8]?.queued? += Self.look }
        #expect(waited.dropFirst().allSatisfy { $0 == .held(.watcher) })
    }

    @Test func `threads that come and go say nothing`() {
        let found = findings(5) { number, threads, watchersThreads in
            threads[Int32(number + 100)] = ThreadTimes(state: .runnable, processor: 0, queued: 0, majorFaults: 9)
            threads[2] = nil
            watchersThreads[9] = nil
            threads[Int32(number + 99)] = nil
        }
        #expect(found.last == .hangs)
    }
}
