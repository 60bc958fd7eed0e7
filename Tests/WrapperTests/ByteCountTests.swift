import Testing
import ZeroMQ

@Suite struct ByteCountTests {
    @Test func `bytes are counted until who got them lets them go`() throws {
        let context = try Context()
        let (one, other) = (try Socket(context, .pair), try Socket(context, .pair))
        try one.bind("inproc://counted")
        try other.connect("inproc://counted")
        let (ofOne, ofAll) = (ByteCount(), ByteCount())
        let sent = [UInt8](repeating: 7, count: 10_000)

        try {
            let original = Message()
            try original.allocate(count: sent.count)
            original.withUnsafeMutableBytes { $0.copyBytes(from: sent) }
            let counted = Message()
            try counted.share(original, countedIn: [ofOne, ofAll])
            #expect(try other.send(counted))
        }()
        #expect([ofOne.bytes, ofAll.bytes] == [sent.count, sent.count])

        var frames: [Message] = []
        #expect(try one.receive(into: &frames) == 1)
        #expect(frames.first.map { Array($0.bytes) } == sent)
        #expect(ofOne.bytes == sent.count)
        frames = []
        #expect([ofOne.bytes, ofAll.bytes] == [0, 0])
    }
}
