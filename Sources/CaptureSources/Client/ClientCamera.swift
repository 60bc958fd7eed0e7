public import CaptureCore
import Glibc
public import LinuxIO

/// A client's own frames as a camera: one process sends them over a Unix socket, into the slots of the stream that
/// runs.
///
/// What comes while nobody streams is read and forgotten, so that the client never waits for readers.
public final class ClientCamera: UncontrolledSource {
    public let identity: DeviceIdentity

    private let source: ClientSource
    private let layout: FrameLayout
    private let path: String
    private let mode: UInt32
    private let group: UInt32?
    /// From the first opening on: by then it is known that no other process is this camera.
    private var receiver: ClientReceiver?
    private var isOpen = false

    /// - Parameters:
    ///   - path: of the socket, whose directory exists. It listens from the first opening on.
    ///   - mode: of the socket: who may connect at all. Only the source's owner may send.
    public init(_ source: ClientSource, path: String, mode: UInt32, group: UInt32?) throws(SystemError) {
        guard let layout = source.layout else {
            throw SystemError(code: EINVAL, operation: "source.create", subject: source.name)
        }
        self.source = source
        self.layout = layout
        identity = source.identity
        (self.path, self.mode, self.group) = (path, mode, group)
    }

    deinit { receiver?.end() }

    public func open() throws(SourceError) -> DeviceDescription {
        if receiver == nil {
            do throws(SystemError) {
                receiver = try ClientReceiver(path: path, mode: mode, group: group, owner: source.owner, layout: layout)
            } catch {
                throw SourceError(.noResources, operation: "listen", errno: error.code, message: error.description)
            }
        }
        isOpen = true
        let rates = source.frameDuration.map { [FrameRateRange(discrete: $0)] } ?? []
        let format = CaptureFormat(
            id: "f0", pixelFormat: source.format.pixelFormat, dimensions: source.format.dimensions, frameRates: rates)
        return DeviceDescription(
            identity: identity, formats: [format], controls: [], orientation: source.description.orientation)
    }

    public func close() {
        receiver?.stop()
        isOpen = false
    }

    private func requireOpen(_ operation: String) throws(SourceError) {
        guard isOpen else {
            throw SourceError(.failed, operation: operation, message: "\(identity.bus): not open")
        }
    }

    public func activeFormat() throws(SourceError) -> FormatSelection {
        try requireOpen("VIDIOC_G_FMT")
        return source.format
    }

    public func formatDescription() throws(SourceError) -> FormatDescription {
        try requireOpen("VIDIOC_G_FMT")
        return source.description
    }

    public func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection { source.format }

    public func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection { source.format }

    public func frameDuration() throws(SourceError) -> FrameDuration? { source.frameDuration }

    public func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        if let own = source.frameDuration { return own }
        throw SourceError(
            .refused, operation: "VIDIOC_S_PARM", errno: EINVAL,
            message: "\(identity.bus): the program that publishes its frames sets the rate"
        )
    }

    // MARK: What it has not

    public func injectFault(_ fault: VirtualFault) throws(SourceError) {
        throw SourceError(
            .refused, operation: "fault", errno: EINVAL,
            message: "\(identity.bus): only virtual devices can be made to fail")
    }

    // MARK: Streaming

    public func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        try requireOpen("VIDIOC_STREAMON")
        guard let receiver else { throw SourceError(.failed, operation: "VIDIOC_STREAMON", message: "not open") }
        let queue = try VirtualQueue(try allocate(layout, layout.totalBytes))
        receiver.start(queue)
        return ClientStream(queue, layout, source.frameDuration, receiver)
    }

    public func stopStreaming() throws(SourceError) { receiver?.stop() }
}

/// The running queue of a client's camera.
final class ClientStream: FrameStream {
    let layout: FrameLayout
    let frameDuration: FrameDuration?
    /// As the client had it with its last frame.
    var timestampSource: TimestampSource { receiver.hasTimes ? .startOfExposure : .dequeue }
    var memory: FrameMemory { .virtual }
    var slots: [FrameSlot] { queue.slots }
    var descriptor: Int32 { queue.ready.rawValue }

    private let queue: VirtualQueue
    private let receiver: ClientReceiver

    init(_ queue: VirtualQueue, _ layout: FrameLayout, _ duration: FrameDuration?, _ receiver: ClientReceiver) {
        self.queue = queue
        self.layout = layout
        self.receiver = receiver
        frameDuration = duration
    }

    func dequeue() throws(SourceError) -> FrameSlot? { try queue.dequeue() }

    func enqueue(_ slot: FrameSlot) throws(SourceError) {
        guard queue.enqueue(slot) else {
            throw SourceError(
                .failed, operation: "VIDIOC_QBUF", errno: EINVAL,
                message: "slot \(slot.index) is not one that was dequeued from this stream")
        }
    }
}
