import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Synchronization

/// Since when the device thread has waited for the driver. Read by the loop.
///
/// A call of the source counts from its beginning, or from the last of the requests that it notified: so a driver that
/// gets a thousand requests in one call has the full time for each.
final class CallClock: Sendable {
    private let start = Atomic<Int64>(0)
    private let thread = Atomic<UInt>(0)

    /// Monotonic nanoseconds; nil when it is in no call.
    var busySince: Int64? {
        let time = start.load(ordering: .relaxed)
        return time == 0 ? nil : time
    }

    func measure<Value, Failure: Error>(_ call: () throws(Failure) -> Value) throws(Failure) -> Value {
        thread.store(pthread_self(), ordering: .relaxed)
        start.store(MonotonicClock.now(), ordering: .relaxed)
        defer { start.store(0, ordering: .relaxed) }
        return try call()
    }

    /// A request of the call that is under way begins, or has been answered.
    ///
    /// The loop asks the driver for frames and events meanwhile, which says nothing about the call: its requests are
    /// not counted.
    func requestMade() {
        guard start.load(ordering: .relaxed) != 0, thread.load(ordering: .relaxed) == pthread_self() else { return }
        start.store(MonotonicClock.now(), ordering: .relaxed)
    }
}

/// A source whose calls and requests are timed, which distinguishes a driver that hangs from one that has much to do.
final class TimedSource: VideoSource {
    private let source: any VideoSource
    private let clock: CallClock

    init(_ source: any VideoSource, _ clock: CallClock) {
        self.source = source
        self.clock = clock
        source.watchRequests { clock.requestMade() }
    }

    var identity: DeviceIdentity { source.identity }

    func open() throws(SourceError) -> DeviceDescription {
        try clock.measure { () throws(SourceError) in try source.open() }
    }

    func close() { clock.measure { source.close() } }

    func activeFormat() throws(SourceError) -> FormatSelection {
        try clock.measure { () throws(SourceError) in try source.activeFormat() }
    }

    func formatDescription() throws(SourceError) -> FormatDescription {
        try clock.measure { () throws(SourceError) in try source.formatDescription() }
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

    func startStreaming(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        try clock.measure { () throws(SourceError) in try source.startStreaming(allocate) }
    }

    func requestKeyframe() throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.requestKeyframe() }
    }

    func stopStreaming() throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.stopStreaming() }
    }

    func plug(_ facts: CameraFacts) -> Bool { source.plug(facts) }

    func injectFault(_ fault: VirtualFault) throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.injectFault(fault) }
    }
}
