import LinuxIO
import Synchronization
import Testing

@testable import BusServer

/// What takes its time takes it on a thread of its own.
@Suite(.timeLimit(.minutes(5))) struct BackgroundWorkTests {
    /// Work that waits until it is let go on.
    private final class Work: Sendable {
        let begun = Semaphore()
        let mayEnd = Semaphore()
        let done = Mutex<[Int]>([])

        func run(_ order: Int) -> Int {
            begun.signal()
            mayEnd.wait()
            done.withLock { $0.append(order) }
            return order * 10
        }
    }

    @Test func `the loop goes on while the work is done, and the last order counts`() throws {
        let (loop, work) = (try Loop(), Work())
        var outcomes: [Int] = []
        let background = try BackgroundWork<Int, Int>(loop, name: "test", work: work.run) { outcome in
            outcomes.append(outcome)
            if outcomes.count == 2 { loop.stop() } else { work.mayEnd.signal() }
        }
        background.start(1)
        work.begun.wait()
        var turns = 0
        func turn() {
            turns += 1
            background.start(turns + 1)
            guard turns == 5 else {
                loop.schedule(afterMilliseconds: 1) { turn() }
                return
            }
            // Nothing was told so far, though the loop has gone round and round.
            #expect(outcomes.isEmpty)
            work.mayEnd.signal()
        }
        loop.schedule(afterMilliseconds: 1) { turn() }
        try loop.run()
        #expect(outcomes == [10, 60])
        #expect(work.done.withLock { $0 } == [1, 6])
    }

    @Test func `at the end it is waited until what was ordered last is done`() throws {
        let (loop, work) = (try Loop(), Work())
        let background = try BackgroundWork<Int, Int>(loop, name: "test", work: work.run) { _ in
            Issue.record("The loop does not run.")
        }
        background.start(1)
        work.begun.wait()
        background.start(2)
        background.start(3)
        for _ in 1...2 { work.mayEnd.signal() }
        #expect(background.end() == 30)
        #expect(work.done.withLock { $0 } == [1, 3])
        background.start(4)
        #expect(background.end() == nil)
        #expect(work.done.withLock { $0.count } == 2)
    }

    @Test func `no order is lost between the work before it and the end`() throws {
        let loop = try Loop()
        for _ in 0..<500 {
            let background = try BackgroundWork<Int, Int>(loop, name: "test", work: { $0 }, then: { _ in })
            background.start(1)
            background.start(2)
            #expect(background.end() == 2)
        }
    }

    @Test func `nobody waits for work that does not end`() throws {
        let (loop, work) = (try Loop(), Work())
        var background: BackgroundWork<Int, Int>? = try BackgroundWork(loop, name: "test", work: work.run) { _ in
            Issue.record("Nobody is there any more.")
        }
        background?.start(1)
        work.begun.wait()
        background?.start(2)
        background = nil
        work.mayEnd.signal()
        loop.schedule(afterMilliseconds: 20) { loop.stop() }
        try loop.run()
        #expect(work.done.withLock { !$0.contains(2) })
    }
}
