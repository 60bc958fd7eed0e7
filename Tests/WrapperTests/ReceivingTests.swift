import Testing
import ZeroMQ

@Suite struct ReceivingTests {
    private let one: Socket
    private let other: Socket

    init() throws {
        let context = try Context()
        (one, other) = (try Socket(context, .pair), try Socket(context, .pair))
        try one.bind("inproc://receiving")
        try other.connect("inproc://receiving")
    }

    @Test func `messages of any length are received into the same frames`() throws {
        var frames: [Message] = []
        #expect(try one.receive(into: &frames) == nil)
        for count in [3, 1, 2, 5, 1] {
            let sent = (0..<count).map { [UInt8](repeating: UInt8($0), count: $0 * 100) }
            #expect(try other.send(frames: sent))
            let received = try #require(try one.receive(into: &frames))
            #expect(frames.prefix(received).map { Array($0.bytes) } == sent)
        }
        #expect(frames.count == 5)
        #expect(try one.receive(into: &frames) == nil)
    }

    @Test func `of a message with too many frames one more than are wanted is kept`() throws {
        var frames: [Message] = []
        #expect(try other.send(frames: (0..<10).map { [UInt8($0)] }))
        #expect(try other.send(frames: [[77]]))
        #expect(try one.receive(into: &frames, maximumFrames: 3) == 4)
        #expect(frames.prefix(3).map { Array($0.bytes) } == [[0], [1], [2]])
        // The rest is no message of its own.
        #expect(try one.receive(into: &frames, maximumFrames: 3) == 1)
        #expect(frames.first.map { Array($0.bytes) } == [77])
    }
}
