import CALSA
import Glibc

/// How a sample is written, of those formats that this wrapper knows: linear and little-endian.
public enum PCMFormat: Hashable, Sendable, CaseIterable {
    /// `S16_LE`
    case signed16
    /// `S24_3LE`: three bytes.
    case signed24Packed
    /// `S24_LE`: the low three of four bytes.
    case signed24
    /// `S32_LE`
    case signed32
    /// `FLOAT_LE`
    case float32

    var raw: snd_pcm_format_t {
        switch self {
        case .signed16: SND_PCM_FORMAT_S16_LE
        case .signed24Packed: SND_PCM_FORMAT_S24_3LE
        case .signed24: SND_PCM_FORMAT_S24_LE
        case .signed32: SND_PCM_FORMAT_S32_LE
        case .float32: SND_PCM_FORMAT_FLOAT_LE
        }
    }
}

/// What a PCM is set to.
public struct PCMParameters: Hashable, Sendable {
    public var format: PCMFormat
    public var channels: Int
    /// Frames a second.
    public var rate: Int
    /// Frames from one interrupt to the next.
    public var periodFrames: Int
    /// Frames that the driver keeps.
    public var bufferFrames: Int

    public init(format: PCMFormat, channels: Int, rate: Int, periodFrames: Int, bufferFrames: Int) {
        self.format = format
        self.channels = channels
        self.rate = rate
        self.periodFrames = periodFrames
        self.bufferFrames = bufferFrames
    }
}

/// All that a PCM can be set to, as far as it has not been narrowed down (`snd_pcm_hw_params_t`). Nothing of it changes
/// the device.
public final class PCMSpace {
    private let pcm: CapturePCM
    let raw: OpaquePointer

    /// Everything that interleaved reading goes with (`snd_pcm_hw_params_any`).
    init(_ pcm: CapturePCM) throws(ALSAError) {
        var raw: OpaquePointer?
        try check("snd_pcm_hw_params_malloc", pcm.name, snd_pcm_hw_params_malloc(&raw))
        guard let raw else { throw ALSAError(operation: "snd_pcm_hw_params_malloc", device: pcm.name, code: ENOMEM) }
        self.pcm = pcm
        self.raw = raw
        // From here on deinit frees it, also when this throws.
        try check("snd_pcm_hw_params_any", pcm.name, snd_pcm_hw_params_any(pcm.handle, raw))
        try check(
            "snd_pcm_hw_params_set_access", pcm.name,
            snd_pcm_hw_params_set_access(pcm.handle, raw, SND_PCM_ACCESS_RW_INTERLEAVED))
    }

    private init(copy space: PCMSpace) throws(ALSAError) {
        var raw: OpaquePointer?
        try check("snd_pcm_hw_params_malloc", space.pcm.name, snd_pcm_hw_params_malloc(&raw))
        guard let raw else {
            throw ALSAError(operation: "snd_pcm_hw_params_malloc", device: space.pcm.name, code: ENOMEM)
        }
        pcm = space.pcm
        self.raw = raw
        snd_pcm_hw_params_copy(raw, space.raw)
    }

    deinit { snd_pcm_hw_params_free(raw) }

    // MARK: Asking

    public func takes(format: PCMFormat) -> Bool { snd_pcm_hw_params_test_format(pcm.handle, raw, format.raw) == 0 }

    public func takes(channels: Int) -> Bool {
        snd_pcm_hw_params_test_channels(pcm.handle, raw, UInt32(clamping: channels)) == 0
    }

    public func takes(rate: Int) -> Bool {
        snd_pcm_hw_params_test_rate(pcm.handle, raw, UInt32(clamping: rate), 0) == 0
    }

    /// The smallest and the greatest number; what lies between need not do.
    public func channels() throws(ALSAError) -> ClosedRange<Int> {
        var (low, high): (UInt32, UInt32) = (0, 0)
        try check("snd_pcm_hw_params_get_channels_min", pcm.name, snd_pcm_hw_params_get_channels_min(raw, &low))
        try check("snd_pcm_hw_params_get_channels_max", pcm.name, snd_pcm_hw_params_get_channels_max(raw, &high))
        return Int(low)...max(Int(low), Int(high))
    }

    /// The lowest and the highest, Hz; what lies between need not do.
    public func rates() throws(ALSAError) -> ClosedRange<Int> {
        var (low, high): (UInt32, UInt32) = (0, 0)
        var direction: Int32 = 0
        try check("snd_pcm_hw_params_get_rate_min", pcm.name, snd_pcm_hw_params_get_rate_min(raw, &low, &direction))
        try check("snd_pcm_hw_params_get_rate_max", pcm.name, snd_pcm_hw_params_get_rate_max(raw, &high, &direction))
        return Int(low)...max(Int(low), Int(high))
    }

    /// Frames of the shortest and of the longest period.
    public func periodFrames() throws(ALSAError) -> ClosedRange<Int> {
        var (low, high): (snd_pcm_uframes_t, snd_pcm_uframes_t) = (0, 0)
        var direction: Int32 = 0
        try check(
            "snd_pcm_hw_params_get_period_size_min", pcm.name,
            snd_pcm_hw_params_get_period_size_min(raw, &low, &direction))
        try check(
            "snd_pcm_hw_params_get_period_size_max", pcm.name,
            snd_pcm_hw_params_get_period_size_max(raw, &high, &direction))
        return Int(clamping: low)...max(Int(clamping: low), Int(clamping: high))
    }

    // MARK: Narrowing

    /// What is left with that format.
    public func with(format: PCMFormat) throws(ALSAError) -> PCMSpace {
        let space = try PCMSpace(copy: self)
        try check(
            "snd_pcm_hw_params_set_format", pcm.name,
            snd_pcm_hw_params_set_format(pcm.handle, space.raw, format.raw))
        return space
    }

    /// What is left with that number of channels.
    public func with(channels: Int) throws(ALSAError) -> PCMSpace {
        let space = try PCMSpace(copy: self)
        try check(
            "snd_pcm_hw_params_set_channels", pcm.name,
            snd_pcm_hw_params_set_channels(pcm.handle, space.raw, UInt32(clamping: channels)))
        return space
    }

    /// Narrows it down to what is nearest to a wish, part by part: the format, which has to do, the channels, the rate,
    /// the period and the buffer.
    ///
    /// - Returns: the space, and all that is left in it.
    func nearest(_ wish: PCMParameters) throws(ALSAError) -> (space: PCMSpace, parameters: PCMParameters) {
        let space = try with(format: wish.format)
        let (handle, name) = (pcm.handle, pcm.name)
        var channels = UInt32(clamping: wish.channels)
        var rate = UInt32(clamping: wish.rate)
        var period = snd_pcm_uframes_t(clamping: wish.periodFrames)
        var buffer = snd_pcm_uframes_t(clamping: wish.bufferFrames)
        var direction: Int32 = 0
        try check(
            "snd_pcm_hw_params_set_channels_near", name,
            snd_pcm_hw_params_set_channels_near(handle, space.raw, &channels))
        try check(
            "snd_pcm_hw_params_set_rate_near", name,
            snd_pcm_hw_params_set_rate_near(handle, space.raw, &rate, &direction))
        direction = 0
        try check(
            "snd_pcm_hw_params_set_period_size_near", name,
            snd_pcm_hw_params_set_period_size_near(handle, space.raw, &period, &direction))
        try check(
            "snd_pcm_hw_params_set_buffer_size_near", name,
            snd_pcm_hw_params_set_buffer_size_near(handle, space.raw, &buffer))
        return (
            space,
            PCMParameters(
                format: wish.format, channels: Int(channels), rate: Int(rate), periodFrames: Int(clamping: period),
                bufferFrames: Int(clamping: buffer))
        )
    }
}
