import CV4L2
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// Queues of drivers that misbehave.
@Suite struct V4L2StreamTests {
    let device = V4L2ScriptedDevice()

    /// A driver with so many buffers of 100 bytes a plane.
    private func has(buffers: UInt32, planes: UInt32 = 1) {
        device.on(.requestBuffers) { (answer: inout v4l2_requestbuffers) in
            if answer.count > 0 { answer.count = buffers }
            return 0
        }
        device.on(.queryBuffer) { (answer: inout v4l2_buffer) in
            if answer.type == V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue {
                answer.length = 100
            } else {
                for plane in 0..<Int(planes) { answer.m.planes[plane].length = 100 }
                answer.length = planes
            }
            answer.flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
            return 0
        }
    }

    private func stream(_ type: V4L2BufferType = .capture, planes: Int = 1) throws -> V4L2CopyingStream {
        let format = V4L2Format(
            type: type, width: 10, height: 10, pixelFormat: fourCC("GREY"),
            planes: Array(repeating: .init(bytesPerLine: 10, sizeImage: 100), count: planes))
        device.on(.queueBuffer) { (_: inout v4l2_buffer) in 0 }
        let queue = try V4L2BufferQueue(device, type, count: 4)
        let plan = V4L2SlotPlan(format, regions: queue.buffers[0].map(\.count))
        return V4L2CopyingStream(
            queue, plan, try PrivateSlots(4, bytes: plan.bytes), frameDuration: nil, descriptor: -1)
    }

    private func delivers(_ fill: @escaping (inout v4l2_buffer) -> Void) {
        device.on(.dequeueBuffer) { (answer: inout v4l2_buffer) in
            answer.flags = UInt32(V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
            answer.timestamp.tv_sec = 5
            answer.bytesused = 100
            fill(&answer)
            return 0
        }
    }

    @Test(arguments: [UInt32(0), 1])
    func tooFewBuffers(_ count: UInt32) {
        has(buffers: count)
        #expect(throws: V4L2Error(errno: ENOMEM, operation: "VIDIOC_REQBUFS", device: device.path)) {
            _ = try stream()
        }
        #expect(device.mappings.isEmpty)
        #expect(device.calls["VIDIOC_REQBUFS"] == 2)
    }

    @Test func asManyAsTheDriverGives() throws {
        has(buffers: 9)
        let queue = try V4L2BufferQueue(device, .capture, count: 4)
        #expect(queue.buffers.map { $0.map(\.count) } == Array(repeating: [100], count: 9))
    }

    /// What was mapped before the failure is given back.
    @Test func failureHalfWay() {
        has(buffers: 4)
        device.on(.queryBuffer) { (answer: inout v4l2_buffer) in
            answer.length = 100
            return answer.index < 2 ? 0 : EINVAL
        }
        #expect(throws: V4L2Error(errno: EINVAL, operation: "VIDIOC_QUERYBUF", device: device.path)) {
            _ = try stream()
        }
        #expect(device.mappings.isEmpty)
    }

    @Test func memoryLivesAsLongAsTheStream() throws {
        has(buffers: 3, planes: 2)
        var stream: V4L2CopyingStream? = try stream(.captureMultiplanar, planes: 2)
        #expect(device.mappings.count == 6)
        #expect(stream?.slots.count == 4)
        stream = nil
        #expect(device.mappings.isEmpty)
    }

    @Test func bufferThatDoesNotExist() throws {
        has(buffers: 4)
        let stream = try stream()
        delivers { $0.index = 4 }
        let error = #expect(throws: SourceError.self) { _ = try stream.dequeue() }
        #expect(error?.kind == .failed)
        #expect(error?.errno == EPROTO)
    }

    @Test func moreBytesThanThereAre() throws {
        has(buffers: 4)
        let stream = try stream()
        delivers { $0.bytesused = .max }
        #expect(try stream.dequeue()?.bytesUsed == [100])
    }

    /// A header before the picture isn't part of it; the pictures of all regions come together in the slot.
    @Test func headerBeforeThePicture() throws {
        has(buffers: 4, planes: 2)
        let stream = try stream(.captureMultiplanar, planes: 2)
        // The mappings of the first buffer: the first region's is told from the second's by what it is filled with.
        let regions = device.mapped.prefix(2)
        for (region, memory) in regions.enumerated() {
            for index in 0..<100 { memory[index] = UInt8(region * 100 + index) }
        }
        delivers { buffer in
            buffer.m.planes[0].bytesused = 99
            buffer.m.planes[0].data_offset = 4
            buffer.m.planes[1].bytesused = 50
            buffer.m.planes[1].data_offset = 20
        }
        let slot = try #require(try stream.dequeue())
        #expect(stream.layout.planes.map(\.offset) == [0, 100])
        // The first region's last line is short of 5 bytes of padding, the second's of all lines but three.
        #expect(slot.bytesUsed == [130])
        let picture = Array(slot.regions[0].prefix(130))
        #expect(picture == Array(4..<99) + Array(repeating: 0, count: 5) + Array(120..<150))
        // A first region of which more is missing: the frame ends there.
        delivers { $0.m.planes[0].bytesused = 80 }
        #expect(try stream.dequeue()?.bytesUsed == [80])
    }

    @Test func nothingYet() throws {
        has(buffers: 4)
        let stream = try stream()
        device.on(.dequeueBuffer) { (_: inout v4l2_buffer) in EAGAIN }
        #expect(try stream.dequeue() == nil)
    }

    @Test(arguments: [
        (EIO, SourceError.Kind.disconnected), (EINVAL, .disconnected), (ENODEV, .disconnected), (EPIPE, .failed),
    ])
    func end(_ number: Int32, _ kind: SourceError.Kind) throws {
        has(buffers: 4)
        let stream = try stream()
        device.on(.dequeueBuffer) { (_: inout v4l2_buffer) in number }
        let error = #expect(throws: SourceError.self) { _ = try stream.dequeue() }
        #expect(error?.kind == kind)
        #expect(error?.operation == "VIDIOC_DQBUF")
    }

    /// Times of another clock, or none at all, are no use to anyone who compares them.
    @Test(arguments: [
        (V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC, 5, TimestampSource.endOfFrame),
        (V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_TSTAMP_SRC_SOE, 5, .startOfExposure),
        (V4L2_BUF_FLAG_TIMESTAMP_UNKNOWN, 5, .dequeue), (V4L2_BUF_FLAG_TIMESTAMP_COPY, 5, .dequeue),
        (V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC, 0, .dequeue), (V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC, Int.min, .dequeue),
    ])
    func timestamps(_ flags: Int32, _ seconds: Int, _ source: TimestampSource) throws {
        has(buffers: 4)
        let stream = try stream()
        #expect(stream.timestampSource == .endOfFrame)
        delivers { buffer in
            buffer.flags = UInt32(flags)
            buffer.timestamp.tv_sec = seconds
        }
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let slot = try #require(try stream.dequeue())
        #expect(stream.timestampSource == source)
        let before = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
        if source == .dequeue {
            #expect(slot.monotonicTime >= before)
        } else {
            #expect(slot.monotonicTime == 5_000_000_000)
        }
    }

    @Test func damage() throws {
        has(buffers: 4)
        let stream = try stream()
        delivers { $0.flags |= UInt32(V4L2_BUF_FLAG_ERROR) }
        #expect(try stream.dequeue()?.isCorrupt == true)
        delivers { _ in }
        #expect(try stream.dequeue()?.isCorrupt == false)
    }

    @Test func sequences() {
        func counts(_ numbers: [UInt32]) -> [UInt64] {
            var counter = V4L2SequenceCounter()
            return numbers.map { counter.extended($0) }
        }
        #expect(counts([0, 1, 2, 5]) == [0, 1, 2, 5])
        #expect(counts([7, 8, 10]) == [0, 1, 3])
        #expect(counts([.max - 1, .max, 0, 3]) == [0, 1, 2, 5])
        // Drivers that don't count, and one that starts again.
        #expect(counts([0, 0, 0]) == [0, 1, 2])
        #expect(counts([100, 101, 0, 1]) == [0, 1, 2, 3])
    }
}
