import BusServer
import LinuxIO
import Testing
import ZeroMQ

@testable import Delivery

@Suite("When a media socket is looked at for its subscribers' news", .timeLimit(.minutes(1)))
struct SubscriptionPollerTests {
    private static let interval: Int64 = 33_000_000

    private final class Desk {
        let loop: Loop
        let publisher: Socket
        let subscriber: Socket
        private(set) var heard: [[UInt8]] = []
        private(set) var watch: SubscriptionPoller?
        private(set) var time = MonotonicClock.now()
        var onHeard: (() -> Void)?

        init() throws {
            let context = try Context()
            loop = try Loop()
            publisher = try Socket(context, .extendedPublish)
            subscriber = try Socket(context, .subscribe)
            try publisher.bind("inproc://media")
            try subscriber.connect("inproc://media")
            watch = SubscriptionPoller(loop, publisher) { [unowned self] in read() }
        }

        // One message in a turn.
        private func read() {
            guard let message = try? publisher.receive()?.first else { return }
            heard.append(Array(message.bytes))
            onHeard?()
        }

        /// Frames of which each is sent.
        func frames(_ count: Int, every interval: Int64 = SubscriptionPollerTests.interval, sends: Bool = true) {
            for _ in 0..<count {
                watch?.hear()
                time += interval
                watch?.frame(at: time)
                if sends { watch?.sends() }
            }
        }

        /// Lets the loop run until this has been heard so often; false after a while.
        func run(untilHeard count: Int) throws -> Bool {
            let end = loop.schedule(afterMilliseconds: 10_000) { [unowned self] in loop.stop() }
            onHeard = { [unowned self] in if heard.count >= count { loop.stop() } }
            if heard.count < count { try loop.run() }
            loop.cancel(end)
            return heard.count >= count
        }
    }

    @Test("libzmq isn't listened to while frames go out quickly, and news is heard with the next frame")
    func rest() throws {
        let desk = try Desk()
        #expect(desk.watch?.isListening == true)
        desk.frames(20)
        #expect(desk.watch?.isListening == false)
        try desk.subscriber.subscribe("frame/cam0/native/")
        desk.frames(1)
        #expect(desk.heard == [[1] + Array("frame/cam0/native/".utf8)])
        #expect(desk.watch?.isListening == false)
    }

    @Test("when no more frames come, libzmq is listened to again")
    func stall() throws {
        let desk = try Desk()
        desk.frames(20)
        #expect(desk.watch?.isListening == false)
        try desk.subscriber.subscribe("ack/1/")
        #expect(try desk.run(untilHeard: 1))
        #expect(desk.watch?.isListening == true)
    }

    @Test("it is listened to where frames come slowly, and where none of them is sent")
    func slow() throws {
        let desk = try Desk()
        desk.frames(20, every: 100_000_000)
        #expect(desk.watch?.isListening == true)
        desk.frames(20, sends: false)
        #expect(desk.watch?.isListening == true)
        desk.frames(20)
        #expect(desk.watch?.isListening == false)
        desk.frames(2, sends: false)
        #expect(desk.watch?.isListening == true)
    }

    @Test("more news than fits into one turn is read by the loop")
    func flood() throws {
        let desk = try Desk()
        desk.frames(20)
        for number in 0..<100 { try desk.subscriber.subscribe("frame/cam0/\(number)/") }
        desk.frames(1)
        #expect(desk.heard.count == 1)
        #expect(desk.watch?.isListening == true)
        #expect(try desk.run(untilHeard: 100))
    }
}
