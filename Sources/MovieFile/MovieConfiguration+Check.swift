import CaptureCore
import FFmpeg

extension MovieConfiguration {
    /// - Throws: ``MovieError/unsupported(_:)`` with what can't be.
    func check() throws(MovieError) {
        guard video != nil || audio != nil else { throw .unsupported("a movie without picture and sound") }
        guard frameRate > 0, frameRate <= 1000 else { throw .unsupported("\(frameRate) frames a second") }
        if let constantFrameRate {
            guard constantFrameRate > 0, constantFrameRate <= 1000 else {
                throw .unsupported("\(constantFrameRate) frames a second")
            }
            if case .h264 = video { throw .unsupported("a constant frame rate of H.264 that is stored as it comes") }
        }
        guard movieFragmentInterval > 0, fragmentSize > 0 else { throw .unsupported("a fragment of no length") }
        if let video {
            guard fileType.holds(video.codec) else { throw .unsupported("\(video.codec) in \(fileType)") }
            switch video {
            case .motionJPEG, .h264: break
            case .raw(let layout):
                let isHeld = fileType == .mkv || layout.pixelFormat == .yuyv || layout.pixelFormat == .uyvy
                guard isHeld, layout.pixelFormat != .nv12FullRange, PictureTrack.description(layout) != nil else {
                    throw .unsupported("\(layout.pixelFormat.name) as it is in \(fileType)")
                }
            case .encoded(let layout, let settings):
                guard settings.codec == .h264 else { throw .unsupported("encoding to \(settings.codec)") }
                guard PictureTrack.description(layout) != nil else {
                    throw .unsupported("encoding \(layout.pixelFormat.name)")
                }
            }
        }
        if let audio, !fileType.holds(audio.settings.codec) {
            throw .unsupported("\(audio.settings.codec) in \(fileType)")
        }
    }
}
