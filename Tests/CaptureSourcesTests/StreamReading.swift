import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

/// A virtual camera, opened, with a format and rate that it takes as they are.
func openCamera(
    _ index: Int = 0, _ pixelFormat: PixelFormat = .nv12, _ width: Int = 320, _ height: Int = 240, fps: Int = 60
) throws -> VirtualCamera {
    let camera = VirtualCamera(index: index)
    _ = try camera.open()
    let wanted = FormatSelection(pixelFormat: pixelFormat, dimensions: Dimensions(width: width, height: height))
    #expect(try camera.setFormat(wanted) == wanted)
    let duration = FrameDuration(framesPerSecond: fps)
    #expect(try camera.setFrameDuration(duration) == duration)
    return camera
}

/// The next filled slot; an error after ten seconds.
func nextFrame(_ stream: any FrameStream) throws -> FrameSlot {
    let deadline = MonotonicClock.now() + 10_000_000_000
    while true {
        if let slot = try stream.dequeue() { return slot }
        let rest = (deadline - MonotonicClock.now()) / 1_000_000
        var wait = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
        try #require(rest > 0 && poll(&wait, 1, Int32(rest)) >= 0, "no frame within ten seconds")
    }
}

/// Until the sensor's clock is there.
func wait(until time: Int64) throws {
    let timer = try TimerDescriptor()
    timer.arm(at: time)
    var wait = pollfd(fd: timer.rawValue, events: Int16(POLLIN), revents: 0)
    while poll(&wait, 1, -1) < 0 {}
}

/// What of the slot is the frame.
func payload(_ slot: FrameSlot) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(slot.regions[0])[..<slot.bytesUsed[0]])
}
