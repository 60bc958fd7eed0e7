import CaptureCore
import CaptureSources
import LinuxIO

/// A source with this program's own controls in addition to the driver's: those of ``ExposureMetering`` where the
/// driver's can be driven so, and ``DigitalZoom``'s where the driver can't zoom.
final class CompletedSource: VideoSource {
    private let source: any VideoSource
    private let metering: MeteringState
    private let zoom: DigitalZoomState

    init(_ source: any VideoSource, _ metering: MeteringState, _ zoom: DigitalZoomState) {
        self.source = source
        self.metering = metering
        self.zoom = zoom
    }

    var identity: DeviceIdentity { source.identity }

    func open() throws(SourceError) -> DeviceDescription {
        var description = try source.open()
        description.controls = completed(description.controls)
        return description
    }

    func controls() throws(SourceError) -> [CaptureControl] { completed(try source.controls()) }

    private func completed(_ driver: [CaptureControl]) -> [CaptureControl] {
        metering.completed(driver) + zoom.controls(beside: driver)
    }

    func controlValues() throws(SourceError) -> [String: ControlValue] {
        let own = metering.values.merging(zoom.values) { first, _ in first }
        let values = try source.controlValues()
        return own.isEmpty ? values : values.merging(own) { driver, _ in driver }
    }

    func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        if try metering.set(name, to: value) { return }
        if try zoom.set(name, to: value) { return }
        try source.setControl(name, to: value)
        metering.wasSet(name, to: value)
    }

    // MARK: As it is

    func close() { source.close() }
    func activeFormat() throws(SourceError) -> FormatSelection { try source.activeFormat() }
    func formatDescription() throws(SourceError) -> FormatDescription { try source.formatDescription() }

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
