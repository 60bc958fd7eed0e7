import CaptureCore
import CaptureSources
import LinuxIO
import Synchronization

/// Since when the device thread has been inside a call of the driver. Read by the loop.
final class CallClock: Sendable {
    private let start = Atomic<Int64>(0)

    /// Monotonic nanoseconds; nil when it is in none.
    var busySince: Int64? {
        let time = start.load(ordering: .relaxed)
        return time == 0 ? nil : time
    }

    func measure<Value, Failure: Error>(_ call: () throws(Failure) -> Value) throws(Failure) -> Value {
        start.store(MonotonicClock.now(), ordering: .relaxed)
        defer { start.store(0, ordering: .relaxed) }
        return try call()
    }
}

/// A source whose every call is timed: one that hangs can be told from one that has much to do.
final class TimedSource: VideoSource {
    private let source: any VideoSource
    private let clock: CallClock

    init(_ source: any VideoSource, _ clock: CallClock) {
        self.source = source
        self.clock = clock
    }

    var identity: DeviceIdentity { source.identity }

    func open() throws(SourceError) -> DeviceDescription {
        try clock.measure { () throws(SourceError) in try source.open() }
    }

    func close() { clock.measure { source.close() } }

    func activeFormat() throws(SourceError) -> FormatSelection {
        try clock.measure { () throws(SourceError) in try source.activeFormat() }
    }

    func tryFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try clock.measure { () throws(SourceError) in try source.tryFormat(selection) }
    }

    func setFormat(_ selection: FormatSelection) throws(SourceError) -> FormatSelection {
        try clock.measure { () throws(SourceError) in try source.setFormat(selection) }
    }

    func frameDuration() throws(SourceError) -> FrameDuration? {
        try clock.measure { () throws(SourceError) in try source.frameDuration() }
    }

    func setFrameDuration(_ duration: FrameDuration) throws(SourceError) -> FrameDuration {
        try clock.measure { () throws(SourceError) in try source.setFrameDuration(duration) }
    }

    func controls() throws(SourceError) -> [CaptureControl] {
        try clock.measure { () throws(SourceError) in try source.controls() }
    }

    func controlValues() throws(SourceError) -> [String: ControlValue] {
        try clock.measure { () throws(SourceError) in try source.controlValues() }
    }

    func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.setControl(name, to: value) }
    }

    func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority {
        try clock.measure { () throws(SourceError) in try source.setPriority(isRecord: isRecord) }
    }

    func events() throws(SourceError) -> (any DeviceEventQueue)? {
        try clock.measure { () throws(SourceError) in try source.events() }
    }

    func startStreaming() throws(SourceError) -> any FrameStream {
        try clock.measure { () throws(SourceError) in try source.startStreaming() }
    }

    func stopStreaming() throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.stopStreaming() }
    }

    func plug(_ facts: CameraFacts) -> Bool { source.plug(facts) }

    func injectFault(_ fault: VirtualFault) throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.injectFault(fault) }
    }
}
