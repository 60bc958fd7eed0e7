import LinuxIO
import Synchronization
import Testing

@testable import Recorder

@Suite struct SampleQueueTests {
    private static func queue(bytes: Int = 1024, time: Int64 = 1_000, samples: Int = 8) throws -> SampleQueue {
        try SampleQueue(SampleQueue.Limits(bytes: bytes, time: time, samples: samples), wake: Semaphore())
    }

    private static func push(_ queue: SampleQueue, _ number: Int, count: Int = 64) -> SampleQueue.Outcome {
        queue.push(Sample(time: Int64(number), sequence: UInt64(number)), count: count) { room in
            for index in room.indices { room[index] = UInt8(truncatingIfNeeded: number + index) }
            return room.count == count
        }
    }

    /// The number of the oldest, whose bytes are as they were put in.
    private static func pop(_ queue: SampleQueue) -> Int? {
        queue.pop { sample, bytes in
            let number = Int(sample.sequence)
            #expect(bytes.indices.allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: number + $0) })
            return number
        }
    }

    @Test func givesWhatCameInItsOrderAlsoAroundTheEnd() throws {
        let queue = try Self.queue()
        var (pushed, popped) = (0, 0)
        // Sizes that don't go into the memory evenly, and now more and now less of them waiting.
        for round in 0..<500 {
            for _ in 0..<(round % 7) where Self.push(queue, pushed, count: 1 + pushed * 37 % 300) == .taken {
                pushed += 1
            }
            for _ in 0..<(round % 5) {
                guard let number = Self.pop(queue) else { break }
                #expect(number == popped)
                popped += 1
            }
        }
        while Self.pop(queue) == popped { popped += 1 }
        #expect(pushed == popped && pushed > 300)
        #expect(queue.count == 0)
    }

    @Test func isBoundedInBytes() throws {
        let queue = try Self.queue(bytes: 256)
        #expect(Self.push(queue, 0, count: 257) == .full, "it never fits")
        for number in 0..<4 { #expect(Self.push(queue, number) == .taken) }
        #expect(Self.push(queue, 4) == .full)
        #expect(Self.pop(queue) == 0)
        #expect(Self.push(queue, 5) == .taken, "there is room again")
        #expect(Self.push(queue, 6) == .full)
        for number in [1, 2, 3, 5] { #expect(Self.pop(queue) == number) }
    }

    @Test func isBoundedInTimeAndNumber() throws {
        let queue = try Self.queue(time: 10, samples: 3)
        #expect(Self.push(queue, 0) == .taken)
        #expect(Self.push(queue, 10) == .taken)
        #expect(Self.push(queue, 11) == .full, "too long after the oldest")
        #expect(Self.pop(queue) == 0)
        #expect(Self.push(queue, 11) == .taken)
        #expect(Self.push(queue, 12) == .taken)
        #expect(Self.push(queue, 13) == .full, "too many")
    }

    @Test func keepsNothingOfWhatWasWithdrawn() throws {
        let queue = try Self.queue()
        #expect(queue.push(Sample(time: 0), count: 10) { _ in false } == .withdrawn)
        #expect(queue.first == nil && queue.count == 0)
        #expect(Self.push(queue, 1) == .taken)
        #expect(Self.pop(queue) == 1)
    }

    @Test func givesWhatIsInAfterItsEndAndTakesNoMore() throws {
        let queue = try Self.queue()
        #expect(Self.push(queue, 1) == .taken)
        queue.close()
        #expect(Self.push(queue, 2) == .closed)
        #expect(Self.pop(queue) == 1)
        #expect(Self.pop(queue) == nil)
    }

    @Test func closesAtATime() throws {
        let queue = try Self.queue()
        for number in 0..<4 { #expect(Self.push(queue, number * 10) == .taken) }
        // What is later than the end is taken out again, but for what somebody looks at.
        _ = queue.pop { sample, _ in
            #expect(sample.time == 0)
            queue.close(at: 25)
        }
        #expect(queue.isClosed && queue.count == 2)
        #expect(Self.push(queue, 24) == .closed, "one that was later has been there")
        #expect(Self.pop(queue) == 10 && Self.pop(queue) == 20 && Self.pop(queue) == nil)

        let other = try Self.queue()
        #expect(Self.push(other, 1) == .taken)
        other.close(at: 20)
        #expect(!other.isClosed, "something of before may come still")
        #expect(Self.push(other, 19) == .taken)
        #expect(Self.push(other, 20) == .closed)
        #expect(other.isClosed && Self.push(other, 21) == .closed)
        #expect(Self.pop(other) == 1 && Self.pop(other) == 19 && Self.pop(other) == nil)

        // Nor is that lost which is being looked at, although it is later.
        let last = try Self.queue()
        #expect(Self.push(last, 7) == .taken)
        _ = last.pop { _, _ in last.close(at: 3) }
        #expect(last.count == 0 && Self.push(last, 8) == .closed)
    }

    @Test func moreThanThereIsIsAnError() {
        #expect(throws: SystemError.self) { try Self.queue(bytes: .max / 2) }
    }

    @Test func isForTwoThreads() throws {
        let wake = Semaphore()
        let queue = try SampleQueue(SampleQueue.Limits(bytes: 4096, time: .max, samples: 16), wake: wake)
        let count = 20_000
        let taken = Mutex(0)
        let isOver = Mutex(false)
        let thread = try NamedThread(name: "push") {
            for number in 0..<count where Self.push(queue, number, count: 1 + number % 700) == .taken {
                taken.withLock { $0 += 1 }
            }
            isOver.withLock { $0 = true }
            wake.signal()
        }
        var (last, seen) = (-1, 0)
        while true {
            let isEnd = isOver.withLock { $0 }
            while let number = Self.pop(queue) {
                #expect(number > last)
                (last, seen) = (number, seen + 1)
            }
            if isEnd { break }
            wake.wait(until: MonotonicClock.now() + 10_000_000_000)
        }
        thread.join()
        #expect(seen == taken.withLock { $0 } && seen > 0)
    }
}
