import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import Testing

extension KernelTests {
    /// Frames, and the starting and stopping of their stream.
    @Suite struct Capture {
        /// Formats of one plane and of several, in one region of memory and in several; `NM16` has a header before each
        /// plane.
        static let formats: [String] =
            ["YUYV", "NV12", "422P", "RGB3", "GREY", "Y16"]
            + (KernelRing.topology == .multi ? ["NM12", "YM16", "NM16"] : [])

        @Test(arguments: formats)
        func framesAreV4L2ctls(_ pixelFormat: String) throws {
            let test = try TestCamera()
            let file = URL(filePath: "/tmp/camerabus-\(pixelFormat)-\(ProcessInfo.processInfo.processIdentifier)")
            defer { try? FileManager.default.removeItem(at: file) }
            // v4l2-ctl takes four characters.
            let code = pixelFormat.padding(toLength: 4, withPad: " ", startingAt: 0)
            try test.v4l2ctl(
                "--set-fmt-video", "width=640,height=360,pixelformat=\(code)", "--stream-mmap",
                "--stream-count=1", "--stream-to=\(file.path())")
            let theirs = try Array(Data(contentsOf: file))
            try test.use(pixelFormat, 640, 360)
            let stream = try test.camera.startStreaming()
            // The driver writes into our memory; but not where a frame is in several pieces.
            #expect(stream.memory == (KernelRing.topology == .multi ? .mmap : .userptr))
            let ours = try bytes(nextFrame(stream))
            #expect(ours.count >= 640 * 360 * (pixelFormat == "Y16" ? 2 : 1))
            #expect(ours.count == theirs.count)
            #expect(isSame(ours, theirs), "the bytes of \(pixelFormat) differ")
        }

        /// The same picture in two formats, whose planes the layout must find: colour side by side, and each for
        /// itself.
        @Test(arguments: KernelRing.topology == .multi ? [("NM12", "YM12"), ("NV12", "NM12")] : [("NV12", "YU12")])
        func layoutFindsThePlanes(_ paired: String, _ other: String) throws {
            let test = try TestCamera()
            let (first, second) = (try planes(test, paired), try planes(test, other))
            let isPair = other.hasPrefix("N")
            try #require(first.count == 2 && second.count == (isPair ? 2 : 3))
            #expect(isSame(first[0], second[0]))
            #expect(first[1].count == 640 * 360 / 2)
            if isPair {
                #expect(isSame(first[1], second[1]))
            } else {
                #expect(isSame(stride(from: 0, to: first[1].count, by: 2).map { first[1][$0] }, second[1]))
                #expect(isSame(stride(from: 1, to: first[1].count, by: 2).map { first[1][$0] }, second[2]))
            }
        }

        private func planes(_ test: TestCamera, _ pixelFormat: String) throws -> [[UInt8]] {
            try test.use(pixelFormat, 640, 360)
            let stream = try test.camera.startStreaming()
            let slot = try nextFrame(stream)
            let payload = bytes(slot)
            defer { try? test.camera.stopStreaming() }
            #expect(stream.layout.totalBytes <= payload.count)
            return stream.layout.planes.map { Array(payload.dropFirst($0.offset).prefix($0.bytes)) }
        }

        /// No hole in the numbers and no step back in time, at a rate that vivid keeps in emulation.
        ///
        /// On a busy machine the emulated processor may stand still for longer than a frame, and then vivid itself
        /// loses one. A reader that loses frames does so each time.
        @Test func sequenceIsContiguous() throws {
            let test = try TestCamera()
            try test.use("YUYV", 640, 480)
            var numbers: [UInt64] = []
            for _ in 0..<4 where numbers != Array(0..<75) {
                let stream = try test.camera.startStreaming()
                #expect(stream.timestampSource == .endOfFrame)
                #expect(stream.frameDuration == FrameDuration(1, 25))
                #expect(stream.slots.count >= 4)
                numbers = []
                var times: [Int64] = []
                for _ in 0..<75 {
                    let slot = try nextFrame(stream)
                    #expect(!slot.isCorrupt)
                    #expect(slot.bytesUsed == [640 * 480 * 2])
                    numbers.append(slot.captureSequence)
                    times.append(slot.monotonicTime)
                    try stream.enqueue(slot)
                }
                #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
                var now = timespec()
                clock_gettime(CLOCK_MONOTONIC, &now)
                let age = Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) - (times.last ?? 0)
                // vivid dates the end of a frame some milliseconds after it has filled it.
                #expect(abs(age) < 10_000_000_000, "the times are not of the monotonic clock")
                try test.camera.stopStreaming()
            }
            #expect(numbers == Array(0..<75))
        }

        /// The driver's 32 bits wrap 128 frames after the start, and ours go on as the time does.
        @Test func sequenceGoesOnOverTheWrap() throws {
            let test = try TestCamera()
            try test.set("wrap_sequence_number", .boolean(true))
            try test.use("GREY", 320, 180)
            let stream = try test.camera.startStreaming()
            let first = try nextFrame(stream)
            let (start, period) = (first.monotonicTime, 1_000_000_000 / 60.0)
            #expect(first.captureSequence == 0)
            var last: UInt64 = 0
            try stream.enqueue(first)
            while last < 150 {
                let slot = try nextFrame(stream)
                #expect(slot.captureSequence > last)
                last = slot.captureSequence
                let expected = Double(slot.monotonicTime - start) / period
                #expect(abs(expected - Double(last)) < 5)
                try stream.enqueue(slot)
            }
        }

        @Test func lostFramesLeaveHoles() throws {
            let test = try TestCamera()
            try test.set("percentage_of_dropped_buffers", .integer(50))
            try test.use("GREY", 320, 180)
            let stream = try test.camera.startStreaming()
            var last: UInt64 = 0
            for _ in 0..<60 {
                let slot = try nextFrame(stream)
                last = slot.captureSequence
                try stream.enqueue(slot)
            }
            #expect(last > 65)
        }

        @Test func timestampsMayBeOfTheExposure() throws {
            let test = try TestCamera()
            try test.set("timestamp_source", .integer(1))
            try test.use("GREY", 320, 180)
            let stream = try test.camera.startStreaming()
            #expect(stream.timestampSource == .startOfExposure)
            _ = try nextFrame(stream)
            #expect(stream.timestampSource == .startOfExposure)
        }

        @Test func damagedFrameIsMarked() throws {
            let test = try TestCamera()
            try test.use("GREY", 320, 180)
            let stream = try test.camera.startStreaming()
            try stream.enqueue(try nextFrame(stream))
            try test.set("inject_v4l2_buf_flag_error", .boolean(true))
            var damaged = 0
            for _ in 0..<30 {
                let slot = try nextFrame(stream)
                if slot.isCorrupt { damaged += 1 }
                try stream.enqueue(slot)
            }
            #expect(damaged == 1)
        }

        @Test func startAndStopManyTimes() throws {
            let test = try TestCamera()
            try test.use("YUYV", 320, 180)
            for _ in 0..<20 {
                let stream = try test.camera.startStreaming()
                let slot = try nextFrame(stream)
                #expect(slot.captureSequence == 0)
                try stream.enqueue(slot)
                try test.camera.stopStreaming()
            }
            try test.camera.stopStreaming()
        }

        /// A reader that still has frames when the camera stops keeps them, and the camera starts again beside it.
        @Test func stopWithBuffersInFlight() throws {
            let test = try TestCamera()
            try test.use("YUYV", 640, 360)
            let first = try test.camera.startStreaming()
            let held = [try nextFrame(first), try nextFrame(first)]
            let before = held.flatMap(bytes)
            try test.camera.stopStreaming()
            #expect(isSame(held.flatMap(bytes), before))
            let error = #expect(throws: SourceError.self) { _ = try first.dequeue() }
            #expect(error?.kind == .disconnected)
            _ = try test.camera.setFormat(try test.format("GREY", 320, 180))
            let second = try test.camera.startStreaming()
            for _ in 0..<8 { try second.enqueue(try nextFrame(second)) }
            #expect(isSame(held.flatMap(bytes), before))
        }

        /// With every buffer in a reader's hands there is nothing to dequeue, and nothing is wrong.
        @Test func allBuffersHeld() throws {
            let test = try TestCamera()
            try test.use("GREY", 320, 180)
            let stream = try test.camera.startStreaming()
            var held: [FrameSlot] = []
            for _ in stream.slots { held.append(try nextFrame(stream)) }
            #expect(Set(held.map(\.index)) == Set(stream.slots.map(\.index)))
            #expect(try stream.dequeue() == nil)
            for slot in held { try stream.enqueue(slot) }
            #expect(try nextFrame(stream).captureSequence > UInt64(held.count) - 1)
        }

        @Test func formatIsFixedWhileStreaming() throws {
            let test = try TestCamera()
            try test.use("GREY", 320, 180)
            _ = try test.camera.startStreaming()
            let error = #expect(throws: SourceError.self) {
                _ = try test.camera.setFormat(try test.format("YUYV", 640, 360))
            }
            #expect(error?.kind == .inUse)
            try test.camera.stopStreaming()
            _ = try test.camera.setFormat(try test.format("YUYV", 640, 360))
        }
    }
}
