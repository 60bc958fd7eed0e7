import CameraBusTesting
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

/// The next filled slot; an error where none comes in time.
func nextFrame(_ stream: any FrameStream) throws -> FrameSlot {
    let deadline = Deadline.usual
    while true {
        if let slot = try stream.dequeue() { return slot }
        try waitForInput(stream.descriptor, deadline)
    }
}

/// Until there is something to read, or what waits for it is to look again.
func waitForInput(_ descriptor: Int32, _ deadline: Deadline) throws {
    var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let isInTime = !deadline.hasPassed && poll(&wait, 1, Int32(clamping: deadline.millisecondsLeft)) >= 0
    try #require(isInTime, "no frame has come")
}

extension VideoSource {
    /// Starts a stream with room for so many frames that no reader is too late for them, whatever else the machine has
    /// to do.
    func startStreaming(slots: Int) throws -> any FrameStream {
        try startStreaming { _, bytes throws(SourceError) in try PrivateSlots(slots, bytes: bytes) }
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
