public import CaptureCore
import Glibc
import LinuxIO

/// A microphone without hardware, which behaves as one with an ALSA driver does: formats, gain, mute and data sources
/// that are heard, a buffer that it fills in its own time and loses sound without. What it hears is in step with the
/// virtual cameras (``VirtualSound``), and it misbehaves when asked to.
public final class VirtualMicrophone: AudioSource {
    public let identity: DeviceIdentity

    private let index: Int
    private var isOpen = false
    private var format = VirtualMicrophoneTable.initialFormat
    private var controlTable = VirtualControls(VirtualMicrophoneTable.controls)
    private let state = VirtualSoundState()
    private var sensor: VirtualSoundSensor?
    /// What the running stream reads.
    private var queue: VirtualSoundQueue?
    private var faults = VirtualFaults()
    /// What was opened has been pulled out since: it is of no use any more, whatever is plugged in now.
    private var isDead = false
    private var told: VirtualEventQueue?

    /// - Parameter index: the microphone's number from 0; it is the one of the virtual camera of that number.
    public init(index: Int) {
        self.index = index
        identity = DeviceIdentity(
            uniqueID: "virtual-microphone-\(index)", localizedName: "Virtual Microphone \(index)", mediaType: .audio,
            type: .virtual, position: .unspecified, driver: "virtual", bus: "virtual:\(index)")
    }

    deinit { sensor?.end() }

    // MARK: Opening

    public func open() throws(SourceError) -> MicrophoneDescription {
        guard !faults.isUnplugged, !isDead else { throw gone("snd_pcm_open") }
        configure()
        isOpen = true
        return MicrophoneDescription(
            identity: identity, formats: VirtualMicrophoneTable.formats, controls: controlTable.controls,
            dataSources: VirtualSound.sources)
    }

    public func close() {
        endSensor()
        told = nil
        isOpen = false
        isDead = false
    }

    /// Every configuring call begins here: it takes as long as a slow driver would.
    private func configure() { faults.wait() }

    private func gone(_ operation: String) -> SourceError {
        SourceError(
            .disconnected, operation: operation, errno: ENODEV,
            message: "\(identity.bus): the microphone has been unplugged")
    }

    private func requireOpen(_ operation: String) throws(SourceError) {
        guard !isDead else { throw gone(operation) }
        guard isOpen else {
            throw SourceError(.failed, operation: operation, message: "\(identity.bus): not open")
        }
    }

    // MARK: Format

    public func activeFormat() throws(SourceError) -> SoundFormat {
        try requireOpen("snd_pcm_hw_params_current")
        return format
    }

    public func tryFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat {
        try requireOpen("snd_pcm_hw_params_any")
        configure()
        return VirtualMicrophoneTable.nearest(format)
    }

    public func setFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat {
        let operation = "snd_pcm_hw_params"
        try requireOpen(operation)
        guard sensor == nil else {
            throw SourceError(
                .inUse, operation: operation, errno: EBUSY,
                message: "\(identity.bus): the format can't be changed while it captures")
        }
        configure()
        try faults.refuseIfTold(operation, control: nil, device: identity.bus)
        self.format = VirtualMicrophoneTable.nearest(format)
        return self.format
    }

    // MARK: Controls

    public func controls() throws(SourceError) -> [CaptureControl] {
        try requireOpen("snd_mixer_load")
        return controlTable.controls
    }

    public func controlValues() throws(SourceError) -> [String: ControlValue] {
        try requireOpen("snd_mixer_load")
        return controlTable.values
    }

    public func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        let operation = "snd_mixer_selem_set"
        try requireOpen(operation)
        configure()
        try faults.refuseIfTold(operation, control: name, device: identity.bus)
        try change(name, value, isOurs: true)
    }

    private func change(_ name: String, _ value: ControlValue, isOurs: Bool) throws(SourceError) {
        let before = controlTable
        do throws(SourceError) {
            try controlTable.set(name, to: value, device: identity.bus)
        } catch {
            var refusal = error
            refusal.operation = "snd_mixer_selem_set"
            throw refusal
        }
        let hearing = VirtualHearing(controlTable)
        state.update { $0.hearing = hearing }
        for event in controlTable.events(since: before, besides: isOurs ? name : nil) { told?.tell(event) }
    }

    public func events() throws(SourceError) -> (any DeviceEventQueue)? {
        try requireOpen("snd_ctl_subscribe_events")
        let queue = try VirtualEventQueue()
        told = queue
        return queue
    }

    // MARK: Capturing

    public func startCapture() throws(SourceError) -> any SoundStream {
        let operation = "snd_pcm_start"
        try requireOpen(operation)
        configure()
        endSensor()
        try faults.checkStart(operation, device: identity.bus)
        let queue = try VirtualSoundQueue(format)
        sensor = try VirtualSoundSensor(queue, index: index, state: state)
        self.queue = queue
        return VirtualSoundStream(queue)
    }

    public func stopCapture() throws(SourceError) {
        guard sensor != nil else { return }
        configure()
        endSensor()
    }

    private func endSensor() {
        sensor?.end()
        sensor = nil
        queue = nil
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
        case .meddle(let control, let value): try change(control, value, isOurs: false)
        case .unplug: unplug()
        case .replug: replug()
        case .noSpace(let milliseconds): faults.haveNoSpace(milliseconds: milliseconds)
        case .rate(let percent): state.update { $0.pace.percent = percent }
        case .drift(let partsPerMillion): state.update { $0.pace.partsPerMillion = partsPerMillion }
        case .corrupt, .pressure:
            throw SourceError(
                .refused, operation: "fault", errno: EINVAL,
                message: "\(identity.bus): the faults 'corrupt' and 'pressure' are for cameras only")
        case .none:
            // Not before now: what the stall cost stays lost, also where the sensor's thread is late.
            let now = MonotonicClock.now()
            state.update {
                $0.stalledUntil = min($0.stalledUntil, now)
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
        queue?.fail(gone("snd_pcm_readi"))
        told?.fail(gone("snd_ctl_read"))
        endSensor()
    }

    // Without power it has forgotten what was set.
    private func replug() {
        guard faults.isUnplugged else { return }
        faults.replug()
        controlTable = VirtualControls(VirtualMicrophoneTable.controls)
        format = VirtualMicrophoneTable.initialFormat
        let hearing = VirtualHearing(controlTable)
        state.update { $0.hearing = hearing }
    }
}

/// What a virtual microphone can do.
enum VirtualMicrophoneTable {
    static let initialFormat = SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2, periodFrames: 480)

    static let rates = [16000, 44100, 48000]
    static let channels = 1...2
    /// As many as a driver's buffer would hold some of.
    static let periodFrames = 32...4800

    static let formats = [SampleFormat.s16, .f32].enumerated().map { index, sampleFormat in
        MicrophoneFormat(
            id: "a\(index)", sampleFormat: sampleFormat, channels: channels, rates: rates, rateRange: nil,
            periodFrames: periodFrames)
    }

    static let controls = [
        CaptureControl(
            name: MicrophoneControl.gain, title: "Gain", id: MicrophoneControl.ID.gain, type: .integer, minimum: -4000,
            maximum: 2000, step: 50, defaultValue: 0, category: "Capture"),
        CaptureControl(
            name: MicrophoneControl.mute, title: "Mute", id: MicrophoneControl.ID.mute, type: .boolean, minimum: 0,
            maximum: 1, defaultValue: 0, category: "Capture"),
        CaptureControl(
            name: MicrophoneControl.dataSource, title: "Data Source", id: MicrophoneControl.ID.dataSource, type: .menu,
            minimum: 0, maximum: 1, defaultValue: 0, menu: [0: .name("Front"), 1: .name("Back")], category: "Capture"),
    ]

    /// What a driver makes of a wish, as ALSA's refining does: each part the nearest that there is.
    static func nearest(_ wish: SoundFormat) -> SoundFormat {
        // Samples of more bits than there are lose least as floating point.
        let sampleFormat: SampleFormat = wish.sampleFormat == .s16 ? .s16 : .f32
        let wanted = min(max(wish.rate, 0), 1_000_000)
        let rate = rates.min { abs($0 - wanted) < abs($1 - wanted) } ?? initialFormat.rate
        let count = min(max(wish.channels, channels.lowerBound), channels.upperBound)
        var format = SoundFormat(sampleFormat: sampleFormat, rate: rate, channels: count)
        let frames = wish.periodFrames > 0 ? wish.periodFrames : format.defaultPeriodFrames
        format.periodFrames = min(max(frames, periodFrames.lowerBound), periodFrames.upperBound)
        return format
    }
}

extension VirtualHearing {
    init(_ controls: VirtualControls) {
        self.init(
            source: Int(controls[MicrophoneControl.ID.dataSource]), gain: controls[MicrophoneControl.ID.gain],
            isMuted: controls[MicrophoneControl.ID.mute] != 0)
    }
}
