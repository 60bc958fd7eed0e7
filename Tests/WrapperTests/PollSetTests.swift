import Glibc
import LinuxIO
import Testing
import ZeroMQ

@Suite struct PollSetTests {
    /// Two sockets that are connected.
    private static func pair(_ context: Context, _ endpoint: String) throws -> (Socket, Socket) {
        let (one, other) = (try Socket(context, .pair), try Socket(context, .pair))
        try one.bind(endpoint)
        try other.connect(endpoint)
        return (one, other)
    }

    @Test func `a socket that holds a message is told again and again, until it is empty`() throws {
        let (one, other) = try Self.pair(try Context(), "inproc://again")
        for number in UInt8(1)...3 { try other.send([number]) }
        let set = try PollSet([.socket(one)])
        for number in UInt8(1)...3 {
            try set.wait(timeout: 10_000)
            #expect(set.isReady(0))
            // Nobody takes it in this turn.
            try set.wait(timeout: 10_000)
            #expect(set.isReady(0))
            #expect(try one.receive()?.first.map { Array($0.bytes) } == [number])
        }
        try set.wait(timeout: 0)
        #expect(!set.isReady(0))
    }

    @Test func `what came while a socket was used for something else is told`() throws {
        let (one, other) = try Self.pair(try Context(), "inproc://use")
        let set = try PollSet([.socket(one)])
        for number in 0..<100 {
            try set.wait(timeout: 0)
            #expect(!set.isReady(0))
            try other.send([UInt8(number)])
            // That takes notice of the message, and with it its descriptor's word of it.
            _ = one.readiness()
            try one.send([0])
            try set.wait(timeout: 10_000)
            try #require(set.isReady(0))
            #expect(try one.receive()?.first.map { Array($0.bytes) } == [UInt8(number)])
            _ = try other.receive()
        }
    }

    @Test func `a message from another thread ends the wait`() throws {
        let context = try Context()
        let waiting = try Socket(context, .pair)
        try waiting.bind("inproc://wake")
        let set = try PollSet([.socket(waiting)])
        let thread = try NamedThread(name: "other") {
            guard let socket = try? Socket(context, .pair), (try? socket.connect("inproc://wake")) != nil else {
                return
            }
            _ = try? socket.send([7])
        }
        try set.wait(timeout: 10_000)
        thread.join()
        #expect(set.isReady(0))
        #expect(try waiting.receive()?.first.map { Array($0.bytes) } == [7])
    }

    @Test
    func `a descriptor and a socket that are ready at the same time are both told, at the latest in the next turn`()
        throws
    {
        let (one, other) = try Self.pair(try Context(), "inproc://both")
        let event = try EventDescriptor()
        let set = try PollSet([.socket(one), .descriptor(event.rawValue)])
        try set.wait(timeout: 0)
        #expect(!set.isReady(0) && !set.isReady(1))
        #expect(set.onlyReady == nil)
        event.signal()
        try other.send([1])
        try set.wait(timeout: 10_000)
        #expect(set.isReady(1))
        // The descriptor stays ready, and the socket has its turn all the same.
        try set.wait(timeout: 10_000)
        #expect(set.isReady(0) && set.isReady(1) && set.onlyReady == nil)
        event.drain()
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == 0)
        _ = try one.receive()
        try set.wait(timeout: 0)
        #expect(!set.isReady(0) && !set.isReady(1))
    }

    @Test func `a wait for nothing ends when its time is over, not before`() throws {
        let (one, _) = try Self.pair(try Context(), "inproc://nothing")
        let set = try PollSet([.socket(one)])
        let start = MonotonicClock.now()
        try set.wait(timeout: 20)
        #expect(!set.isReady(0))
        #expect(MonotonicClock.now() - start >= 19_000_000)
    }

    @Test func `one descriptor can be waited on for input and for urgent data`() throws {
        let event = try EventDescriptor()
        let set = try PollSet([.urgent(event.rawValue), .descriptor(event.rawValue)])
        event.signal()
        try set.wait(timeout: 10_000)
        #expect(!set.isReady(0) && set.isReady(1))
        event.drain()
        try set.wait(timeout: 0)
        #expect(!set.isReady(0) && !set.isReady(1))
    }

    @Test func `what can be read at any time, and what is closed, is told at once and again`() throws {
        let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        let set = try PollSet([.descriptor(file), .descriptor(-1)])
        for _ in 0..<2 {
            try set.wait(timeout: 10_000)
            #expect(set.isReady(0) && set.isReady(1))
        }
    }

    @Test func `what is added is told, what is removed is not, and the others keep their indices`() throws {
        let events = try (0..<4).map { _ in try EventDescriptor() }
        let (one, other) = try Self.pair(try Context(), "inproc://added")
        let set = try PollSet([.descriptor(events[0].rawValue), .descriptor(events[1].rawValue)])
        for event in events { event.signal() }
        try other.send([1])
        try set.wait(timeout: 10_000)
        #expect(set.isReady(0) && set.isReady(1))
        set.remove(0)
        #expect(!set.isReady(0))
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == 1)
        let socket = set.add(.socket(one))
        let third = set.add(.descriptor(events[2].rawValue))
        #expect(Set([1, socket, third]).count == 3 && set.count == 3)
        #expect(!set.isReady(socket) && !set.isReady(third))
        var told = Set<Int>()
        for _ in 0..<3 {
            try set.wait(timeout: 10_000)
            told.formUnion((0..<set.count).filter(set.isReady))
        }
        #expect(told == [1, socket, third])
        set.remove(socket)
        set.remove(1)
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == third)
        set.remove(third)
        set.remove(third)
        try set.wait(timeout: 0)
        #expect(set.onlyReady == nil)
    }

    @Test func `what waits beside another for the same descriptor goes on when that is removed`() throws {
        let event = try EventDescriptor()
        let set = try PollSet([.descriptor(event.rawValue), .urgent(event.rawValue)])
        let again = set.add(.descriptor(event.rawValue))
        event.signal()
        set.remove(1)
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == again)
        set.remove(again)
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == 0)
        set.remove(0)
        try set.wait(timeout: 0)
        #expect(set.onlyReady == nil)
    }

    /// As when a child process has it still.
    @Test func `what was closed before it was removed is not told, and not mixed up with what has its number`() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let copy = ends[0]
        // A number that nobody else is given meanwhile: new descriptors have the lowest that are free, and
        // HandedOnSockets has its own.
        let place = Int32(min(CurrentProcess.raiseDescriptorLimit(), 8192)) - 64
        ends[0] = fcntl(copy, F_DUPFD_CLOEXEC, place)
        try #require(ends[0] >= place)
        defer { for descriptor in [copy, ends[1]] { close(descriptor) } }
        #expect(write(ends[1], "x", 1) == 1)
        let set = try PollSet([.descriptor(ends[0])])
        try set.wait(timeout: 10_000)
        #expect(set.isReady(0))
        close(ends[0])
        set.remove(0)
        let event = try EventDescriptor()
        // Another file under the number.
        try #require(dup2(event.rawValue, ends[0]) == ends[0])
        defer { close(ends[0]) }
        let index = set.add(.descriptor(ends[0]))
        for _ in 0..<2 {
            try set.wait(timeout: 0)
            #expect(!set.isReady(index))
        }
        event.signal()
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == index)
        event.drain()
        try set.wait(timeout: 0)
        #expect(set.onlyReady == nil)

        // And where the one that was closed is removed after the other has come.
        close(ends[0])
        let next = try EventDescriptor()
        try #require(dup2(next.rawValue, ends[0]) == ends[0])
        let late = set.add(.descriptor(ends[0]))
        set.remove(index)
        next.signal()
        try set.wait(timeout: 10_000)
        #expect(set.onlyReady == late)
    }

    @Test func `more sources than are told at a time all have their turn`() throws {
        let events = try (0..<40).map { _ in try EventDescriptor() }
        let set = try PollSet(events.map { .descriptor($0.rawValue) })
        for event in events { event.signal() }
        var told = Set<Int>()
        for _ in 0..<events.count where told.count < events.count {
            try set.wait(timeout: 10_000)
            for index in events.indices where set.isReady(index) {
                told.insert(index)
                events[index].drain()
            }
        }
        #expect(told.count == events.count)
    }
}
