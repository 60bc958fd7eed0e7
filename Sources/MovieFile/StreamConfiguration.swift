import CaptureCore
public import FFmpeg

/// How pictures and sound travel to a media server, by the beginning of its URL.
public enum StreamTransport: String, Hashable, Sendable, CaseIterable {
    /// Announced and recorded (RFC 2326, sections 10.3 and 10.11), within the one TCP connection.
    case rtsp, rtsps
    /// MPEG-TS over SRT.
    case srt
    case rtmp, rtmps

    /// nil: of another kind.
    public init?(url: String) {
        guard let scheme = url.firstRange(of: "://").map({ url[..<$0.lowerBound].lowercased() }) else { return nil }
        self.init(rawValue: scheme)
    }

    var container: MovieContainer {
        switch self {
        case .rtsp, .rtsps: .rtsp
        case .srt: .mpegts
        case .rtmp, .rtmps: .flv
        }
    }

    /// Whether such video can be sent: JPEG goes by RTP only in one of its forms, which hardly any server passes on.
    public func holds(_ codec: VideoCodec) -> Bool { codec == .h264 }

    /// Whether such sound can be sent.
    public func holds(_ codec: AudioCodec) -> Bool { codec == .aac || codec == .opus && container != .flv }
}

/// A movie that is to be sent to a media server.
public struct StreamConfiguration: Hashable, Sendable {
    public var url: String
    public var video: MovieVideo?
    public var audio: MovieAudio?
    /// Nanoseconds that connecting may take.
    public var connectTimeout: Int64 = 10_000_000_000
    /// Nanoseconds that the network may take for one frame or piece of sound.
    public var writeTimeout: Int64 = 5_000_000_000
    /// Nanoseconds, and bytes, that may wait to be sent; the oldest go first.
    public var queueDuration: Int64 = 2_000_000_000
    public var queueSize = 32 << 20
    /// Nanoseconds until the next try, which double from one to the next.
    public var retryDelays: ClosedRange<Int64> = 500_000_000...30_000_000_000

    public init(_ url: String, video: MovieVideo?, audio: MovieAudio? = nil) {
        self.url = url
        self.video = video
        self.audio = audio
    }

    /// - Throws: ``MovieError/unsupported(_:)`` with what can't be.
    func check() throws(MovieError) -> StreamTransport {
        guard let transport = StreamTransport(url: url) else {
            throw .unsupported("a URL that is not rtsp, srt or rtmp")
        }
        // As in Matroska, which can hold all that comes.
        try MovieConfiguration(.mkv, video: video, audio: audio).check()
        if let video, !transport.holds(video.codec) { throw .unsupported("\(video.codec) over \(transport)") }
        if let audio, !transport.holds(audio.settings.codec) {
            throw .unsupported("\(audio.settings.codec) over \(transport)")
        }
        return transport
    }
}

/// What a stream is doing.
public enum StreamState: Hashable, Sendable {
    case connecting
    case connected
    /// Until the next try; why.
    case waiting(MovieError)
    case closed
}

/// How far a stream is.
public struct StreamStatistics: Hashable, Sendable {
    public var state = StreamState.connecting
    /// How often it was connected.
    public var connections: UInt64 = 0
    /// Since the beginning: frames and pieces of sound that were sent, and their bytes.
    public var frames: UInt64 = 0
    public var sounds: UInt64 = 0
    public var bytes: UInt64 = 0
    /// Frames and pieces of sound that were not: the queue was full, or nobody was there, or a frame built on one that
    /// was not sent.
    public var droppedFrames: UInt64 = 0
    public var droppedSounds: UInt64 = 0
    /// Why it was last not connected.
    public var failure: MovieError?

    public init() {}
}
