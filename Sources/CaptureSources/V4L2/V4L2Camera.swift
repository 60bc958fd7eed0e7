public import CaptureCore
import Glibc
package import Video4Linux

/// A camera of the kernel's: a V4L2 node that captures pictures by streaming, single- or multi-planar.
public final class V4L2Camera: VideoSource {
    public let identity: DeviceIdentity

    private let path: String
    private let bufferCount: Int
    private let connect: (String) throws(V4L2Error) -> any V4L2Device
    private var onRequest: RequestObserver = {}
    private var opened: Opened?
    /// What the running stream's buffers are; nil: nothing streams.
    private var streaming: V4L2Memory?
    /// What the kernel may write to.
    private var slots: (any SlotMemory)?
    /// What selections turned out to be when they were set.
    private var (refusesCrop, cropsWithoutScaling) = (false, false)

    private struct Opened {
        var node: any V4L2Device
        var type: V4L2BufferType
        var controls: V4L2ControlTable
        /// nil: it zooms by itself, or not at all.
        var cropZoom: V4L2CropZoom?
        /// nil: all of the sensor's picture is taken.
        var crop: V4L2CropRectangle?
        /// nil: its points, if it has any, are its own controls.
        var region: V4L2RegionOfInterest?
        var priority = V4L2Priority.interactive

        /// The driver's, and this program's own.
        var allControls: [CaptureControl] {
            controls.controls + (cropZoom == nil ? [] : [V4L2CropZoom.control]) + (crop.map { [$0.control] } ?? [])
                + (region?.controls ?? [])
        }
    }

    /// A camera as ``V4L2Discovery`` found it, closed. `buffers` is how many are asked for when it streams into memory
    /// of its own; the driver decides.
    public convenience init(_ identity: DeviceIdentity, buffers: Int = 4) {
        self.init(identity, buffers: buffers) { path throws(V4L2Error) in try VideoNode(path: path) }
    }

    /// A camera behind something else than a node of the kernel's: `connect` opens it.
    package init(
        _ identity: DeviceIdentity, buffers: Int = 4, connect: @escaping (String) throws(V4L2Error) -> any V4L2Device
    ) {
        self.connect = connect
        self.identity = identity
        path = identity.node ?? ""
        bufferCount = max(4, buffers)
    }

    public func watchRequests(_ observer: @escaping RequestObserver) { onRequest = observer }

    // MARK: Opening

    public func open() throws(SourceError) -> DeviceDescription {
        do throws(V4L2Error) {
            let opened = try look()
            let formats = try V4L2FormatTable.read(opened.node, opened.type)
            self.opened = opened
            return DeviceDescription(identity: identity, formats: formats, controls: opened.allControls)
        } catch {
            // A lost node says ENODEV for ever, also when the camera is back: the next attempt opens anew.
            if error.errno == ENODEV { close() }
            throw SourceError(error, .opening).namingHolders(of: path)
        }
    }

    private func look() throws(V4L2Error) -> Opened {
        let node: any V4L2Device
        if let opened { node = opened.node } else { node = try V4L2WatchedDevice.open(path, onRequest, by: connect) }
        let capability = try node.capability()
        // The number in a node's name goes to whoever comes next: after a replug it may be another camera's.
        guard capability.driver == identity.driver, capability.busInfo == identity.bus,
            let type = capability.captureType
        else { throw V4L2Error(errno: ENODEV, operation: "VIDIOC_QUERYCAP", device: path) }
        let controls = try V4L2ControlTable(node)
        return Opened(
            node: node, type: type, controls: controls,
            cropZoom: cropsWithoutScaling ? nil : try V4L2CropZoom(node, type, controls: controls.controls),
            crop: refusesCrop ? nil : try V4L2CropRectangle(node, type),
            region: try V4L2RegionOfInterest(node, controls: controls.controls),
            priority: opened?.priority ?? .interactive)
    }

    public func close() {
        // Closing the node gives back whatever a failed stop left; only then may the memory go.
        try? stopStreaming()
        opened = nil
        slots = nil
    }

    private func device(_ operation: String) throws(SourceError) -> Opened {
        guard let opened else {
            throw SourceError(.failed, operation: operation, message: "\(path): not open")
        }
        return opened
    }

    // Like `translating`, and says who has the device if that is why.
    private func naming<Result>(
        _ context: SourceError.V4L2Context, _ body: () throws(V4L2Error) -> Result
    ) throws(SourceError) -> Result {
        do { return try body() } catch { throw SourceError(error, context).namingHolders(of: path) }
    }

    // MARK: Format and rate

    public func activeFormat() throws(SourceError) -> FormatSelection {
        let device = try device("VIDIOC_G_FMT")
        return try translating(.configuring) { () throws(V4L2Error) in
            FormatSelection(try device.node.format(device.type))
        }
    }

    public func formatDescription() throws(SourceError) -> FormatDescription {
        let device = try device("VIDIOC_G_FMT")
        return try translating(.configuring) { () throws(V4L2Error) in
            let format = try device.node.format(device.type)
            let description = FormatDescription(format, pixelFormat: PixelFormat(code: format.pixelFormat))
            return try device.crop?.completed(description, device.node, device.type) ?? description
        }
    }

    public func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        let device = try device("VIDIOC_TRY_FMT")
        return try translating(.configuring) { () throws(V4L2Error) in
            FormatSelection(
                try device.node.tryFormat(
                    device.type, width: UInt32(clamping: selection.dimensions.width),
                    height: UInt32(clamping: selection.dimensions.height), pixelFormat: selection.pixelFormat.code))
        }
    }

    public func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        let device = try device("VIDIOC_S_FMT")
        return try naming(.configuring) { () throws(V4L2Error) in
            FormatSelection(
                try device.node.setFormat(
                    device.type, width: UInt32(clamping: selection.dimensions.width),
                    height: UInt32(clamping: selection.dimensions.height), pixelFormat: selection.pixelFormat.code))
        }
    }

    public func frameDuration() throws(SourceError) -> FrameDuration? {
        let device = try device("VIDIOC_G_PARM")
        return try translating(.configuring) { () throws(V4L2Error) in
            try device.node.frameInterval(device.type).flatMap(FrameDuration.init)
        }
    }

    public func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        let device = try device("VIDIOC_S_PARM")
        let answer: FrameDuration?
        do throws(V4L2Error) {
            answer = try device.node.setFrameInterval(device.type, to: V4L2Fraction(duration)).flatMap(
                FrameDuration.init)
        } catch  where error.errno == ENOTTY {
            answer = nil
        } catch { throw SourceError(error, .configuring).namingHolders(of: path) }
        guard let answer else {
            throw SourceError(
                .refused, operation: "VIDIOC_S_PARM", message: "\(path): the device has no frame rate to set")
        }
        return answer
    }

    // MARK: Controls

    public func controls() throws(SourceError) -> [CaptureControl] {
        var device = try device("VIDIOC_QUERY_EXT_CTRL")
        try translating(.configuring) { () throws(V4L2Error) in
            device.controls = try V4L2ControlTable(device.node)
            // Its bounds may be others with another format.
            device.crop = refusesCrop ? nil : try V4L2CropRectangle(device.node, device.type)
        }
        opened = device
        return device.allControls
    }

    public func controlValues() throws(SourceError) -> [String: ControlValue] {
        let device = try device("VIDIOC_G_EXT_CTRLS")
        return try translating(.configuring) { () throws(V4L2Error) in
            var values = try device.controls.values(device.node)
            if let zoom = try device.cropZoom?.value(device.node, device.type) {
                values[V4L2CropZoom.name] = .integer(zoom)
            }
            if let part = try device.crop?.value(device.node, device.type) { values[CropRectangleControl.name] = part }
            if let points = try device.region?.values(device.node) { values.merge(points) { driver, _ in driver } }
            return values
        }
    }

    public func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        let operation = "VIDIOC_S_EXT_CTRLS"
        let device = try device(operation)
        if name == V4L2CropZoom.name, let zoom = device.cropZoom { return try setCropZoom(zoom, value, device) }
        if name == CropRectangleControl.name, let crop = device.crop { return try setCrop(crop, value, device) }
        if let region = device.region {
            let isPoint = try naming(.control(name)) { () throws(V4L2Error) in
                try region.set(name, to: value, device.node)
            }
            if isPoint { return }
        }
        guard let known = device.controls[name] else {
            throw SourceError(
                .refused, operation: operation, errno: EINVAL, message: "\(path): there is no control \(name)",
                control: name)
        }
        // Flags and ranges change with other controls: what was true when the table was read may not be any more.
        let control = try translating(.control(name)) { () throws(V4L2Error) in
            try device.node.control(id: known.id) ?? known
        }
        if let refusal = control.refusal(of: value.v4l2) {
            throw SourceError(
                refusal.kind, operation: operation, errno: refusal.errno, message: "\(name) \(refusal.why)",
                control: name)
        }
        do throws(V4L2Error) {
            try device.node.setValue(of: control, to: value.v4l2)
        } catch {
            var refusal = SourceError(error, .control(name))
            // A driver says EBUSY for a control that is at work, and the kernel for a descriptor of too low a priority.
            if error.errno == EBUSY, let highest = try? device.node.priority(), highest > device.priority {
                refusal.kind = .inUse
            }
            throw refusal.namingHolders(of: path)
        }
    }

    private func setCropZoom(_ zoom: V4L2CropZoom, _ value: ControlValue, _ device: Opened) throws(SourceError) {
        let (operation, name) = ("VIDIOC_S_SELECTION", V4L2CropZoom.name)
        guard let number = value.number, V4L2CropZoom.range.contains(number) else {
            throw SourceError(
                .refused, operation: operation, errno: ERANGE, message: "\(path): \(name) takes a number in its range",
                control: name)
        }
        let isScaled = try naming(.control(name)) { () throws(V4L2Error) in
            try zoom.set(number, device.node, device.type)
        }
        if isScaled { return }
        endCropZoom()
        throw SourceError(
            .refused, operation: operation, errno: EINVAL,
            message: "\(path): the driver doesn't scale what it crops, so it can't zoom", control: name)
    }

    private func setCrop(_ crop: V4L2CropRectangle, _ value: ControlValue, _ device: Opened) throws(SourceError) {
        let (operation, name) = ("VIDIOC_S_SELECTION", CropRectangleControl.name)
        guard let rectangle = PixelRectangle(value), crop.control.bounds?.contains(rectangle) == true else {
            throw SourceError(
                .refused, operation: operation, errno: ERANGE,
                message: "\(path): \(name) takes a rectangle within its bounds", control: name)
        }
        let outcome = try naming(.control(name)) { () throws(V4L2Error) in
            try crop.set(rectangle, device.node, device.type)
        }
        switch outcome {
        case .cropped: return
        case .resized: endCropZoom()
        case .unsupported:
            refusesCrop = true
            opened?.crop = nil
            throw SourceError(
                .refused, operation: operation, errno: EINVAL,
                message: "\(path): the driver's rectangle can't be set", control: name)
        }
    }

    // The driver makes the pictures smaller, and enlarges nothing.
    private func endCropZoom() {
        cropsWithoutScaling = true
        opened?.cropZoom = nil
    }

    // MARK: Beside other programs

    public func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority {
        var device = try device("VIDIOC_S_PRIORITY")
        do throws(V4L2Error) {
            let wanted = isRecord ? V4L2Priority.record : .interactive
            if wanted != device.priority {
                try device.node.setPriority(wanted)
                device.priority = wanted
                opened = device
            }
            if isRecord { return .record }
            guard let highest = try device.node.priority() else { return .unsupported }
            return highest > device.priority ? .refused : .default
        } catch {
            switch error.errno {
            case ENODEV, ENXIO: throw SourceError(error, .configuring)
            case EBUSY: return .refused
            default: return .unsupported
            }
        }
    }

    public func events() throws(SourceError) -> (any DeviceEventQueue)? {
        let device = try device("VIDIOC_SUBSCRIBE_EVENT")
        return try translating(.configuring) { () throws(V4L2Error) in
            try V4L2EventQueue(device.node, descriptor: device.node.descriptor, controls: device.controls.ids)
        }
    }

    // MARK: Streaming

    public func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        let device = try device("VIDIOC_STREAMON")
        if streaming != nil { try stopStreaming() }
        let setup = V4L2StreamSetup(
            node: device.node, type: device.type, crop: device.crop, buffers: bufferCount,
            hold: { [unowned self] in slots = $0 })
        do throws(SourceError) {
            let stream = try setup.start(allocate)
            streaming = stream.memory == .userptr ? .userptr : .mmap
            return stream
        } catch { throw error.namingHolders(of: path) }
    }

    public func requestKeyframe() throws(SourceError) {
        let device = try device("VIDIOC_S_EXT_CTRLS")
        try translating(.control("force_key_frame")) { () throws(V4L2Error) in
            _ = try device.node.forceKeyFrame()
        }
    }

    public func stopStreaming() throws(SourceError) {
        guard let opened, let memory = streaming else { return }
        streaming = nil
        try translating(.streaming) { () throws(V4L2Error) in
            try opened.node.stopStreaming(opened.type)
            try opened.node.freeBuffers(opened.type, memory)
        }
        slots = nil
    }

    public func injectFault(_ fault: VirtualFault) throws(SourceError) {
        throw SourceError(.refused, operation: "fault", message: "\(path): only virtual devices can be made to fail")
    }
}

extension FormatSelection {
    init(_ format: V4L2Format) {
        self.init(
            pixelFormat: PixelFormat(code: format.pixelFormat),
            dimensions: Dimensions(width: Int(format.width), height: Int(format.height)))
    }
}
