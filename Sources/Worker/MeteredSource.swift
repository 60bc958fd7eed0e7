import CaptureCore
import CaptureSources
import LinuxIO

/// What is set of ``ExposureMetering``'s controls. Lives on the device thread.
final class MeteringState {
    /// The camera can be driven.
    fileprivate(set) var isThere = false
    /// The driver has the point.
    fileprivate var isPointTheDrivers = false
    fileprivate(set) var isOn = false
    fileprivate var x = ExposureMetering.centre
    fileprivate var y = ExposureMetering.centre
    /// The exposure is on its way to what was asked.
    var isAdjusting = false
    /// Rises whenever it is to be begun anew.
    private(set) var revision: UInt64 = 0
    /// What is set now is what was set before: nobody waits for it.
    var isPuttingBack = false

    /// The exposure is to be brought to what is at the point.
    fileprivate func begin() {
        guard !isPuttingBack else { return }
        isAdjusting = true
        revision += 1
    }

    fileprivate func end() {
        isOn = false
        isAdjusting = false
        revision += 1
    }

    fileprivate var values: [String: ControlValue] {
        [
            ExposureMetering.pointX: .integer(x), ExposureMetering.pointY: .integer(y),
            ExposureMetering.isOn: .boolean(isOn), ExposureMetering.isAdjusting: .boolean(isAdjusting),
        ]
    }

    /// - Returns: false for a control that is not one of these.
    fileprivate func set(_ name: String, to value: ControlValue) throws(SourceError) -> Bool {
        switch name {
        case ExposureMetering.pointX where !isPointTheDrivers: try move(\.x, name, value)
        case ExposureMetering.pointY where !isPointTheDrivers: try move(\.y, name, value)
        case ExposureMetering.start: begin()
        case ExposureMetering.isOn:
            if try number(name, value, 0...1) == 0 {
                end()
            } else {
                // Also where it was on: another program may have moved the exposure.
                isOn = true
                begin()
            }
        case ExposureMetering.isAdjusting: throw refusal(.controlBusy, name, "can only be read")
        default: return false
        }
        return true
    }

    private func move(
        _ side: ReferenceWritableKeyPath<MeteringState, Int64>, _ name: String, _ value: ControlValue
    ) throws(SourceError) {
        let new = try number(name, value, 0...ExposureMetering.end)
        guard new != self[keyPath: side] else { return }
        self[keyPath: side] = new
        if isOn { begin() }
    }

    private func number(
        _ name: String, _ value: ControlValue, _ range: ClosedRange<Int64>
    ) throws(SourceError) -> Int64 {
        guard let number = value.number, range.contains(number) else {
            throw refusal(.refused, name, "takes \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func refusal(_ kind: SourceError.Kind, _ name: String, _ why: String) -> SourceError {
        SourceError(kind, operation: "exposure metering", message: "\(name) \(why)", control: name)
    }
}

/// A source with ``ExposureMetering``'s controls beside the driver's, where the driver's can be driven so.
final class MeteredSource: VideoSource {
    private let source: any VideoSource
    private let state: MeteringState
    private var mode: CaptureControl?

    init(_ source: any VideoSource, _ state: MeteringState) {
        self.source = source
        self.state = state
    }

    var identity: DeviceIdentity { source.identity }

    func open() throws(SourceError) -> DeviceDescription {
        var description = try source.open()
        description.controls = completed(description.controls)
        return description
    }

    func controls() throws(SourceError) -> [CaptureControl] { completed(try source.controls()) }

    private func completed(_ driver: [CaptureControl]) -> [CaptureControl] {
        let own = ExposureMetering.controls(beside: driver)
        state.isThere = !own.isEmpty
        state.isPointTheDrivers = !own.contains { $0.name == ExposureMetering.pointX }
        guard state.isThere else { return driver }
        mode = ExposureMetering.mode(driver)
        guard state.isOn else { return driver + own }
        return driver.map { control in
            guard ExposureMetering.isHeld(control) else { return control }
            var control = control
            control.flags.insert(.inactive)
            return control
        } + own
    }

    func controlValues() throws(SourceError) -> [String: ControlValue] {
        let values = try source.controlValues()
        return state.isThere ? values.merging(state.values) { driver, _ in driver } : values
    }

    func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        if state.isThere, try state.set(name, to: value) { return }
        try source.setControl(name, to: value)
        // Left to the camera, the exposure is not ours any more.
        if let mode, mode.name == name, ExposureMetering.isAutomatic(mode, value), state.isOn || state.isAdjusting {
            state.end()
        }
    }

    // MARK: As it is

    func close() { source.close() }
    func activeFormat() throws(SourceError) -> FormatSelection { try source.activeFormat() }

    func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try source.tryFormat(selection)
    }

    func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try source.setFormat(selection)
    }

    func frameDuration() throws(SourceError) -> FrameDuration? { try source.frameDuration() }

    func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        try source.setFrameDuration(duration)
    }

    func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority {
        try source.setPriority(isRecord: isRecord)
    }

    func events() throws(SourceError) -> (any DeviceEventQueue)? { try source.events() }

    func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        try source.startStreaming(allocate)
    }

    func stopStreaming() throws(SourceError) { try source.stopStreaming() }
    func requestKeyframe() throws(SourceError) { try source.requestKeyframe() }
    func plug(_ facts: CameraFacts) -> Bool { source.plug(facts) }
    func watchRequests(_ observer: @escaping RequestObserver) { source.watchRequests(observer) }
    func injectFault(_ fault: VirtualFault) throws(SourceError) { try source.injectFault(fault) }
}
