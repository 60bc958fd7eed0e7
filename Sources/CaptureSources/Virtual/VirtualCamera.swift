public import CaptureCore
import Glibc
import LinuxIO

/// A camera without hardware, which behaves as one with a V4L2 driver does: formats, rates, controls that show in the
/// picture, buffers that it fills in its own time and loses frames without. Its picture tells a program which frame it
/// is (``VirtualBand``), and it misbehaves when asked to.
public final class VirtualCamera: VideoSource {
    public let identity: DeviceIdentity

    private let index: Int
    private var isOpen = false
    private let formats: VirtualFormats
    private var selection: FormatSelection
    private var duration = VirtualFormats.initialDuration
    private var controlTable: VirtualControls
    private let state: VirtualSensorState
    private var sensor: VirtualSensor?
    private var faults = VirtualFaults()
    /// What was opened has been pulled out since: it is of no use any more, whatever is plugged in now.
    private var isDead = false
    /// The queue of the running stream.
    private var queue: VirtualQueue?
    /// The controls as they come from the factory.
    private let pristine: VirtualControls
    private var hasPriority = false
    private var told: VirtualEventQueue?

    /// - Parameters:
    ///   - index: the camera's number from 0. The first looks back, the second to the front and has neither focus nor
    ///     lamp, further ones are external.
    public init(index: Int, profile: VirtualProfile = .plain) {
        self.index = index
        let position: DevicePosition =
            switch index {
            case 0: .back
            case 1: .front
            default: .external
            }
        identity = DeviceIdentity(
            uniqueID: "virtual-\(index)", localizedName: "Virtual Camera \(index)", type: .virtual,
            position: position, driver: "virtual", bus: "virtual:\(index)")
        formats = VirtualFormats(profile, hasFocus: position != .front)
        selection = formats.initial
        controlTable = VirtualControls(VirtualControlTable.controls(profile, isFront: position == .front))
        pristine = controlTable
        state = VirtualSensorState(VirtualLook(controlTable))
        controlTable.absorb(state.current.optics)
    }

    deinit { sensor?.end() }

    // MARK: Opening

    public func open() throws(SourceError) -> DeviceDescription {
        guard !faults.isUnplugged, !isDead else { throw VirtualFaults.gone("open", device: identity.bus) }
        configure()
        isOpen = true
        var description = DeviceDescription(
            identity: identity, formats: formats.table, controls: controlTable.controls)
        description.stillFormats = formats.stills
        return description
    }

    public func close() {
        endSensor()
        hasPriority = false
        told = nil
        state.update { $0.told = nil }
        isOpen = false
        isDead = false
    }

    /// Every configuring call begins here: it takes as long as a slow driver would.
    private func configure() { faults.wait() }

    private func requireOpen(_ operation: String) throws(SourceError) {
        guard !isDead else { throw VirtualFaults.gone(operation, device: identity.bus) }
        guard isOpen else {
            throw SourceError(.failed, operation: operation, message: "\(identity.bus): not open")
        }
    }

    private func requireStopped(_ operation: String) throws(SourceError) {
        guard sensor == nil else {
            throw SourceError(
                .inUse, operation: operation, errno: EBUSY,
                message: "\(identity.bus): the format can't be changed while it streams")
        }
    }

    private func refuseIfTold(_ operation: String, control: String? = nil) throws(SourceError) {
        try faults.refuseIfTold(operation, control: control, device: identity.bus)
    }

    // MARK: Format and rate

    public func activeFormat() throws(SourceError) -> FormatSelection {
        try requireOpen("VIDIOC_G_FMT")
        return selection
    }

    public func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try requireOpen("VIDIOC_TRY_FMT")
        configure()
        return formats.nearest(selection)
    }

    public func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try requireOpen("VIDIOC_S_FMT")
        try requireStopped("VIDIOC_S_FMT")
        configure()
        try refuseIfTold("VIDIOC_S_FMT")
        self.selection = formats.nearest(selection)
        duration = formats.nearest(duration, self.selection)
        return self.selection
    }

    public func frameDuration() throws(SourceError) -> FrameDuration? {
        try requireOpen("VIDIOC_G_PARM")
        return duration
    }

    public func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        try requireOpen("VIDIOC_S_PARM")
        try requireStopped("VIDIOC_S_PARM")
        configure()
        try refuseIfTold("VIDIOC_S_PARM")
        self.duration = formats.nearest(duration, selection)
        return self.duration
    }

    // MARK: Controls

    public func controls() throws(SourceError) -> [CaptureControl] {
        try requireOpen("VIDIOC_QUERY_EXT_CTRL")
        return controlTable.controls
    }

    public func controlValues() throws(SourceError) -> [String: ControlValue] {
        try requireOpen("VIDIOC_G_EXT_CTRLS")
        controlTable.absorb(state.current.optics)
        return controlTable.values
    }

    public func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        try requireOpen("VIDIOC_S_EXT_CTRLS")
        configure()
        try refuseIfTold("VIDIOC_S_EXT_CTRLS", control: name)
        try change(name, value, isOurs: true)
    }

    // What else has changed than the control that was set, its camera has changed.
    private func change(_ name: String, _ value: ControlValue, isOurs: Bool) throws(SourceError) {
        controlTable.absorb(state.current.optics)
        let before = controlTable
        try controlTable.set(name, to: value, device: identity.bus)
        let (controls, isStreaming, id) = (controlTable, sensor != nil, controlTable.id(name))
        state.update { $0.follow(controls, set: id, isStreaming: isStreaming) }
        controlTable.absorb(state.current.optics)
        for event in controlTable.events(since: before, besides: isOurs ? name : nil) { told?.tell(event) }
    }

    // MARK: Beside other programs

    public func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority {
        try requireOpen("VIDIOC_S_PRIORITY")
        hasPriority = isRecord
        return isRecord ? .record : .default
    }

    public func events() throws(SourceError) -> (any DeviceEventQueue)? {
        try requireOpen("VIDIOC_SUBSCRIBE_EVENT")
        let queue = try VirtualEventQueue()
        told = queue
        state.update { $0.told = queue }
        return queue
    }

    private func meddle(_ control: String, _ value: ControlValue) throws(SourceError) {
        guard !hasPriority else {
            throw SourceError(
                .controlBusy, operation: "VIDIOC_S_EXT_CTRLS", errno: EBUSY,
                message: "\(identity.bus): the device is locked, so the kernel lets no other program change it",
                control: control)
        }
        try change(control, value, isOurs: false)
    }

    // MARK: Streaming

    public func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        let operation = "VIDIOC_STREAMON"
        try requireOpen(operation)
        configure()
        endSensor()
        try faults.checkStart(operation, device: identity.bus)
        var description = FormatDescription(
            pixelFormat: selection.pixelFormat, dimensions: selection.dimensions)
        description.frameDuration = duration
        guard let layout = FrameLayout.packed(description) else {
            throw SourceError(
                .refused, operation: operation, errno: EINVAL,
                message: "\(identity.bus): \(selection.pixelFormat.name) is not supported here; choose another format")
        }
        let queue = try VirtualQueue(try allocate(layout, layout.totalBytes))
        sensor = try VirtualSensor(queue, selection, duration, index: index, state: state)
        self.queue = queue
        return VirtualStream(queue, layout, duration)
    }

    public func requestKeyframe() throws(SourceError) {
        try requireOpen("VIDIOC_S_EXT_CTRLS")
        state.update { $0.keyframeRequests &+= 1 }
    }

    public func stopStreaming() throws(SourceError) {
        guard sensor != nil else { return }
        configure()
        endSensor()
    }

    private func endSensor() {
        sensor?.end()
        sensor = nil
        queue = nil
        state.update { $0.finish() }
    }

    // MARK: Faults

    public func injectFault(_ fault: VirtualFault) throws(SourceError) {
        switch fault {
        case .stall(let milliseconds):
            let until = milliseconds.map(VirtualFaults.end) ?? Int64.max
            state.update { $0.stalledUntil = until }
        case .crash: kill(getpid(), SIGKILL)
        case .busy(let milliseconds): faults.beBusy(milliseconds: milliseconds)
        case .slow(let milliseconds): faults.beSlow(milliseconds: milliseconds)
        case .refuse(let control):
            if let control, controlTable.values[control] == nil {
                throw SourceError(
                    .refused, operation: "fault", errno: EINVAL,
                    message: "\(identity.bus): there is no control \(control)", control: control)
            }
            faults.refuse(control)
        case .meddle(let control, let value): try meddle(control, value)
        case .unplug: unplug()
        case .replug: replug()
        case .corrupt(let frames): state.update { $0.corruptLeft = max(0, frames) }
        case .noSpace(let milliseconds): faults.haveNoSpace(milliseconds: milliseconds)
        case .rate(let percent): state.update { $0.pace.percent = percent }
        case .drift(let partsPerMillion): state.update { $0.pace.partsPerMillion = partsPerMillion }
        case .pressure: break
        case .none:
            // Not before now: what the stall cost stays lost, also where the sensor's thread is late.
            let now = MonotonicClock.now()
            state.update {
                $0.stalledUntil = min($0.stalledUntil, now)
                $0.corruptLeft = 0
                $0.pace = VirtualPace()
            }
            replug()
            faults = VirtualFaults()
        }
    }

    private func unplug() {
        guard !faults.isUnplugged else { return }
        faults.unplug()
        isDead = isOpen
        queue?.fail(VirtualFaults.gone("VIDIOC_DQBUF", device: identity.bus))
        told?.fail(VirtualFaults.gone("VIDIOC_DQEVENT", device: identity.bus))
        endSensor()
    }

    // Without power it has forgotten what was set.
    private func replug() {
        guard faults.isUnplugged else { return }
        faults.replug()
        controlTable = pristine
        (selection, duration) = (formats.initial, VirtualFormats.initialDuration)
        state.update { [controlTable] in $0.follow(controlTable, set: nil, isStreaming: false) }
        controlTable.absorb(state.current.optics)
    }
}
