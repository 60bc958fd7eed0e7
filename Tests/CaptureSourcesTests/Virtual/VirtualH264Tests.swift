import CameraBusTesting
import CaptureCore
import CaptureSources
import Imaging
import Testing

/// Key frames of a virtual camera's H.264. That decoders read it is ffmpeg's to say (`ProcessTests`).
@Suite struct VirtualH264Tests {
    private func isKeyframe(_ slot: FrameSlot) -> Bool {
        let frame = H264Stream.beginning(of: UnsafeRawBufferPointer(rebasing: slot.regions[0][..<slot.bytesUsed[0]]))
        #expect(frame.hasPicture)
        // With each key frame come its parameter sets.
        #expect(frame.isKeyframe == frame.hasSequenceParameters)
        return frame.isKeyframe
    }

    @Test func makesAKeyFrameEverySecond() throws {
        let camera = try openCamera(0, .h264, 320, 240, fps: 30)
        let stream = try camera.startStreaming()
        var sinceKeyframe = 0
        var keyframes = 0
        // Frames that a loaded machine loses are none that were made.
        for number in 0..<70 {
            let slot = try nextFrame(stream)
            if isKeyframe(slot) {
                #expect(number == 0 || sinceKeyframe == 29)
                keyframes += 1
                sinceKeyframe = 0
            } else {
                sinceKeyframe += 1
            }
            try stream.enqueue(slot)
        }
        #expect(keyframes == 3)
        try camera.stopStreaming()
    }

    @Test func makesAKeyFrameWhenAsked() throws {
        let camera = try openCamera(0, .h264, 320, 240, fps: 5)
        let stream = try camera.startStreaming()
        let first = try nextFrame(stream)
        #expect(isKeyframe(first))
        try stream.enqueue(first)
        try camera.requestKeyframe()
        // One may be under way.
        let next = try [nextFrame(stream), nextFrame(stream)].map(isKeyframe)
        #expect(next.contains(true))
        try camera.stopStreaming()
        camera.close()
        #expect(throws: SourceError.self) { try camera.requestKeyframe() }
    }
}
