import ALSA
public import CaptureCore
import Glibc
import LinuxIO

/// A microphone of the kernel's: an ALSA PCM that is recorded from, under whatever number its card has when it is
/// opened.
///
/// Which microphone that is, the coordinator says: by the place where it is plugged in now. A card's number and id go
/// to whoever comes next; so the place is looked at at each opening.
public final class ALSAMicrophone: AudioSource {
    public private(set) var identity: DeviceIdentity

    private var facts: MicrophoneFacts
    private var onRequest: RequestObserver = {}
    private var opened: Opened?
    /// What was asked for last, and made of it; nil: nothing was.
    private var selection: SoundFormat?
    private var isCapturing = false

    private struct Opened {
        var pcm: CapturePCM
        var formats: [MicrophoneFormat]
        /// nil: the card has no mixer.
        var controls: ALSAControls?
        /// It has been set up: some drivers (snd-aloop) keep a PCM to one format from then on, until it is closed.
        var isSettled = false
    }

    /// How much sound the driver is to keep for who comes late, in milliseconds; it decides.
    private static let bufferLength = 500

    /// - Parameter facts: how it was seen last.
    public init(uniqueID: String, facts: MicrophoneFacts) {
        self.facts = facts
        identity = facts.identity(uniqueID: uniqueID)
    }

    public func plug(_ facts: MicrophoneFacts) -> Bool {
        defer { self.facts = facts }
        return facts != self.facts
    }

    public func watchRequests(_ observer: @escaping RequestObserver) { onRequest = observer }

    /// Asks the driver, has that told, and puts its error into this project's words.
    private func ask<Result>(
        _ context: SourceError.ALSAContext, _ body: () throws(ALSAError) -> Result
    ) throws(SourceError) -> Result {
        onRequest()
        defer { onRequest() }
        do { return try body() } catch {
            throw SourceError(error, context).namingHolders(of: facts.node)
        }
    }

    // MARK: Opening

    public func open() throws(SourceError) -> MicrophoneDescription {
        do throws(SourceError) {
            let controls: ALSAControls?
            let formats: [MicrophoneFormat]
            if let opened {
                formats = opened.formats
                controls = try mixer()
                self.opened?.controls = controls
            } else {
                let pcm = try connect()
                formats = try self.formats(of: pcm)
                controls = try mixer()
                opened = Opened(pcm: pcm, formats: formats, controls: controls)
            }
            if selection == nil {
                selection = try tryFormat(SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2))
            }
            return MicrophoneDescription(
                identity: identity, formats: formats, controls: controls?.controls ?? [],
                dataSources: controls?.dataSources ?? [])
        } catch {
            // What has lost its device says so for ever, also when it is back: the next attempt opens anew.
            if error.kind == .disconnected { close() }
            throw error
        }
    }

    private func connect() throws(SourceError) -> CapturePCM {
        guard let found = try ALSADiscovery.find(facts, onRequest: onRequest) else {
            throw SourceError(
                .disconnected, operation: "snd_pcm_open",
                message: "\(identity.localizedName) is not plugged in at \(facts.bus)")
        }
        facts = found
        identity = found.identity(uniqueID: identity.uniqueID)
        return try ask(.opening) { () throws(ALSAError) in try CapturePCM(facts.pcm) }
    }

    private func formats(of pcm: CapturePCM) throws(SourceError) -> [MicrophoneFormat] {
        let formats = try ask(.opening) { () throws(ALSAError) in try ALSAFormatTable.read(try pcm.space()) }
        guard formats.isEmpty else { return formats }
        throw SourceError(
            .refused, operation: "snd_pcm_hw_params_any", errno: EINVAL,
            message: "\(pcm.name): it has no linear PCM format of 16 bits or more")
    }

    /// nil: there is nothing to set.
    private func mixer() throws(SourceError) -> ALSAControls? {
        do throws(SourceError) {
            return try ask(.configuring) { () throws(ALSAError) in
                try ALSAControls(try CaptureMixer(card: facts.card))
            }
        } catch {
            // Sound comes without a mixer too.
            if error.kind == .disconnected { throw error }
            return nil
        }
    }

    public func close() {
        try? stopCapture()
        opened = nil
    }

    private func device(_ operation: String) throws(SourceError) -> Opened {
        guard let opened else {
            throw SourceError(.failed, operation: operation, message: "\(facts.pcm): not open")
        }
        return opened
    }

    // MARK: Format

    public func activeFormat() throws(SourceError) -> SoundFormat {
        let operation = "snd_pcm_hw_params_current"
        _ = try device(operation)
        guard let selection else {
            throw SourceError(.failed, operation: operation, message: "\(facts.pcm): no format has been set")
        }
        return selection
    }

    public func tryFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat {
        try unsettled(format) { () throws(SourceError) in
            let pcm = try device("snd_pcm_hw_params_any").pcm
            return try ask(.configuring) { () throws(ALSAError) in
                SoundFormat(try pcm.nearest(try Self.wish(format, try pcm.space(), pcm.name)))
            }
        }
    }

    /// Has the device asked once more, opened anew, where its answer may be owed to what it was set to before.
    private func unsettled(
        _ format: SoundFormat, _ body: () throws(SourceError) -> SoundFormat
    ) throws(SourceError) -> SoundFormat {
        let answer = try body()
        let isAsWished =
            (answer.sampleFormat, answer.rate, answer.channels) == (format.sampleFormat, format.rate, format.channels)
        guard !isAsWished, !isCapturing, opened?.isSettled == true else { return answer }
        try reopen()
        return try body()
    }

    private func reopen() throws(SourceError) {
        // Nothing is to keep the old one open: most devices can be open once only.
        let (card, formats, controls) = (facts.card, opened?.formats ?? [], opened?.controls)
        opened = nil
        let pcm = try connect()
        guard facts.card == card else {
            throw SourceError(
                .disconnected, operation: "snd_pcm_open", errno: ENODEV,
                message: "\(identity.localizedName) has been plugged in again")
        }
        opened = Opened(pcm: pcm, formats: formats, controls: controls)
    }

    /// What the PCM is asked for: its own format in the place of one that it doesn't have.
    private static func wish(
        _ format: SoundFormat, _ space: PCMSpace, _ name: String
    ) throws(ALSAError) -> PCMParameters {
        let sampleFormat = format.sampleFormat.substitutes.first { space.takes(format: PCMFormat($0)) }
        guard let sampleFormat else {
            throw ALSAError(operation: "snd_pcm_hw_params_set_format", device: name, code: EINVAL)
        }
        let rate = min(max(format.rate, 1), 1_000_000)
        return PCMParameters(
            format: PCMFormat(sampleFormat), channels: min(max(format.channels, 1), 1024), rate: rate,
            periodFrames: format.periodFrames > 0 ? format.periodFrames : max(1, rate / 100),
            bufferFrames: max(rate * bufferLength / 1000, min(format.periodFrames, rate) * 4))
    }

    public func setFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat {
        let operation = "snd_pcm_hw_params"
        _ = try device(operation)
        guard !isCapturing else {
            throw SourceError(
                .inUse, operation: operation, errno: EBUSY,
                message: "\(facts.pcm): the format can't be changed while it captures")
        }
        let made = try unsettled(format) { () throws(SourceError) in try configure(format).format }
        selection = made
        return made
    }

    private func configure(_ format: SoundFormat) throws(SourceError) -> (format: SoundFormat, hasTimes: Bool) {
        let pcm = try device("snd_pcm_hw_params").pcm
        opened?.isSettled = true
        return try ask(.configuring) { () throws(ALSAError) in
            let (parameters, hasTimes) = try pcm.configure(try Self.wish(format, try pcm.space(), pcm.name))
            return (SoundFormat(parameters), hasTimes)
        }
    }

    // MARK: Controls

    public func controls() throws(SourceError) -> [CaptureControl] {
        try device("snd_mixer_load").controls?.controls ?? []
    }

    public func controlValues() throws(SourceError) -> [String: ControlValue] {
        guard let controls = try device("snd_mixer_load").controls else { return [:] }
        return try ask(.configuring) { () throws(ALSAError) in try controls.values() }
    }

    public func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        let operation = "snd_mixer_selem_set"
        let device = try device(operation)
        guard let controls = device.controls, let control = controls.controls.first(where: { $0.name == name }) else {
            throw SourceError(
                .refused, operation: operation, errno: EINVAL, message: "\(facts.pcm): there is no control \(name)",
                control: name)
        }
        guard let number = value.number, (control.minimum...control.maximum).contains(number) else {
            throw SourceError(
                .refused, operation: operation, errno: ERANGE,
                message: "\(facts.pcm): \(name) takes a number in \(control.minimum)...\(control.maximum)",
                control: name)
        }
        try ask(.control(name)) { () throws(ALSAError) in try controls.set(name, to: number) }
    }

    public func events() throws(SourceError) -> (any DeviceEventQueue)? {
        guard let controls = try device("snd_ctl_subscribe_events").controls, !controls.controls.isEmpty else {
            return nil
        }
        let events = try ask(.configuring) { () throws(ALSAError) in try CardEvents(card: facts.card) }
        return ALSAEventQueue(events, controls)
    }

    // MARK: Capturing

    public func startCapture() throws(SourceError) -> any SoundStream {
        let pcm = try device("snd_pcm_start").pcm
        if isCapturing { try stopCapture() }
        // Set up anew each time: what stopped it may have taken that with it.
        let (format, hasTimes) = try configure(try activeFormat())
        selection = format
        let stream = ALSAStream(pcm, format, hasTimes: hasTimes)
        guard stream.descriptor >= 0 else {
            throw SourceError(
                .refused, operation: "snd_pcm_poll_descriptors", errno: EINVAL,
                message: "\(facts.pcm): it can't be polled")
        }
        try ask(.capturing) { () throws(ALSAError) in
            try pcm.prepare()
            try pcm.start()
        }
        isCapturing = true
        return stream
    }

    public func stopCapture() throws(SourceError) {
        guard isCapturing, let opened else { return }
        isCapturing = false
        try ask(.capturing) { () throws(ALSAError) in try opened.pcm.drop() }
    }

    public func injectFault(_ fault: VirtualFault) throws(SourceError) {
        throw SourceError(
            .refused, operation: "fault", message: "\(facts.pcm): only virtual devices can be made to fail")
    }
}

extension SoundFormat {
    init(_ parameters: PCMParameters) {
        self.init(
            sampleFormat: SampleFormat(parameters.format), rate: parameters.rate, channels: parameters.channels,
            periodFrames: parameters.periodFrames)
    }
}
