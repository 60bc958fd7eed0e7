public import CaptureCore
public import FFmpeg

/// How pictures are to be encoded (`AVVideoSettings`).
public struct VideoSettings: Hashable, Sendable {
    public var codec: VideoCodec
    /// Pixels; both even for H.264.
    public var width: Int
    public var height: Int
    /// Bits a second, on the average (`AVVideoAverageBitRateKey`).
    public var bitRate: Int
    /// Frames from one key frame to the next at most (`AVVideoMaxKeyFrameIntervalKey`).
    public var keyFrameInterval: Int
    /// libx264's: `ultrafast` to `placebo`.
    public var preset: String

    public init(
        codec: VideoCodec, width: Int, height: Int, bitRate: Int, keyFrameInterval: Int, preset: String = "veryfast"
    ) {
        self.codec = codec
        self.width = width
        self.height = height
        self.bitRate = bitRate
        self.keyFrameInterval = keyFrameInterval
        self.preset = preset
    }
}

/// How sound is to be encoded.
public typealias AudioSettings = AudioEncoderSettings

extension FileType {
    /// The settings that go with a file of this kind (`recommendedVideoSettingsForAssetWriter`): H.264 of a size as near as it can have, key
    /// frames every two seconds, and a bit rate that grows with the size and with the frame rate.
    ///
    /// - Parameter frameRate: frames a second.
    public func recommendedVideoSettings(_ dimensions: Dimensions, frameRate: Double) -> VideoSettings {
        let width = min(max(dimensions.width, 2), 16384) & ~1
        let height = min(max(dimensions.height, 2), 16384) & ~1
        let rate = min(max(frameRate, 1), 1000)
        // A tenth of a bit for each pixel: 2.8 Mbit/s of 1280x720 at 30 frames a second, 6.2 of 1920x1080.
        let bitRate = (Double(width * height) * rate / 10 / 1000).rounded() * 1000
        return VideoSettings(
            codec: .h264, width: width, height: height, bitRate: max(100_000, Int(bitRate)),
            keyFrameInterval: max(1, Int((rate * 2).rounded())))
    }

    /// The sound that goes with a file of this kind: AAC, and Opus in Matroska, at the rate that comes where the codec has it.
    ///
    /// - Parameter rate: samples a second.
    public func recommendedAudioSettings(rate: Int, channels: Int) -> AudioSettings {
        let channels = min(max(channels, 1), 8)
        if self == .mkv { return AudioSettings(.opus, rate: 48000, channels: channels, bitRate: 48000 * channels) }
        // ISO/IEC 14496-3, table 1.18, without those that hardly any player knows.
        let rates = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]
        let chosen = rates.contains(rate) ? rate : 48000
        let bitRate = chosen >= 32000 ? 64000 : 2 * chosen
        return AudioSettings(.aac, rate: chosen, channels: channels, bitRate: bitRate * channels)
    }
}
