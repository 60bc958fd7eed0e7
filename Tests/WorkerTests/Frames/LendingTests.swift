import BusProtocol
import CaptureCore
import CaptureSources
import Delivery
import FrameRing
import JSON
import LinuxIO
import Testing
import ZeroMQ

@testable import Worker

/// Payloads that libzmq reads where they lie, and what becomes of those who never take them.
@Suite("Lending frames", .serialized, .timeLimit(.minutes(2)))
struct LendingTests {
    private static let bytes = 64 * 36

    private func ring() throws -> RenditionRing {
        let layout = try #require(FrameLayout.packed(.grey, Dimensions(width: 64, height: 36)))
        return try RenditionRing(
            device: "cam0", try Rendition(parsing: "native"), stream: "a", layout,
            planes: [.init(offset: 0, stride: 64, bytes: Self.bytes)], orientation: .upright,
            bytes: Self.bytes, lending: PayloadLender.slots,
            sequence: 0)
    }

    private func publish(_ ring: RenditionRing, _ value: UInt8) throws -> RenditionRing.Publication {
        let facts = FrameFacts(captureSequence: UInt64(value), monotonic: 1, realtime: 1)
        return try #require(
            ring.publish(facts, dropped: 0, .startOfExposure, bytes: Self.bytes) { room in
                _ = room.initializeMemory(as: UInt8.self, repeating: value)
            })
    }

    @Test(
        "four frames are lent, others are copied within the budget, and all stay as they were until they are let go of")
    func budget() throws {
        let ring = try ring()
        let lender = PayloadLender(PayloadMemory(budget: 3 * Self.bytes))
        var held: [Message] = []
        for value in 1...UInt8(7) {
            let message = Message()
            #expect(try lender.fill(message, from: ring, publish(ring, value)))
            held.append(message)
        }
        #expect(ring.writer.lentCount == 4 && lender.held == 3 * Self.bytes && lender.memory.isPressed)
        let refused = Message()
        #expect(try !lender.fill(refused, from: ring, publish(ring, 8)))
        #expect(refused.count == 0)
        // The ring goes on below all of them.
        for value in 9...UInt8(60) { _ = try publish(ring, value) }
        for (value, message) in zip(1...UInt8(7), held) {
            #expect(message.count == Self.bytes)
            message.withUnsafeBytes { bytes in #expect(bytes.allSatisfy { $0 == value }) }
        }
        for message in held { message.removeAll() }
        #expect(ring.writer.lentCount == 0 && lender.held == 0 && !lender.memory.isPressed)
        #expect(try lender.fill(refused, from: ring, publish(ring, 61)))
    }

    @Test("a shared message is held until the last one lets go")
    func shared() throws {
        let ring = try ring()
        let lender = PayloadLender(PayloadMemory(budget: 0))
        let (first, second) = (Message(), Message())
        #expect(try lender.fill(first, from: ring, publish(ring, 1)))
        try second.share(first)
        first.removeAll()
        #expect(ring.writer.lentCount == 1)
        second.removeAll()
        #expect(ring.writer.lentCount == 0)
    }

    @Test("a ring that has ended counts as long as something of it is lent, and its memory stays")
    func ended() throws {
        let lender = PayloadLender(PayloadMemory(budget: 1 << 30))
        let message = Message()
        do {
            let ring = try ring()
            #expect(try lender.fill(message, from: ring, publish(ring, 7)))
            ring.writer.close(.ended)
            lender.end(ring.writer)
            #expect(lender.held == ring.writer.plan.size)
        }
        message.withUnsafeBytes { bytes in #expect(bytes.allSatisfy { $0 == 7 }) }
        message.removeAll()
        #expect(lender.held == 0)
    }

    @Test("stopped subscribers are disconnected when memory runs short, and the others continue")
    func cut() throws {
        let worker = try WorkerFixture {
            // 640 x 360, YUYV: more than half of it is held by whoever takes nothing.
            $0.payloadBudget = 8 * 460_800
            $0.configuration = [
                "generation": 1, "frameDuration": "1/30", "controls": [],
                "activeFormat": ["pixelFormat": "YUYV", "width": 640, "height": 360],
            ]
        } _: {
            VirtualCamera(index: 0)
        }
        let topic = "frame/cam0/native/"
        let subscriber = try worker.subscriber(topic, highWaterMark: 1000)
        var stopped: [Subscriber] = []
        // Each holds other frames than those before it.
        for _ in 0..<6 {
            stopped.append(try worker.subscriber(topic, highWaterMark: 1))
            for _ in 0..<6 { _ = try subscriber.next { $0.topic == topic } }
        }
        let before = try FrameHeader(try subscriber.next { $0.topic == topic }.header)
        var most: Int64 = 0
        _ = try worker.coordinator.wait("somebody being cut off", seconds: 30) {
            guard case .alive(let counters) = $0 else { return false }
            most = max(most, counters["heldBytes"]?.integer ?? .max)
            return counters["subscribersCut"]?.integer ?? 0 > 0
        }
        #expect(most > 0 && most <= 8 * 460_800)
        var last = before
        for _ in 0..<60 {
            let next = try FrameHeader(try subscriber.next(seconds: 30) { $0.topic == topic }.header)
            #expect(next.stream == last.stream && next.sequence > last.sequence)
            last = next
        }
        // What was on its way to them is free again.
        _ = try worker.coordinator.wait("memory", seconds: 30) {
            if case .alive(let counters) = $0 { counters["heldBytes"]?.integer ?? .max <= 4 * 460_800 } else { false }
        }
        withExtendedLifetime(stopped) {}
    }
}
