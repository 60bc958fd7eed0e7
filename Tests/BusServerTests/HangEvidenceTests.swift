import LinuxIO
import Testing

@testable import BusServer

/// When a silent process hangs, and when it is only slow.
@Suite struct HangEvidenceTests {
    private static let look: Int64 = 300_000_000
    private static let second: Int64 = 1_000_000_000
    private static let idle = ThreadTimes(
        state: .sleeping, processor: 5_000_000_000, queued: 7, turns: 11, majorFaults: 3)

    /// Looks at a process whose thread 1 runs its loop, 2 carries its reports, and 3 does something else, from its
    /// state before on, each look after the last one.
    ///
    /// - Parameter change: what happened to the threads of the process and of the watching one until the look of that
    ///   number.
    private func findings(
        _ count: Int, every interval: Int64 = look, due: Int64 = look, isReadable: Bool = true,
        isWatcherReadable: Bool = true, idle: ThreadTimes = idle,
        _ change: (Int, _ threads: inout [Int32: ThreadTimes], _ watchersThreads: inout [Int32: ThreadTimes]) -> Void
    ) -> [HangEvidence.Finding] {
        var evidence = HangEvidence(thread: 1, watchersThread: 8, stillLooks: 5, limit: 10 * Self.second)
        var threads: [Int32: ThreadTimes] = [1: idle, 2: idle, 3: idle]
        threads[2]?.name = "ZMQbg/IO/0"
        var watchersThreads: [Int32: ThreadTimes] = [8: Self.idle, 9: Self.idle, 10: Self.idle]
        watchersThreads[8]?.state = .runnable
        watchersThreads[9]?.name = "ZMQbg/IO/0"
        return (0...count).map { number in
            if number > 0 { change(number, &threads, &watchersThreads) }
            return evidence.add(
                HangEvidence.Look(
                    time: 42 + Int64(number) * interval, threads: isReadable ? threads : nil,
                    watchersThreads: isWatcherReadable ? watchersThreads : nil), interval: due)
        }
    }

    private func runs(_ thread: inout ThreadTimes?, _ time: Int64 = 1000) {
        thread?.processor += time
        thread?.turns? += 1
    }

    @Test(arguments: [ThreadTimes.State.sleeping, .stopped])
    func `a loop that does not run although it could hangs at the fifth look`(_ state: ThreadTimes.State) {
        let found = findings(5) { _, threads, _ in threads[1]?.state = state }
        #expect(found == Array(repeating: .undecided, count: 5) + [.hangs])
    }

    @Test func `a process that can't be read is judged by the time alone`() {
        #expect(findings(40, isReadable: false) { _, _, _ in }.firstIndex(of: .hangs) == 34)
    }

    @Test func `a watcher that can read nothing judges nothing`() {
        let found = findings(1000, isReadable: false, isWatcherReadable: false) { _, _, _ in }
        #expect(found.dropFirst().allSatisfy { $0 == .held(.watcher) })
    }

    @Test func `a loop that waits for a processor is held, and so is one whose reports wait`() {
        // Until it runs the kernel has not accounted how long it waits.
        let waits = findings(1000) { _, threads, _ in threads[1]?.state = .runnable }
        #expect(waits.dropFirst().allSatisfy { $0 == .held(.processor) })
        // It has waited, and now sleeps for a moment.
        let waited = findings(1000) { _, threads, _ in
            threads[1]?.queued? += Self.look / 4
            runs(&threads[1])
        }
        #expect(waited.dropFirst().allSatisfy { $0 == .held(.processor) })
        let reports = findings(1000) { _, threads, _ in
            threads[2]?.state = .runnable
            runs(&threads[1])
        }
        #expect(reports.dropFirst().allSatisfy { $0 == .held(.processor) })
    }

    @Test func `a thread that was caught running does not wait`() {
        let found = findings(40) { _, threads, _ in
            threads[1]?.state = .runnable
            runs(&threads[1], Self.look / 10)
        }
        #expect(found.dropFirst().prefix(33).allSatisfy { $0 == .undecided })
        #expect(found.firstIndex(of: .hangs) == 34)
    }

    @Test(arguments: [ThreadTimes.State.sleeping, .stopped])
    func `other threads do not hide a loop that hangs`(_ state: ThreadTimes.State) {
        let found = findings(5) { _, threads, _ in
            threads[1]?.state = state
            threads[3]?.state = .runnable
            threads[3]?.queued? += Self.look
            threads[3]?.majorFaults += 1
        }
        #expect(found.last == (state == .stopped ? .hangs : .undecided))
        // A lock may be theirs: so a loop that sleeps gets the whole limit.
        let starving = findings(40) { _, threads, _ in
            threads[1]?.state = state
            threads[3]?.state = .blocked
        }
        #expect(starving.firstIndex(of: .hangs) == (state == .stopped ? 5 : 34))
        // Nor for ever does a thread of libzmq that gets no processor.
        let late = findings(100) { _, threads, _ in
            threads[1]?.state = state
            threads[2]?.state = .runnable
        }
        #expect(late.firstIndex(of: .hangs) == 34)
    }

    @Test func `where the kernel accounts no time in the queue, the thread's state says it`() {
        let idle = ThreadTimes(state: .runnable, processor: 20_000_000, majorFaults: 0)
        let found = findings(1000, idle: idle) { number, threads, _ in
            // A tick now and then.
            if number % 7 == 0 { threads[1]?.processor += 10_000_000 }
            threads[2]?.state = .sleeping
        }
        #expect(found.dropFirst().allSatisfy { $0 == .held(.processor) })
        // A loop that needs less than a tick seems to sleep, and is given the whole limit.
        let asleep = ThreadTimes(state: .sleeping, processor: 20_000_000, majorFaults: 0)
        #expect(findings(40, idle: asleep) { _, _, _ in }.firstIndex(of: .hangs) == 34)
    }

    @Test func `a loop that spins hangs when it has used up its time, on a busy machine later`() {
        let alone = findings(40) { _, threads, _ in
            threads[1]?.state = .runnable
            threads[1]?.processor += Self.look
        }
        #expect(alone.firstIndex(of: .hangs) == 34)
        let beside = findings(400) { _, threads, _ in
            threads[1]?.state = .runnable
            runs(&threads[1], Self.look / 10)
            threads[1]?.queued? += Self.look * 9 / 10
        }
        #expect(beside.firstIndex(of: .hangs) == 334)
        #expect(beside[1] == .held(.processor))
    }

    @Test func `a loop that runs now and then is given the whole limit`() {
        let found = findings(40) { number, threads, _ in if number % 3 == 0 { runs(&threads[1]) } }
        #expect(found.firstIndex(of: .hangs) == 34)
    }

    @Test func `looks that find it held begin the count anew`() {
        let found = findings(20) { number, threads, _ in
            guard number % 4 == 0 else { return }
            threads[1]?.queued? += Self.look
            runs(&threads[1])
        }
        #expect(!found.contains(.hangs))
    }

    @Test func `pages that come from the disk hold it`() {
        let found = findings(1000) { _, threads, _ in
            threads[1]?.state = .blocked
            threads[1]?.majorFaults += 1
        }
        #expect(found.dropFirst().allSatisfy { $0 == .held(.disk) })
    }

    @Test func `one page may take long, and a call of a driver does not hold it for ever`() {
        let page = findings(40) { number, threads, _ in
            threads[1]?.state = .blocked
            if number % 30 == 0 { threads[1]?.majorFaults += 1 }
        }
        #expect(page.dropFirst().allSatisfy { $0 == .held(.disk) })
        let driver = findings(40) { _, threads, _ in threads[1]?.state = .blocked }
        #expect(driver.firstIndex(of: .hangs) == 34)
    }

    @Test func `a watcher that is late itself blames nobody that runs`() {
        func late(_ change: (inout [Int32: ThreadTimes]) -> Void) -> [HangEvidence.Finding] {
            findings(100) { number, threads, watchersThreads in
                if number % 3 == 0 { runs(&threads[1]) }
                change(&watchersThreads)
            }
        }
        let looks = findings(100, every: 2 * Self.look + 1) { _, threads, _ in runs(&threads[1]) }
        for found in [looks, late { $0[9]?.state = .runnable }, late { $0[8]?.queued? += Self.look }] {
            #expect(found.dropFirst().allSatisfy { $0 == .held(.watcher) })
        }
        // Threads that carry no reports don't make it late.
        #expect(findings(5) { _, _, watchersThreads in watchersThreads[10]?.state = .runnable }.last == .hangs)
    }

    @Test func `a watcher that is always late finds a stopped process in the end`() {
        let found = findings(100) { _, threads, watchersThreads in
            threads[1]?.state = .stopped
            watchersThreads[8]?.queued? += Self.look
        }
        #expect(found.firstIndex(of: .hangs) == 34)
    }

    @Test func `waits for the disk, for drivers and for the watcher end after ten minutes, others do not`() {
        let looks = Int(600 * Self.second / Self.look)
        let pages = findings(looks) { _, threads, _ in
            threads[1]?.state = .blocked
            threads[1]?.majorFaults += 1
        }
        // One call of a driver after another.
        let calls = findings(looks) { number, threads, _ in
            threads[1]?.state = .blocked
            if number % 5 == 0 { runs(&threads[1]) }
        }
        let watcher = findings(looks) { _, threads, watchersThreads in
            runs(&threads[1])
            watchersThreads[9]?.state = .runnable
        }
        for found in [pages, calls, watcher] { #expect(found.firstIndex(of: .hangs) == looks) }
        let processor = findings(2 * looks) { _, threads, _ in threads[1]?.state = .runnable }
        #expect(!processor.contains(.hangs))
    }

    @Test func `a machine that stood still for an hour says nothing`() {
        #expect(findings(1, every: 3600 * Self.second) { _, _, _ in } == [.undecided, .held(.watcher)])
    }

    @Test func `threads that come and go say nothing`() {
        let found = findings(5) { number, threads, watchersThreads in
            threads[Int32(number + 100)] = ThreadTimes(
                name: "ZMQbg/IO/1", state: .runnable, processor: 0, queued: 0, turns: 1, majorFaults: 9)
            threads[2] = nil
            watchersThreads[9] = nil
            threads[Int32(number + 99)] = nil
        }
        #expect(found.last == .hangs)
    }
}
