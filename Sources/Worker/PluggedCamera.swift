public import CaptureCore
public import CaptureSources

/// The camera of a `uniqueID`, wherever it is plugged in when it is opened.
///
/// A node's number goes to whoever comes next; so the camera is looked for at each opening, on the device thread like
/// every other call that a driver may hold up.
public final class PluggedCamera: VideoSource {
    public private(set) var identity: DeviceIdentity
    private var camera: V4L2Camera?

    /// - Parameter node: where it was found last.
    public init(uniqueID: String, node: String) {
        identity = DeviceIdentity(
            uniqueID: uniqueID, localizedName: node, type: .external, position: .unspecified, node: node, driver: "",
            bus: "")
    }

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
        let survey = V4L2Discovery.survey()
        if let found = survey.cameras.first(where: { $0.uniqueID == identity.uniqueID }) {
            identity = found
            return V4L2Camera(found)
        }
        if let node = identity.node, let error = survey.unreadable[node] {
            throw error.namingHolders(of: node)
        }
        throw SourceError(
            .disconnected, operation: "open", message: "no camera with the id \(identity.uniqueID) is plugged in")
    }

    private func opened(_ operation: String) throws(SourceError) -> V4L2Camera {
        guard let camera else { throw SourceError(.failed, operation: operation, message: "not open") }
        return camera
    }

    public func activeFormat() throws(SourceError) -> FormatSelection { try opened("VIDIOC_G_FMT").activeFormat() }

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

    public func startStreaming() throws(SourceError) -> any FrameStream {
        try opened("VIDIOC_STREAMON").startStreaming()
    }

    public func stopStreaming() throws(SourceError) { try camera?.stopStreaming() }

    public func injectFault(_ fault: VirtualFault) throws(SourceError) { try opened("fault").injectFault(fault) }
}
