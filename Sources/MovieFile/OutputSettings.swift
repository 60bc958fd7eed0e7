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
    /// Pictures keep their shape in that width and height, with black around them.
    public var isFitted: Bool

    public init(
        codec: VideoCodec, width: Int, height: Int, bitRate: Int, keyFrameInterval: Int, preset: String = "veryfast",
        isFitted: Bool = false
    ) {
        self.codec = codec
        self.width = width
        self.height = height
        self.bitRate = bitRate
        self.keyFrameInterval = keyFrameInterval
        self.preset = preset
        self.isFitted = isFitted
    }
}

/// How sound is to be encoded.
public typealias AudioSettings = AudioEncoderSettings

extension MovieFileType {
    /// The settings that go with a file of this kind (`recommendedVideoSettingsForAssetWriter`): ``RecommendedVideo``.
    ///
    /// - Parameter frameRate: frames a second; nil: they are not known.
    public func recommendedVideoSettings(_ dimensions: Dimensions, frameRate: Double?) -> VideoSettings {
        let video = RecommendedVideo(dimensions, frameRate: frameRate)
        return VideoSettings(
            codec: .h264, width: video.width, height: video.height, bitRate: video.bitRate,
            keyFrameInterval: video.keyFrameInterval)
    }

    /// The sound that goes with a file of this kind: ``RecommendedAudio``.
    ///
    /// - Parameter rate: samples a second.
    public func recommendedAudioSettings(rate: Int, channels: Int) -> AudioSettings {
        let audio = RecommendedAudio(self, rate: rate, channels: channels)
        return AudioSettings(
            AudioCodec(audio.codec), rate: audio.rate, channels: audio.channels, bitRate: audio.bitRate)
    }
}

extension AudioCodec {
    fileprivate init(_ codec: MovieRequest.Audio.Codec) {
        switch codec {
        case .aac: self = .aac
        case .opus: self = .opus
        case .pcm: self = .pcm
        }
    }
}
