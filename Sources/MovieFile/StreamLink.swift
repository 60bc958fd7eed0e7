import CaptureCore
import FFmpeg

/// One connection of a stream. Used by one thread at a time.
final class StreamLink {
    private let muxer: Muxer
    private let picture: PictureTrack?
    private let sound: SoundTrack?
    /// The source's time of the first frame, or of the first sound if there are no frames.
    private var start: Int64?
    private var isFirst = true

    /// Connects.
    init(_ configuration: StreamConfiguration, _ transport: StreamTransport, _ deadline: MediaDeadline)
        throws(MediaError)
    {
        muxer = try Muxer(transport.container, url: configuration.url, deadline: deadline)
        picture =
            if let video = configuration.video {
                try PictureTrack(video, .mkv)
            } else { nil }
        sound = if let audio = configuration.audio { try SoundTrack(audio) } else { nil }
        try picture?.add(to: muxer)
        try sound?.add(to: muxer)
        try muxer.start()
    }

    /// As ``MovieWriter/setSource(_:)``.
    func setSource(_ layout: FrameLayout) throws(MediaError) { try picture?.setSource(layout) }

    /// - Returns: nil: it was not sent, since nothing was there that it builds on, or it is not later than the last.
    func send(
        _ kind: PreRollRing.Kind, _ bytes: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64,
        isKeyFrame: Bool
    ) throws(MediaError) -> Written? {
        switch kind {
        case .frame:
            guard let picture else { return nil }
            let relative = time - (start ?? time)
            guard picture.accepts(relative, isKeyFrame: isKeyFrame) else { return nil }
            let written = try picture.write(
                bytes, at: relative, presentationDelay: presentationDelay, isKeyFrame: isKeyFrame,
                beginsFragment: isFirst, to: muxer)
            start = start ?? time
            isFirst = false
            return written
        case .sound:
            guard let sound else { return nil }
            if picture == nil { start = start ?? time }
            guard let start else { return nil }
            return try sound.write(bytes, at: time - start, to: muxer)
        }
    }

    /// Says that it is over.
    func finish() throws(MediaError) {
        _ = try picture?.finish(muxer)
        _ = try sound?.finish(muxer)
        try muxer.finish()
    }
}
