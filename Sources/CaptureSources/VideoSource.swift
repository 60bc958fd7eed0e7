public import CaptureCore
public import LinuxIO

/// What went wrong at a device, for the caller to act on. The text names the operation and the driver's word for it.
public struct SourceError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Kind: Hashable, Sendable {
        /// The device is gone (`ENODEV`, or `EINVAL`/`EIO` from a running queue).
        case disconnected
        /// Another program holds or streams it (`EBUSY`).
        case inUse
        /// The device refuses this format, rate or value (`EINVAL`, `ERANGE`).
        case refused
        /// A control can't be set in the present mode (`EACCES`, inactive or read-only), or is busy.
        case controlBusy
        /// The bus or memory has no room (`ENOSPC`, `ENOMEM`).
        case noResources
        /// No permission to open the node (`EACCES`, `EPERM`).
        case notPermitted
        /// It is there, and gives nothing.
        case silent
        /// Everything else.
        case failed
    }

    public var kind: Kind
    /// What was attempted: `VIDIOC_S_FMT`, `open`.
    public var operation: String
    /// The kernel's error number, 0 where there is none.
    public var errno: Int32
    /// One sentence for people.
    public var message: String
    /// The control concerned, where it is one.
    public var control: String?
    /// Other programs that have the device, as far as they can be seen: for ``Kind/inUse``.
    public var holders: [DeviceHolder] = []
    /// What is wrong with what the device is made of, as a part of a sentence: of one that can't be plugged in.
    public var lack: String?

    public init(_ kind: Kind, operation: String, errno: Int32 = 0, message: String, control: String? = nil) {
        self.kind = kind
        self.operation = operation
        self.errno = errno
        self.message = message
        self.control = control
    }

    public var description: String { "\(operation): \(message)" }
}

/// Told at the beginning and at the end of each request that a source makes to its driver, on the thread that makes it.
public typealias RequestObserver = @Sendable () -> Void

/// A camera as the worker sees it. V4L2 devices and virtual cameras are its implementations, and the worker can't tell them apart.
///
/// Every call may block for seconds in a driver, so all of them are made on one thread, the device thread, one after the
/// other. Frames do not come from here but from the ``FrameStream`` that ``startStreaming(_:)`` returns, on the loop thread.
public protocol VideoSource: AnyObject {
    /// Known without opening.
    var identity: DeviceIdentity { get }

    /// Opens the device and reads what it can do. Opening an open device is allowed and reads again.
    func open() throws(SourceError) -> DeviceDescription

    /// Lets go of the device, so that its light goes out and other programs can have it. Harmless when closed. The stream is stopped first.
    func close()

    /// The format that is set now (`VIDIOC_G_FMT`).
    func activeFormat() throws(SourceError) -> FormatSelection

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

    /// Sets up buffers in the memory that `allocate` makes, queues as many as may be, and starts (`REQBUFS`, `QBUF`, `STREAMON`).
    ///
    /// The memory is held until the device can't write to it any more, whatever becomes of the stream.
    func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream

    /// Stops and frees the buffers (`STREAMOFF`, `REQBUFS`). Called after the loop has let go of the stream.
    func stopStreaming() throws(SourceError)

    /// Has the next frame of a running stream build on none before it, where its frames build on one another and the device can be
    /// asked (`V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME`). One that can't be makes key frames in its own time.
    func requestKeyframe() throws(SourceError)

    /// The camera has been seen, as these facts say: perhaps in another place than before. It counts at the next opening.
    ///
    /// - Returns: whether that is something new.
    func plug(_ facts: CameraFacts) -> Bool

    /// Has the observer told of each request from now on, so that a driver that hangs in one can be told from one that is asked
    /// many. To be called before the device is opened.
    func watchRequests(_ observer: @escaping RequestObserver)

    /// Makes the device misbehave as asked; only virtual devices can.
    func injectFault(_ fault: VirtualFault) throws(SourceError)
}

extension VideoSource {
    /// A device that is not plugged in and out has nothing new to learn.
    public func plug(_ facts: CameraFacts) -> Bool { false }

    /// A source that asks no driver is judged by its calls.
    public func watchRequests(_ observer: @escaping RequestObserver) {}
}

/// A slot that a device fills: one of a fixed set, made when the stream starts and used again and again.
public final class FrameSlot: @unchecked Sendable {
    // Handed from thread to thread by the loop, which alone decides who has it; never used by two at once but for reading. So exclusive
    // access isn't checked on a frame's way to its readers. That goes for this module alone: others, to which the attribute isn't told,
    // check each property that they use, and read ``told`` on that way.

    /// Its number within the stream's memory (``SlotMemory/slots``).
    public let index: Int
    /// Its memory: one region, which holds all planes of the layout.
    public let regions: [UnsafeMutableRawBufferPointer]
    /// Bytes filled in each region (`bytesused`).
    @exclusivity(unchecked) public var bytesUsed: [Int]
    /// The device's own count of frames since the stream started, with holes for those it lost.
    @exclusivity(unchecked) public var captureSequence: UInt64 = 0
    /// CLOCK_MONOTONIC, nanoseconds.
    @exclusivity(unchecked) public var monotonicTime: Int64 = 0
    /// The device says that the picture is damaged (`V4L2_BUF_FLAG_ERROR`).
    @exclusivity(unchecked) public var isCorrupt = false

    public init(index: Int, regions: [UnsafeMutableRawBufferPointer]) {
        self.index = index
        self.regions = regions
        bytesUsed = Array(repeating: 0, count: regions.count)
    }

    /// What the device tells of the frame in a slot: each as the slot's own property of that name.
    public struct Told: Sendable {
        public var bytesUsed: [Int]
        public var captureSequence: UInt64
        public var monotonicTime: Int64
        public var isCorrupt: Bool
    }

    /// All that the device tells of the frame, read at once.
    public var told: Told {
        Told(
            bytesUsed: bytesUsed, captureSequence: captureSequence, monotonicTime: monotonicTime, isCorrupt: isCorrupt)
    }
}

/// Which row of the picture a frame's time belongs to (`V4L2_BUF_FLAG_TSTAMP_SRC_MASK`), and that it isn't the driver's at all.
public enum TimestampSource: String, Hashable, Sendable {
    case startOfExposure, endOfFrame
    /// The driver gives no monotonic time: it is taken when the frame is dequeued.
    case dequeue
}

/// The running queue of a device, used on the loop thread only. No call blocks.
public protocol FrameStream: AnyObject {
    /// How each frame lies in its slot.
    var layout: FrameLayout { get }
    /// What the device really runs at; nil where it doesn't say.
    var frameDuration: FrameDuration? { get }
    var timestampSource: TimestampSource { get }
    /// How frames come into the slots.
    var memory: FrameMemory { get }
    /// All slots of the stream's memory, by their number there.
    var slots: [FrameSlot] { get }
    /// To be polled for input; readable (or in error) means that ``dequeue()`` has something to say.
    var descriptor: Int32 { get }
    /// The next filled slot, or nil when there is none yet (`VIDIOC_DQBUF`). An error means that this stream is over.
    func dequeue() throws(SourceError) -> FrameSlot?
    /// Gives the device a slot to fill that its memory gave out (`VIDIOC_QBUF`). An error means that the stream goes on without it.
    func enqueue(_ slot: FrameSlot) throws(SourceError)
}
