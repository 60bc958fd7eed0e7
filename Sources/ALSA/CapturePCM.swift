import CALSA
import Glibc

/// A PCM that is recorded from (`snd_pcm_t`), opened without waiting: no call of it waits for sound.
///
/// Used by one thread at a time. Closed with the last reference.
public final class CapturePCM {
    /// How it stands.
    public enum State: Hashable, Sendable {
        /// Opened or set up, and not ready to be started.
        case idle
        case prepared
        case running
        /// Sound came that nobody had fetched room for (`SND_PCM_STATE_XRUN`).
        case overrun
        /// The machine was asleep.
        case suspended
        case disconnected
    }

    /// What the driver says of it at one moment.
    public struct Status: Hashable, Sendable {
        public var state: State
        /// Frames that can be read.
        public var available: Int
        /// When that was so, nanoseconds, of the clock that was set; 0: the driver doesn't say.
        public var time: Int64
    }

    public let name: String
    let handle: OpaquePointer
    private let raw: OpaquePointer

    /// - Parameter name: as ALSA's configuration knows it: `hw:CARD=PCH,DEV=0`.
    /// - Throws: `EBUSY` while another program records from it.
    public init(_ name: String) throws(ALSAError) {
        _ = ALSALibrary.isSilent
        var status: OpaquePointer?
        try check("snd_pcm_status_malloc", name, snd_pcm_status_malloc(&status))
        guard let status else { throw ALSAError(operation: "snd_pcm_status_malloc", device: name, code: ENOMEM) }
        var handle: OpaquePointer?
        let result = snd_pcm_open(&handle, name, SND_PCM_STREAM_CAPTURE, SND_PCM_NONBLOCK)
        guard result >= 0, let handle else {
            snd_pcm_status_free(status)
            throw ALSAError(operation: "snd_pcm_open", device: name, code: -result)
        }
        self.name = name
        self.handle = handle
        raw = status
    }

    deinit {
        snd_pcm_close(handle)
        snd_pcm_status_free(raw)
    }

    // MARK: Setting up

    /// All that it can be set to.
    public func space() throws(ALSAError) -> PCMSpace { try PCMSpace(self) }

    /// What it would make of a wish, whose format it takes; changes nothing.
    public func nearest(_ wish: PCMParameters) throws(ALSAError) -> PCMParameters {
        try space().nearest(wish).parameters
    }

    /// Sets it up as near to a wish as it can, whose format it takes, to be polled once for each period, started by
    /// ``start()`` only, with times on CLOCK_MONOTONIC. Not while it runs.
    ///
    /// - Returns: what it is set to, and whether it tells times.
    public func configure(_ wish: PCMParameters) throws(ALSAError) -> (parameters: PCMParameters, hasTimes: Bool) {
        let (space, parameters) = try space().nearest(wish)
        try check("snd_pcm_hw_params", name, snd_pcm_hw_params(handle, space.raw))
        return (parameters, try configureSoftware(parameters))
    }

    private func configureSoftware(_ parameters: PCMParameters) throws(ALSAError) -> Bool {
        var software: OpaquePointer?
        try check("snd_pcm_sw_params_malloc", name, snd_pcm_sw_params_malloc(&software))
        guard let software else { throw ALSAError(operation: "snd_pcm_sw_params_malloc", device: name, code: ENOMEM) }
        defer { snd_pcm_sw_params_free(software) }
        try check("snd_pcm_sw_params_current", name, snd_pcm_sw_params_current(handle, software))
        try check(
            "snd_pcm_sw_params_set_tstamp_mode", name,
            snd_pcm_sw_params_set_tstamp_mode(handle, software, SND_PCM_TSTAMP_ENABLE))
        let hasClock = snd_pcm_sw_params_set_tstamp_type(handle, software, SND_PCM_TSTAMP_TYPE_MONOTONIC) >= 0
        try check(
            "snd_pcm_sw_params_set_avail_min", name,
            snd_pcm_sw_params_set_avail_min(handle, software, snd_pcm_uframes_t(clamping: parameters.periodFrames)))
        var boundary: snd_pcm_uframes_t = 0
        try check("snd_pcm_sw_params_get_boundary", name, snd_pcm_sw_params_get_boundary(software, &boundary))
        try check(
            "snd_pcm_sw_params_set_start_threshold", name,
            snd_pcm_sw_params_set_start_threshold(handle, software, boundary))
        try check("snd_pcm_sw_params", name, snd_pcm_sw_params(handle, software))
        return hasClock
    }

    // MARK: Running

    /// Makes it ready to be started, from whatever state it is in.
    public func prepare() throws(ALSAError) { try check("snd_pcm_prepare", name, snd_pcm_prepare(handle)) }

    public func start() throws(ALSAError) { try check("snd_pcm_start", name, snd_pcm_start(handle)) }

    /// Stops at once; what has not been read is lost.
    public func drop() throws(ALSAError) { try check("snd_pcm_drop", name, snd_pcm_drop(handle)) }

    /// Goes on after an overrun (`snd_pcm_recover`) or after the machine was asleep; what was there is lost.
    public func restart(from state: State) throws(ALSAError) {
        // snd_pcm_recover would wait, asleep, for a driver that takes its time to wake.
        if state == .overrun {
            try check("snd_pcm_recover", name, snd_pcm_recover(handle, -EPIPE, 1))
        } else {
            try prepare()
        }
        try start()
    }

    /// To be polled for input, which comes with each period, and in each state that has something to be told. -1 when
    /// there is none.
    public var descriptor: Int32 {
        // Those of the kernel's PCMs have one; what is made of several PCMs has more, and is not for this wrapper.
        var waits = pollfd(fd: -1, events: 0, revents: 0)
        return snd_pcm_poll_descriptors(handle, &waits, 1) == 1 ? waits.fd : -1
    }

    /// Asks the driver (`snd_pcm_status`), which looks how far the device is.
    public func status() throws(ALSAError) -> Status {
        try check("snd_pcm_status", name, snd_pcm_status(handle, raw))
        var time = snd_htimestamp_t()
        snd_pcm_status_get_htstamp(raw, &time)
        let state: State =
            switch snd_pcm_status_get_state(raw) {
            case SND_PCM_STATE_PREPARED: .prepared
            case SND_PCM_STATE_RUNNING, SND_PCM_STATE_DRAINING, SND_PCM_STATE_PAUSED: .running
            case SND_PCM_STATE_XRUN: .overrun
            case SND_PCM_STATE_SUSPENDED: .suspended
            case SND_PCM_STATE_DISCONNECTED: .disconnected
            default: .idle
            }
        return Status(
            state: state, available: Int(clamping: snd_pcm_status_get_avail(raw)),
            time: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Reads so many frames at most, as they are there.
    ///
    /// - Parameter memory: has room for them.
    /// - Throws: `EAGAIN` when there is none, `EPIPE` after an overrun.
    public func read(into memory: UnsafeMutableRawPointer, frames: Int) throws(ALSAError) -> Int {
        let count = snd_pcm_readi(handle, memory, snd_pcm_uframes_t(clamping: frames))
        guard count >= 0 else {
            throw ALSAError(operation: "snd_pcm_readi", device: name, code: Int32(clamping: -count))
        }
        return count
    }
}
