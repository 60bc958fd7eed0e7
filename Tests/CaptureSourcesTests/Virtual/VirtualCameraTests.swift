import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

@Suite struct VirtualCameraTests {
    @Test func isNamedByItsNumber() throws {
        let identity = VirtualCamera(index: 1).identity
        #expect(identity.uniqueID == "virtual-1")
        #expect(identity.localizedName == "Virtual Camera 1")
        #expect(identity.driver == "virtual")
        #expect(identity.bus == "virtual:1")
        #expect(identity.type == .virtual)
        #expect((0..<4).map { VirtualCamera(index: $0).identity.position } == [.back, .front, .external, .external])
    }

    @Test func hasATableOfFormats() throws {
        let formats = try VirtualCamera(index: 0).open().formats
        #expect(formats.map(\.id) == formats.indices.map { "f\($0)" })
        let deep: Set<PixelFormat> = [.bayerRGGB12, .bayerRGGB10Packed, .grey16]
        let others: Set<PixelFormat> = [.yuyv, .nv12, .bgr24, .motionJPEG, .bayerRGGB8, .grey, .h264]
        #expect(Set(formats.map(\.pixelFormat)) == others.union(deep))
        for format in formats {
            let fastest = format.frameRates.map(\.minFrameDuration.framesPerSecond).max()
            let area = format.dimensions.area
            if format.pixelFormat == .h264 || deep.contains(format.pixelFormat) {
                #expect(fastest == 60 && area <= 1920 * 1080)
                continue
            }
            #expect(fastest == (area <= 1280 * 720 ? 240 : area <= 1920 * 1080 ? 60 : 30))
            #expect(format.frameRates.contains { $0.minFrameDuration == FrameDuration(framesPerSecond: 25) })
            #expect(!format.title.isEmpty)
        }
    }

    @Test func answersWithTheNearestFormat() throws {
        let camera = VirtualCamera(index: 0)
        _ = try camera.open()
        #expect(
            try camera.activeFormat()
                == FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 1280, height: 720)))
        #expect(try camera.frameDuration() == FrameDuration(framesPerSecond: 30))
        func answer(_ pixelFormat: PixelFormat, _ width: Int, _ height: Int) throws -> String {
            let wanted = FormatSelection(pixelFormat: pixelFormat, dimensions: Dimensions(width: width, height: height))
            let tried = try camera.tryFormat(wanted)
            return "\(tried.pixelFormat.name) \(tried.dimensions)"
        }
        #expect(try answer(.nv12, 1300, 700) == "NV12 1280x720")
        #expect(try answer(.uyvy, 1280, 720) == "YUYV 1280x720")
        #expect(try answer(.h264, 3840, 2160) == "H264 1920x1080")
        #expect(try answer(.yuyv, Int.max, Int.max) == "YUYV 3840x2160")
        #expect(try answer(.yuyv, Int.min, 0) == "YUYV 320x240")
        #expect(try answer(.grey, 203, 101) == "GREY 200x96")
        #expect(try answer(.grey, 1, Int.max) == "GREY 64x1080")
        // Trying changed nothing.
        #expect(try camera.activeFormat().dimensions.width == 1280)
    }

    @Test func keepsTheRateWithinTheFormats() throws {
        let camera = try openCamera(0, .yuyv, 640, 480, fps: 240)
        let large = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 3840, height: 2160))
        _ = try camera.setFormat(large)
        #expect(try camera.frameDuration() == FrameDuration(framesPerSecond: 30))
        #expect(try camera.setFrameDuration(FrameDuration(framesPerSecond: 1000)) == FrameDuration(framesPerSecond: 30))
        let slow = try #require(FrameDuration(10, 1))
        #expect(try camera.setFrameDuration(slow) == FrameDuration(framesPerSecond: 5))
    }

    @Test func refusesAnotherFormatWhileItStreams() throws {
        let camera = try openCamera()
        let stream = try camera.startStreaming()
        for attempt in [
            { _ = try camera.setFormat(FormatSelection(pixelFormat: .nv12, dimensions: stream.layout.dimensions)) },
            { _ = try camera.setFrameDuration(FrameDuration(framesPerSecond: 5)) },
        ] as [() throws -> Void] {
            let error = #expect(throws: SourceError.self, performing: attempt)
            #expect(error?.kind == .inUse)
            #expect(error?.errno == EBUSY)
        }
        try camera.stopStreaming()
        _ = try camera.setFrameDuration(FrameDuration(framesPerSecond: 5))
    }

    @Test func isNothingWhenClosed() throws {
        let camera = VirtualCamera(index: 0)
        #expect(throws: SourceError.self) { try camera.startStreaming() }
        #expect(throws: SourceError.self) { try camera.controls() }
        camera.close()
        try camera.stopStreaming()
        _ = try camera.open()
        try camera.setControl("brightness", to: .integer(10))
        camera.close()
        _ = try camera.open()
        #expect(try camera.controlValues()["brightness"] == .integer(10))
    }

    // MARK: Faults

    @Test func stallsUntilTold() throws {
        let camera = try openCamera(fps: 240)
        let stream = try camera.startStreaming()
        try stream.enqueue(try nextFrame(stream))
        try camera.injectFault(.stall(milliseconds: nil))
        let stalled = MonotonicClock.now()
        try wait(until: stalled + 10 * 1_000_000_000 / 240)
        // What was under way may still come.
        while let slot = try stream.dequeue() {
            #expect(slot.monotonicTime <= stalled)
            try stream.enqueue(slot)
        }
        // A new stream doesn't help.
        try camera.stopStreaming()
        let again = try camera.startStreaming()
        // A sensor that wakes late makes up for as many frames as there are slots, and counts from when it began.
        try wait(until: MonotonicClock.now() + 250 * 1_000_000_000 / 240)
        #expect(try again.dequeue() == nil)
        try camera.injectFault(.none)
        #expect(try nextFrame(again).captureSequence >= 9)
        try camera.stopStreaming()
    }

    @Test func stallsForATime() throws {
        let camera = try openCamera(fps: 240)
        let start = MonotonicClock.now()
        try camera.injectFault(.stall(milliseconds: 100))
        let stream = try camera.startStreaming()
        #expect(try nextFrame(stream).monotonicTime >= start + 100_000_000)
        try camera.stopStreaming()
        try camera.injectFault(.stall(milliseconds: Int.max))
        try camera.injectFault(.stall(milliseconds: Int.min))
    }

    @Test func isBusyOnce() throws {
        let camera = try openCamera()
        try camera.injectFault(.busy(milliseconds: nil))
        let error = #expect(throws: SourceError.self) { try camera.startStreaming() }
        #expect(error?.kind == .inUse)
        _ = try camera.startStreaming()
        try camera.injectFault(.busy(milliseconds: nil))
        try camera.injectFault(.none)
        _ = try camera.startStreaming()
        camera.close()
    }

    @Test func takesItsTimeWhenSlow() throws {
        let camera = try openCamera()
        try camera.injectFault(.slow(milliseconds: 30))
        for call in [
            { try camera.setControl("gain", to: .integer(1)) },
            { _ = try camera.setFrameDuration(FrameDuration(framesPerSecond: 30)) },
            { _ = try camera.startStreaming() }, { try camera.stopStreaming() }, { _ = try camera.open() },
        ] as [() throws -> Void] {
            let start = MonotonicClock.now()
            try call()
            #expect(MonotonicClock.now() - start >= 30_000_000)
        }
        try camera.injectFault(.none)
    }
}
