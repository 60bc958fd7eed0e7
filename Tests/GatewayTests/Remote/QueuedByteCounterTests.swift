import Testing
import ZeroMQ

@testable import Gateway

/// What a key may have on its way.
@Suite struct QueuedByteCounterTests {
    @Test func `bytes count for their key until libzmq is done with them, over all its connections`() throws {
        let queuedBytes = QueuedByteCounter(maximum: 10_000)
        let context = try Context()
        let (sender, receiver) = (try Socket(context, .pair), try Socket(context, .pair))
        try sender.bind("inproc://ledger")
        try receiver.connect("inproc://ledger")
        let frame = try Message.of([UInt8](repeating: 7, count: 6000))
        for _ in 0..<2 {
            #expect(queuedBytes.hasRoom(for: "desk"))
            try sender.send(try queuedBytes.counted(frame, for: "desk"))
        }
        #expect(queuedBytes.bytes(of: "desk") == 12_000 && !queuedBytes.hasRoom(for: "desk"))
        #expect(queuedBytes.hasRoom(for: "desk", 4096) && !queuedBytes.hasRoom(for: "desk", 4097))
        #expect(queuedBytes.hasRoom(for: "other"))
        do {
            let taken = try #require(try receiver.receive()?.first)
            #expect(taken.count == 6000 && taken.bytes.first == 7)
            #expect(queuedBytes.bytes(of: "desk") == 12_000)
        }
        #expect(queuedBytes.bytes(of: "desk") == 6000 && queuedBytes.hasRoom(for: "desk"))
        // The frame itself is still whole.
        #expect(frame.count == 6000 && frame.bytes.allSatisfy { $0 == 7 })
    }

    @Test func `what is short isn't counted, and is sent all the same`() throws {
        let queuedBytes = QueuedByteCounter(maximum: 1)
        let counted = try queuedBytes.counted(try Message.of([1, 2, 3]), for: "desk")
        #expect(Array(counted.bytes) == [1, 2, 3] && queuedBytes.bytes(of: "desk") == 0)
    }
}
