import CaptureCore
import CaptureSources

/// A microphone whose every call and request is timed, as ``TimedSource`` is for cameras.
final class TimedAudioSource: AudioSource {
    private let source: any AudioSource
    private let clock: CallClock

    init(_ source: any AudioSource, _ clock: CallClock) {
        self.source = source
        self.clock = clock
        source.watchRequests { clock.requestMade() }
    }

    var identity: DeviceIdentity { source.identity }

    func open() throws(SourceError) -> MicrophoneDescription {
        try clock.measure { () throws(SourceError) in try source.open() }
    }

    func close() { clock.measure { source.close() } }

    func activeFormat() throws(SourceError) -> SoundFormat {
        try clock.measure { () throws(SourceError) in try source.activeFormat() }
    }

    func tryFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat {
        try clock.measure { () throws(SourceError) in try source.tryFormat(format) }
    }

    func setFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat {
        try clock.measure { () throws(SourceError) in try source.setFormat(format) }
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

    func events() throws(SourceError) -> (any DeviceEventQueue)? {
        try clock.measure { () throws(SourceError) in try source.events() }
    }

    func startCapture() throws(SourceError) -> any SoundStream {
        try clock.measure { () throws(SourceError) in try source.startCapture() }
    }

    func stopCapture() throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.stopCapture() }
    }

    func plug(_ facts: MicrophoneFacts) -> Bool { source.plug(facts) }

    func injectFault(_ fault: VirtualFault) throws(SourceError) {
        try clock.measure { () throws(SourceError) in try source.injectFault(fault) }
    }
}
