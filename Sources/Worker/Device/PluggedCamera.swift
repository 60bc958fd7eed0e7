public import CaptureCore
public import CaptureSources

/// One camera of the machine's, under whatever node it has when it is opened.
///
/// Which camera that is, the coordinator says: by the place where it is plugged in now. A node's number goes to whoever
/// comes next; so the place is looked at at each opening, on the device thread like every other call that a driver may
/// hold up.
public final class PluggedCamera: VideoSource {
    public private(set) var identity: DeviceIdentity
    private var facts: CameraFacts
    private var camera: V4L2Camera?
    private var onRequest: RequestObserver = {}

    /// - Parameter facts: how it was seen last.
    public init(uniqueID: String, facts: CameraFacts) {
        self.facts = facts
        identity = facts.identity(uniqueID: uniqueID)
    }

    public func plug(_ facts: CameraFacts) -> Bool {
        defer { self.facts = facts }
        return facts != self.facts
    }

    public func watchRequests(_ observer: @escaping RequestObserver) { onRequest = observer }

    public func open() throws(SourceError) -> DeviceDescription {
        let camera = if let camera { camera } else { try find() }
        let description = try camera.open()
        self.camera = camera
        return description
    }

    public func close() {
        camera?.close()
        camera = nil
    }

    private func find() throws(SourceError) -> V4L2Camera {
        let found: CameraFacts?
        do throws(SourceError) {
            found = try V4L2Discovery.find(facts, onRequest: onRequest)
        } catch {
            throw identity.node.map(error.namingHolders) ?? error
        }
        guard let found else {
            throw SourceError(
                .disconnected, operation: "open", message: "\(identity.localizedName) is not plugged in at \(facts.bus)"
            )
        }
        facts = found
        identity = found.identity(uniqueID: identity.uniqueID)
        let camera = V4L2Camera(identity)
        camera.watchRequests(onRequest)
        return camera
    }

    private func opened(_ operation: String) throws(SourceError) -> V4L2Camera {
        guard let camera else { throw SourceError(.failed, operation: operation, message: "not open") }
        return camera
    }

    public func activeFormat() throws(SourceError) -> FormatSelection { try opened("VIDIOC_G_FMT").activeFormat() }

    public func formatDescription() throws(SourceError) -> FormatDescription {
        try opened("VIDIOC_G_FMT").formatDescription()
    }

    public func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try opened("VIDIOC_TRY_FMT").tryFormat(selection)
    }

    public func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try opened("VIDIOC_S_FMT").setFormat(selection)
    }

    public func frameDuration() throws(SourceError) -> FrameDuration? { try opened("VIDIOC_G_PARM").frameDuration() }

    public func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        try opened("VIDIOC_S_PARM").setFrameDuration(duration)
    }

    public func controls() throws(SourceError) -> [CaptureControl] { try opened("VIDIOC_QUERY_EXT_CTRL").controls() }

    public func controlValues() throws(SourceError) -> [String: ControlValue] {
        try opened("VIDIOC_G_EXT_CTRLS").controlValues()
    }

    public func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        try opened("VIDIOC_S_EXT_CTRLS").setControl(name, to: value)
    }

    public func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority {
        try opened("VIDIOC_S_PRIORITY").setPriority(isRecord: isRecord)
    }

    public func events() throws(SourceError) -> (any DeviceEventQueue)? {
        try opened("VIDIOC_SUBSCRIBE_EVENT").events()
    }

    public func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        try opened("VIDIOC_STREAMON").startStreaming(allocate)
    }

    public func requestKeyframe() throws(SourceError) { try opened("VIDIOC_S_EXT_CTRLS").requestKeyframe() }

    public func stopStreaming() throws(SourceError) { try camera?.stopStreaming() }

    public func injectFault(_ fault: VirtualFault) throws(SourceError) { try opened("fault").injectFault(fault) }
}
