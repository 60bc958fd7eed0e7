import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

/// What a virtual camera does when it is told to fail, as its driver would show it.
@Suite struct VirtualFaultTests {
    private func failure(_ body: () throws -> Void) throws -> SourceError {
        do { try body() } catch let error as SourceError { return error }
        throw TestingError("nothing failed")
    }

    /// Reads until the stream ends.
    private func end(of stream: any FrameStream) throws -> SourceError {
        try failure { for _ in 0..<1000 { try stream.enqueue(nextFrame(stream)) } }
    }

    @Test func anUnpluggedCameraIsGoneForEverybodyWhoHasItOpen() throws {
        let camera = try openCamera()
        let stream = try camera.startStreaming()
        let events = try #require(try camera.events())
        _ = try nextFrame(stream)
        try camera.injectFault(.unplug)
        #expect(try end(of: stream).kind == .disconnected)
        #expect(try failure { _ = try events.next() }.errno == ENODEV)
        #expect(try failure { _ = try camera.controls() }.kind == .disconnected)
        #expect(try failure { _ = try camera.activeFormat() }.errno == ENODEV)
        #expect(try failure { _ = try camera.startStreaming() }.kind == .disconnected)
        camera.close()
        #expect(try failure { _ = try camera.open() }.kind == .disconnected)
    }

    @Test func aCameraThatIsBackHasForgottenWhatWasSet() throws {
        let camera = try openCamera(fps: 120)
        try camera.setControl("brightness", to: .integer(7))
        let selection = try camera.activeFormat()
        try camera.injectFault(.unplug)
        try camera.injectFault(.replug)
        // What is open is of no use any more, though another camera is there.
        #expect(try failure { _ = try camera.controlValues() }.kind == .disconnected)
        camera.close()
        _ = try camera.open()
        #expect(try camera.controlValues()["brightness"] == .integer(0))
        #expect(try camera.activeFormat() != selection)
        _ = try nextFrame(try camera.startStreaming())
        try camera.stopStreaming()
    }

    @Test func noneEndsThem() throws {
        let camera = try openCamera(fps: 120)
        for fault in [
            VirtualFault.stall(milliseconds: nil), .busy(milliseconds: nil), .noSpace(milliseconds: nil), .unplug,
        ] {
            try camera.injectFault(fault)
        }
        try camera.injectFault(.none)
        camera.close()
        _ = try camera.open()
        _ = try nextFrame(try camera.startStreaming())
        try camera.stopStreaming()
    }

    @Test(arguments: [PixelFormat.yuyv, .motionJPEG])
    func soManyFramesAreDamaged(_ pixelFormat: PixelFormat) throws {
        let camera = try openCamera(0, pixelFormat)
        let stream = try camera.startStreaming()
        let whole = try nextFrame(stream)
        #expect(!whole.isCorrupt)
        let bytes = whole.bytesUsed[0]
        try stream.enqueue(whole)
        try camera.injectFault(.corrupt(frames: 3))
        var damaged = 0
        while damaged < 3 {
            let slot = try nextFrame(stream)
            if slot.isCorrupt {
                damaged += 1
                if pixelFormat == .motionJPEG { #expect(slot.bytesUsed[0] < bytes * 3 / 4) }
            }
            try stream.enqueue(slot)
        }
        for _ in 0..<5 {
            let slot = try nextFrame(stream)
            #expect(!slot.isCorrupt)
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
    }

    @Test func thereIsNoRoomOnTheBusUntilThereIs() throws {
        let camera = try openCamera()
        try camera.injectFault(.noSpace(milliseconds: nil))
        for _ in 0..<2 {
            let error = try failure { _ = try camera.startStreaming() }
            #expect(error.kind == .noResources && error.errno == ENOSPC)
        }
        try camera.injectFault(.noSpace(milliseconds: 0))
        _ = try nextFrame(try camera.startStreaming())
        try camera.stopStreaming()
    }

    @Test func aBusyCameraIsSoOnceOrForATime() throws {
        let camera = try openCamera()
        try camera.injectFault(.busy(milliseconds: nil))
        #expect(try failure { _ = try camera.startStreaming() }.errno == EBUSY)
        _ = try camera.startStreaming()
        try camera.stopStreaming()
        try camera.injectFault(.busy(milliseconds: 3_600_000))
        for _ in 0..<2 { #expect(try failure { _ = try camera.startStreaming() }.errno == EBUSY) }
        try camera.injectFault(.busy(milliseconds: 0))
        _ = try camera.startStreaming()
        try camera.stopStreaming()
    }

    /// The mean time between frames once the camera has taken up what it was told, nanoseconds.
    private func pace(_ fault: VirtualFault, fps: Int) throws -> Double {
        let camera = try openCamera(fps: fps)
        try camera.injectFault(fault)
        let stream = try camera.startStreaming()
        // It goes on to tell what was set.
        #expect(stream.frameDuration == FrameDuration(framesPerSecond: fps))
        let first = try nextFrame(stream)
        let (start, number) = (first.monotonicTime, first.captureSequence)
        try stream.enqueue(first)
        var (last, count) = (start, number)
        for _ in 0..<20 {
            let slot = try nextFrame(stream)
            (last, count) = (slot.monotonicTime, slot.captureSequence)
            #expect(slot.monotonicTime <= MonotonicClock.now())
            try stream.enqueue(slot)
        }
        try camera.stopStreaming()
        return Double(last - start) / Double(count - number)
    }

    @Test(arguments: [50, 100, 300]) func framesComeAtAnotherRateThanWasSet(_ percent: Int) throws {
        let time = try pace(.rate(percent: percent), fps: 60)
        #expect(abs(time - 1e9 / 60 / (Double(percent) / 100)) < 2)
    }

    @Test(arguments: [-40_000, 0, 500, 100_000]) func aClockThatRunsFastTakesItsPicturesCloserTogether(_ parts: Int)
        throws
    {
        let time = try pace(.drift(partsPerMillion: parts), fps: 120)
        #expect(abs(time - 1e9 / 120 / (1 + Double(parts) / 1e6)) < 2)
    }

    @Test func aChangeOfPaceLosesNoFrameAndNoTime() throws {
        let camera = try openCamera(fps: 25)
        let stream = try camera.startStreaming(slots: 16)
        var last: (number: UInt64, time: Int64)?
        var gaps: Set<Int64> = []
        for index in 0..<12 {
            if index == 4 { try camera.injectFault(.rate(percent: 200)) }
            let slot = try nextFrame(stream)
            if let last {
                #expect(slot.captureSequence == last.number + 1)
                gaps.insert((slot.monotonicTime - last.time + 500_000) / 1_000_000)
            }
            last = (slot.captureSequence, slot.monotonicTime)
            try stream.enqueue(slot)
        }
        #expect(gaps == [40, 20])
        try camera.stopStreaming()
    }
}
