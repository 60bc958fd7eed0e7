import CaptureCore
import FFmpeg

extension MovieConfiguration {
    /// - Throws: ``MovieError/unsupported(_:)`` with what can't be.
    func check() throws(MovieError) {
        guard video != nil || audio != nil else { throw .unsupported("a movie without picture and sound") }
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
                guard fileType.rawFormat(layout.pixelFormat) != nil else {
                    throw .unsupported("\(layout.pixelFormat.name) as it is in \(fileType)")
                }
                try Self.check(layout)
            case .encoded(let layout, let settings):
                let isMade =
                    switch settings.codec {
                    case .h264: PictureTrack.encodable.contains(layout.pixelFormat)
                    case .ffv1:
                        fileType.losslessFormat(layout.pixelFormat) != nil && !settings.isFitted
                            && layout.dimensions == Dimensions(width: settings.width, height: settings.height)
                    case .mjpeg, .raw: false
                    }
                guard isMade else { throw .unsupported("encoding \(layout.pixelFormat.name) to \(settings.codec)") }
                try Self.check(layout)
            }
        }
        if let audio, !fileType.holds(audio.settings.codec) {
            throw .unsupported("\(audio.settings.codec) in \(fileType)")
        }
    }

    // Drivers tell of lines that their memory has no room for: whoever copies them would read beyond the frame.
    private static func check(_ layout: FrameLayout) throws(MovieError) {
        let (size, sides) = (layout.dimensions, 1...16384)
        guard sides.contains(size.width), sides.contains(size.height),
            let packed = FrameLayout.packed(layout.pixelFormat, size), packed.planes.count == layout.planes.count,
            zip(layout.planes, packed.planes).allSatisfy({ holds($0, $1) })
        else { throw .unsupported("\(layout.pixelFormat.name) of \(size) whose lines don't fit into the frame") }
    }

    // Whether a plane has all lines of one without padding.
    private static func holds(_ plane: PlaneLayout, _ packed: PlaneLayout) -> Bool {
        guard plane.offset >= 0, plane.stride >= packed.stride, plane.bytes >= packed.stride, packed.stride > 0,
            !plane.offset.addingReportingOverflow(plane.bytes).overflow
        else { return false }
        return (plane.bytes - packed.stride) / plane.stride >= packed.bytes / packed.stride - 1
    }
}
