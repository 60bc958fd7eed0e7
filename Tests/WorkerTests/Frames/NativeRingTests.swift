import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import FrameRing
import Glibc
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("The ring that frames are captured in", .serialized, .timeLimit(.minutes(3)))
struct NativeRingTests {
    private func fixture(_ pixelFormat: String) throws -> WorkerFixture {
        try WorkerFixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/5", "controls": [],
                "activeFormat": ["pixelFormat": .string(pixelFormat), "width": 320, "height": 240],
            ]
        } _: {
            VirtualCamera(index: 0)
        }
    }

    @Test("frames in the ring and frames in messages are the same bytes", arguments: ["YUYV", "NV12", "MJPG"])
    func sameBytes(_ pixelFormat: String) throws {
        let worker = try fixture(pixelFormat)
        let rings = try RingConnection(worker.room.directory, "cam0")
        let topic = "frame/cam0/native/"
        let subscriber = try worker.subscriber(topic)
        try worker.coordinator.waitForStatus("where frames are") { $0["memory"] == "virtual" }
        var compared = 0
        while compared < 5 {
            let frame = try #require(try rings.next(timeout: .seconds(20)))
            guard let bytes = rings.use(frame, { Array($0) }) else { continue }
            let message = try subscriber.next {
                $0.topic == topic
                    && $0.header["captureSequence"]?.integer ?? -1 >= Int64(frame.record.captureSequence)
            }
            let header = try FrameHeader(message.header)
            // On a busy machine messages are lost.
            guard header.captureSequence == frame.record.captureSequence else { continue }
            let isSame = bytes == message.payload
            #expect(isSame, "\(header.captureSequence): \(bytes.count) and \(message.payload.count) bytes")
            let ring = try #require(rings.ring)
            #expect(ring.stream == header.stream && ring.rendition == "native")
            if pixelFormat != "MJPG" {
                #expect(
                    ring.planes == header.planes.map { .init(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) })
            }
            compared += 1
        }
    }

    @Test("it is there as long as the stream is, whoever reads, and its count goes on meanwhile")
    func wholeStream() throws {
        let worker = try fixture("YUYV")
        let topic = "frame/cam0/gray:64x0/"
        let subscriber = try worker.subscriber(topic)
        _ = try subscriber.next { $0.topic == topic }
        var names: Set<String> = []
        var last: UInt64 = 0
        for _ in 0..<3 {
            let rings = try RingConnection(worker.room.directory, "cam0")
            let frame = try #require(try rings.next(.newest, timeout: .seconds(20)))
            let ring = try #require(rings.ring)
            names.insert(ring.ring)
            #expect(ring.slots == 12 && ring.keep == 4)
            #expect(frame.record.sequence >= last)
            last = frame.record.sequence + 1
            for _ in 0..<3 { _ = try subscriber.next { $0.topic == topic } }
        }
        #expect(names.count == 1)
        try subscriber.unsubscribe(topic)
        try worker.coordinator.waitForStatus("the end of the stream") { $0["memory"]?.isNull == true }
    }

    @Test("frames that come damaged are not published, and those after them are")
    func damaged() throws {
        let bench = TestBench()
        let worker = try WorkerFixture(bench)
        let rings = try RingConnection(worker.room.directory, "cam0")
        let first = try #require(try rings.next(timeout: .seconds(20)))
        bench.set { $0.damagedFrames = 6 }
        var dropped: UInt64 = 0
        var last = first.record
        while dropped < 6 {
            let frame = try #require(try rings.next(timeout: .seconds(20)))
            #expect(frame.record.sequence == last.sequence + 1 + frame.skipped)
            #expect(frame.record.captureSequence > last.captureSequence)
            dropped = frame.record.dropped
            last = frame.record
        }
        #expect(dropped == 6)
    }

    @Test("a frame whose last line the driver left unfinished ends in zeros, not in an older frame")
    func unfinished() throws {
        let layout = FrameLayout(
            pixelFormat: .grey, dimensions: Dimensions(width: 10, height: 4),
            planes: [PlaneLayout(offset: 0, stride: 16, bytes: 64)])
        let ring = try NativeRing(device: "cam0", layout, bytes: 64)
        let reader = try RingReader(ring.writer.readerDescriptor)
        let slot = try filled(ring, 0, bytes: 58)
        ring.slots[slot.index].initializeMemory(as: UInt8.self, repeating: 9)
        let content = ring.publisher.publish(slot.index, slot.metadata, .endOfFrame)
        #expect(arrival(content)?.publication?.place.stamp == 2)
        let frame = try #require(reader.poll())
        #expect(frame.record.bytes == 64)
        let bytes = reader.use(frame) { Array($0) }
        #expect(bytes == Array(repeating: 9, count: 58) + Array(repeating: 0, count: 6))
        // Too little of it is no frame.
        let short = try filled(ring, 1, bytes: 40)
        #expect(arrival(ring.publisher.publish(short.index, short.metadata, .endOfFrame)) == nil)
    }

    private static let grey = FrameLayout(
        pixelFormat: .grey, dimensions: Dimensions(width: 8, height: 8),
        planes: [PlaneLayout(offset: 0, stride: 8, bytes: 64)])

    /// The next slot that the device may fill, as filled.
    private func filled(_ ring: NativeRing, _ number: UInt64, bytes: Int = 64) throws -> FrameSlot {
        let index = try #require(ring.take())
        let slot = FrameSlot(index: index, regions: [ring.slots[index]])
        slot.bytesUsed = [bytes]
        slot.captureSequence = number
        slot.monotonicTime = MonotonicClock.now()
        return slot
    }

    private func arrival(_ content: FramePublisher.Content) -> FramePublisher.Arrival? {
        if case .whole(let arrival) = content { arrival } else { nil }
    }

    @Test("a device's own thread publishes what it fills, once; nothing that the loop hasn't seen is overwritten")
    func ownThread() throws {
        let ring = try NativeRing(device: "cam0", Self.grey, bytes: 64, generation: 7)
        let reader = try RingReader(ring.writer.readerDescriptor)
        #expect(NativeRing.queued <= NativeRing.keep)
        var waiting: [FrameSlot] = []
        for number in 0..<12 as Range<UInt64> {
            let slot = try filled(ring, number)
            // Every third comes damaged.
            slot.isCorrupt = number % 3 == 2
            let realtime = MonotonicClock.realtime()
            ring.filled(slot, .dequeue)
            if slot.isCorrupt {
                #expect(reader.poll() == nil)
            } else {
                let record = try #require(reader.poll()).record
                #expect(record.captureSequence == number && record.sequence == number - number / 3)
                #expect(record.dropped == number / 3 && record.generation == 7)
                #expect(record.timestampSource == .dequeue && record.monotonic == slot.monotonicTime)
                #expect(abs(record.realtime - realtime) < 5_000_000_000)
            }
            waiting.append(slot)
            // The loop is as late as it can be: all that the device may have is filled, and waits for it.
            guard waiting.count == NativeRing.queued else { continue }
            #expect(ring.take() == nil)
            let next = waiting.removeFirst()
            ring.taken()
            let content = ring.publisher.content(of: next.index, next.metadata, .dequeue)
            #expect(reader.poll() == nil, "it was published before")
            #expect((arrival(content) == nil) == next.isCorrupt)
            if next.isCorrupt { ring.writer.putBack(next.index) }
            if let arrival = arrival(content) {
                #expect(arrival.frame.facts.captureSequence == next.captureSequence)
                let publication = try #require(arrival.publication)
                let loan = try #require(ring.writer.lend(publication.place.slot), "it is still there")
                loan.giveBack()
            }
        }
        for slot in waiting {
            ring.taken()
            _ = ring.publisher.content(of: slot.index, slot.metadata, .dequeue)
        }
        // What no thread of the device's has published is, when the loop takes it.
        let late = try filled(ring, 12)
        #expect(arrival(ring.publisher.content(of: late.index, late.metadata, .endOfFrame)) != nil)
        #expect(reader.poll()?.record.captureSequence == 12)
        // And nothing any more when the stream is over, though the device goes on for a moment.
        ring.publisher.end()
        ring.filled(try filled(ring, 13), .dequeue)
        #expect(reader.poll() == nil)
    }

    @Test("which of the frames that build on one another are published the loop decides")
    func chained() throws {
        let layout = FrameLayout(
            pixelFormat: .h264, dimensions: Dimensions(width: 8, height: 8),
            planes: [PlaneLayout(offset: 0, stride: 0, bytes: 64)])
        let ring = try NativeRing(device: "cam0", layout, bytes: 64)
        let reader = try RingReader(ring.writer.readerDescriptor)
        let slot = try filled(ring, 0)
        ring.filled(slot, .startOfExposure)
        #expect(reader.poll() == nil)
        ring.taken()
        let content = ring.publisher.publish(slot.index, slot.metadata, .startOfExposure, isKeyframe: true)
        #expect(arrival(content)?.frame.facts.isKeyframe == true)
        #expect(reader.poll()?.record.isKeyframe == true)
    }

    @Test("what fits into no ring is refused")
    func impossible() {
        let layout = FrameLayout(
            pixelFormat: .grey, dimensions: Dimensions(width: 4, height: 4),
            planes: [PlaneLayout(offset: 8, stride: 4, bytes: 9000)])
        for (layout, bytes) in [
            (layout, 100), (layout, Int.max),
            (FrameLayout(pixelFormat: .grey, dimensions: .init(width: 0, height: 0), planes: []), 1),
        ] {
            #expect(throws: SourceError.self) { _ = try NativeRing(device: "cam0", layout, bytes: bytes) }
        }
    }

    @Test("a program that the worker starts doesn't get its memory")
    func closeOnExec() throws {
        let layout = try #require(FrameLayout.packed(.yuyv, Dimensions(width: 64, height: 48)))
        let ring = try NativeRing(device: "cam0", layout, bytes: layout.totalBytes)
        var count = 0
        for descriptor in 0..<Int32(1024) {
            var link = [UInt8](repeating: 0, count: 256)
            let length = readlink("/proc/self/fd/\(descriptor)", &link, link.count)
            guard length > 0, String(decoding: link.prefix(length), as: UTF8.self).contains("camerabus-ring") else {
                continue
            }
            count += 1
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            // And whoever gets it can't write through it.
            #expect(fcntl(descriptor, F_GETFL) & O_ACCMODE == O_RDONLY)
        }
        #expect(count >= 1)
        withExtendedLifetime(ring) {}
    }
}
