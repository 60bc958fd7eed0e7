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
                "generation": 1, "frameDuration": "1/30", "controls": [],
                "activeFormat": ["pixelFormat": .string(pixelFormat), "width": 640, "height": 360],
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
        var read: [UInt64: [UInt8]] = [:]
        var compared = 0
        while compared < 5 {
            let frame = try #require(try rings.next(timeout: .seconds(20)))
            if let bytes = rings.use(frame, { Array($0) }) { read[frame.record.captureSequence] = bytes }
            let message = try subscriber.next { $0.topic == topic }
            let header = try FrameHeader(message.header)
            guard let bytes = read[header.captureSequence] else { continue }
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
        let slot = try #require(ring.take())
        ring.slots[slot].initializeMemory(as: UInt8.self, repeating: 9)
        let job = FrameJob(
            slot: slot, regions: [UnsafeRawBufferPointer(ring.slots[slot])], bytesUsed: [58],
            facts: FrameFacts(captureSequence: 0, monotonic: 1, realtime: 2))
        #expect(ring.publish(job, generation: 1, dropped: 0, .endOfFrame)?.place.stamp == 2)
        let frame = try #require(reader.poll())
        #expect(frame.record.bytes == 64)
        let bytes = reader.use(frame) { Array($0) }
        #expect(bytes == Array(repeating: 9, count: 58) + Array(repeating: 0, count: 6))
        // Too little of it is no frame.
        let other = try #require(ring.take())
        let short = FrameJob(slot: other, regions: job.regions, bytesUsed: [40], facts: job.facts)
        #expect(ring.publish(short, generation: 1, dropped: 0, .endOfFrame) == nil)
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
