public import JSON

/// The settings that go with a kind of file (`recommendedVideoSettingsForAssetWriter`), complete.
public struct RecommendedVideo: Hashable, Sendable {
    /// Pixels; both even.
    public var width: Int
    public var height: Int
    /// Bits a second.
    public var bitRate: Int
    /// Frames from one key frame to the next at most.
    public var keyFrameInterval: Int

    /// H.264 of a size as near as it can have, key frames every two seconds, and a bit rate that grows with the size
    /// and with the frame rate.
    ///
    /// - Parameter frameRate: frames a second; nil: they are not known.
    public init(_ dimensions: Dimensions, frameRate: Double?) {
        width = min(max(dimensions.width, 2), 16384) & ~1
        height = min(max(dimensions.height, 2), 16384) & ~1
        let rate = min(frameRate ?? FrameDuration.usual.framesPerSecond, 1000)
        // A tenth of a bit for each pixel: 2.8 Mbit/s of 1280x720 at 30 frames a second, 6.2 of 1920x1080.
        bitRate = max(100_000, Int((Double(width * height) * rate / 10 / 1000).rounded() * 1000))
        keyFrameInterval = max(1, Int((rate * 2).rounded()))
    }

    /// As `movie.recommendedSettings` answers it.
    public var json: JSONValue {
        [
            "codec": "h264", "width": JSONValue(width), "height": JSONValue(height), "bitRate": JSONValue(bitRate),
            "keyFrameInterval": JSONValue(keyFrameInterval), "preset": "veryfast",
        ]
    }
}

/// The sound that goes with a kind of file, complete: AAC, and Opus in Matroska, at the rate that comes where the codec
/// has it.
public struct RecommendedAudio: Hashable, Sendable {
    public var codec: MovieRequest.Audio.Codec
    /// Samples a second.
    public var rate: Int
    public var channels: Int
    /// Bits a second.
    public var bitRate: Int

    /// - Parameter rate: samples a second.
    public init(_ fileType: MovieFileType, rate: Int, channels: Int) {
        self.channels = min(max(channels, 1), 8)
        guard fileType != .mkv else {
            codec = .opus
            self.rate = 48000
            bitRate = 48000 * self.channels
            return
        }
        codec = .aac
        // ISO/IEC 14496-3, table 1.18, without those that hardly any player knows.
        let rates = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]
        self.rate = rates.contains(rate) ? rate : 48000
        bitRate = (self.rate >= 32000 ? 64000 : 2 * self.rate) * self.channels
    }

    /// As `movie.recommendedSettings` answers it.
    public var json: JSONValue {
        [
            "codec": .string(codec.rawValue), "rate": JSONValue(rate), "channels": JSONValue(channels),
            "bitRate": JSONValue(bitRate),
        ]
    }
}
