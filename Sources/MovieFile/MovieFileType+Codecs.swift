public import CaptureCore
public import FFmpeg

extension MovieFileType {
    var container: MovieContainer {
        switch self {
        case .mp4: .mp4
        case .mov: .mov
        case .mkv: .matroska
        }
    }

    /// Whether a file of this kind can hold such video.
    public func holds(_ codec: VideoCodec) -> Bool { self != .mp4 || codec != .raw && codec != .ffv1 }

    /// Whether a file of this kind can hold such sound.
    public func holds(_ codec: AudioCodec) -> Bool {
        switch codec {
        case .aac: true
        case .opus: self != .mov
        // ISO/IEC 23003-5 came later than the libraries that this has to be played with.
        case .pcm: self != .mp4
        }
    }
}

/// How the video of a movie is stored (`AVVideoCodecType`).
public enum VideoCodec: String, Hashable, Sendable, CaseIterable {
    case mjpeg, h264, raw
    /// Without loss (RFC 9043).
    case ffv1
}

/// How the sound of a movie is stored.
public typealias AudioCodec = AudioEncoderSettings.Codec
