public import CaptureCore

/// A microphone as the worker sees it. ALSA's PCMs and virtual microphones are its implementations, and the worker
/// can't tell them apart.
///
/// Every call may block for seconds in a driver, so all of them are made on one thread, the device thread, one after
/// the other. Sound does not come from here but from the ``SoundStream`` that ``startCapture()`` returns, on the loop
/// thread. Errors are as a ``VideoSource`` has them: their operation is the library's call (`snd_pcm_hw_params`).
public protocol AudioSource: AnyObject {
    /// Known without opening.
    var identity: DeviceIdentity { get }

    /// Opens the device and reads what it can do. Opening an open device is allowed and reads again. One that another
    /// program records from is ``SourceError/Kind/inUse``: of most microphones only one can have them.
    func open() throws(SourceError) -> MicrophoneDescription

    /// Lets go of the device, so that other programs can have it. Harmless when closed. Its stream is stopped first.
    func close()

    /// The format that is set now: of a device that has been told none, the one that is nearest to what people expect
    /// (`s16`, 48000 Hz, two channels).
    func activeFormat() throws(SourceError) -> SoundFormat

    /// What the device would make of this format, changing nothing. It may answer with another one: with the nearest
    /// rate, the nearest number of channels, another sample format that keeps as much.
    func tryFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat

    /// Sets the format and answers what the device made of it (`snd_pcm_hw_params`). Not while capturing.
    func setFormat(_ format: SoundFormat) throws(SourceError) -> SoundFormat

    /// The controls with their present flags and ranges (``MicrophoneControl``).
    func controls() throws(SourceError) -> [CaptureControl]

    /// The present value of each control, by name.
    func controlValues() throws(SourceError) -> [String: ControlValue]

    /// Sets one control.
    func setControl(_ name: String, to value: ControlValue) throws(SourceError)

    /// What the open device tells by itself from now on: controls that something else has changed, with their
    /// ``MicrophoneControl/ID``. nil when it tells nothing. To be let go of before ``close()``.
    func events() throws(SourceError) -> (any DeviceEventQueue)?

    /// Starts to capture in the active format.
    func startCapture() throws(SourceError) -> any SoundStream

    /// Stops. Called after the loop has let go of the stream; harmless when none runs.
    func stopCapture() throws(SourceError)

    /// The microphone has been seen, as these facts say: perhaps in another place than before. It counts at the next
    /// opening.
    ///
    /// - Returns: whether that is something new.
    func plug(_ facts: MicrophoneFacts) -> Bool

    /// Has the observer told of each request from now on, as ``VideoSource/watchRequests(_:)`` does.
    func watchRequests(_ observer: @escaping RequestObserver)

    /// Makes the device misbehave as asked; only virtual devices can.
    func injectFault(_ fault: VirtualFault) throws(SourceError)
}

extension AudioSource {
    /// A device that is not plugged in and out has nothing new to learn.
    public func plug(_ facts: MicrophoneFacts) -> Bool { false }

    /// A source that asks no driver is judged by its calls.
    public func watchRequests(_ observer: @escaping RequestObserver) {}
}

/// Where the time of a period's first sample is from.
public enum SoundTimestampSource: String, Hashable, Sendable {
    /// The driver has told when it had how many frames (`snd_pcm_status_get_htstamp`), on CLOCK_MONOTONIC.
    case status
    /// The driver gives no monotonic time: it is taken when the period is read.
    case read
}

/// What came at once.
public struct SoundPeriod: Hashable, Sendable {
    /// The number of its first frame, from 0 since the stream started. Frames that were lost are counted as far as is
    /// known, so that numbers and times stay in step.
    public var firstFrame: UInt64
    /// How many frames it has: as many as were set (``SoundFormat/periodFrames``).
    public var frames: Int
    /// When its first frame was taken: CLOCK_MONOTONIC, nanoseconds.
    public var monotonicTime: Int64
    /// Frames are missing before it: an overrun. Its number has them left out.
    public var isDiscontinuous: Bool

    public init(firstFrame: UInt64, frames: Int, monotonicTime: Int64, isDiscontinuous: Bool) {
        self.firstFrame = firstFrame
        self.frames = frames
        self.monotonicTime = monotonicTime
        self.isDiscontinuous = isDiscontinuous
    }
}

/// The running capture of a microphone, used on the loop thread only. No call blocks.
public protocol SoundStream: AnyObject {
    /// What it runs at.
    var format: SoundFormat { get }
    var timestampSource: SoundTimestampSource { get }
    /// To be polled for input; readable (or in error) means that ``read(into:)`` has something to say. It stays
    /// readable while there is more.
    var descriptor: Int32 { get }
    /// How often frames were lost since the start because nobody fetched them in time (`EPIPE`); it has gone on by
    /// itself each time.
    var overruns: UInt64 { get }
    /// How many frames these were in all, as far as is known.
    var lostFrames: UInt64 { get }
    /// The next whole period, written from the beginning of the memory, which holds at least
    /// ``SoundFormat/periodBytes``; nil when there is none yet. What it holds then doesn't count. An error means that
    /// this stream is over.
    func read(into memory: UnsafeMutableRawBufferPointer) throws(SourceError) -> SoundPeriod?
}
