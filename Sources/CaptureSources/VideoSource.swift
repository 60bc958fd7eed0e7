public import CaptureCore

/// Told at the beginning and at the end of each request that a source makes to its driver, on the thread that makes it.
public typealias RequestObserver = @Sendable () -> Void

/// A camera as the worker sees it. V4L2 devices and virtual cameras are its implementations, and the worker can't tell
/// them apart.
///
/// Every call may block for seconds in a driver, so all of them are made on one thread, the device thread, one after
/// the other. Frames do not come from here but from the ``FrameStream`` that ``startStreaming(_:)`` returns, on the
/// loop thread.
public protocol VideoSource: AnyObject {
    /// Known without opening.
    var identity: DeviceIdentity { get }

    /// Opens the device and reads what it can do. Opening an open device is allowed and reads again.
    func open() throws(SourceError) -> DeviceDescription

    /// Closes the device, so that its light goes out and other programs can use it. Harmless when closed. The
    /// stream is stopped first.
    func close()

    /// The format that is set now (`VIDIOC_G_FMT`).
    func activeFormat() throws(SourceError) -> FormatSelection

    /// What is stated about pictures of the format that is set now. Once a stream runs, its ``FrameStream/layout``
    /// counts.
    func formatDescription() throws(SourceError) -> FormatDescription

    /// What the device would make of this format, changing nothing (`VIDIOC_TRY_FMT`). It may answer with another one.
    func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection

    /// Sets the format and answers what the device made of it (`VIDIOC_S_FMT`). Not while streaming.
    func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection

    /// The frame duration that is set now (`VIDIOC_G_PARM`); nil where the device has none.
    func frameDuration() throws(SourceError) -> FrameDuration?

    /// Sets the frame duration and answers what the device made of it (`VIDIOC_S_PARM`). Not while streaming.
    func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration

    /// The controls with their present flags and ranges, which change with modes (`VIDIOC_QUERY_EXT_CTRL`).
    func controls() throws(SourceError) -> [CaptureControl]

    /// The present value of each readable control, by name (`VIDIOC_G_EXT_CTRLS`).
    func controlValues() throws(SourceError) -> [String: ControlValue]

    /// Sets one control (`VIDIOC_S_EXT_CTRLS`). For a button the value is ignored.
    func setControl(_ name: String, to value: ControlValue) throws(SourceError)

    /// Keeps all other programs from changing anything, until it is called with false or the device is closed
    /// (`VIDIOC_S_PRIORITY`). Answers what is in force then; an error means that the device is gone.
    func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority

    /// What the open device tells by itself from now on; nil when it tells nothing. To be let go of before ``close()``.
    func events() throws(SourceError) -> (any DeviceEventQueue)?

    /// Sets up buffers in the memory that `allocate` makes, queues as many as may be, and starts (`REQBUFS`, `QBUF`,
    /// `STREAMON`).
    ///
    /// The memory is held until the device can't write to it any more, whatever becomes of the stream.
    func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream

    /// Stops and frees the buffers (`STREAMOFF`, `REQBUFS`). Called after the loop has let go of the stream.
    func stopStreaming() throws(SourceError)

    /// Has the next frame of a running stream build on none before it, where its frames build on one another and the
    /// device can be asked (`V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME`). One that can't be makes key frames in its own time.
    func requestKeyframe() throws(SourceError)

    /// The camera has been seen, as these facts say: perhaps in another place than before. It counts at the next
    /// opening.
    ///
    /// - Returns: whether that is something new.
    func plug(_ facts: CameraFacts) -> Bool

    /// Notifies the observer of each request from now on. So a driver that hangs in one request can be distinguished
    /// from one that gets many. To be called before the device is opened.
    func watchRequests(_ observer: @escaping RequestObserver)

    /// Makes the device misbehave as asked; only virtual devices can.
    func injectFault(_ fault: VirtualFault) throws(SourceError)
}

extension VideoSource {
    /// One that states nothing gives what a webcam does.
    public func formatDescription() throws(SourceError) -> FormatDescription {
        let format = try activeFormat()
        return FormatDescription(pixelFormat: format.pixelFormat, dimensions: format.dimensions)
    }

    /// A device that is not plugged in and out has nothing new to learn.
    public func plug(_ facts: CameraFacts) -> Bool { false }

    /// A source that asks no driver is judged by its calls.
    public func watchRequests(_ observer: @escaping RequestObserver) {}
}
