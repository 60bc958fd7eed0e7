import BusProtocol
import CaptureCore
import FrameRing
import JSON
import MovieFile

/// How a camera's pictures are written to a movie.
struct PictureTrackPlan: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// As they come.
        case motionJPEG, h264, raw
        case encoded
        /// Encoded without loss.
        case lossless
    }

    var kind: Kind
    /// Of the pictures that the recorder receives. If they are stored unchanged, the orientation goes into the track's
    /// matrix.
    var layout: FrameLayout

    var isEncoded: Bool { kind == .encoded || kind == .lossless }

    /// What to do with the pictures of a ring.
    enum Decision: Hashable, Sendable {
        case record(PictureTrackPlan)
        /// They come right in that rendition.
        case ask(Rendition)
        case refuse(BusError)
    }

    /// - Parameter isAskedFor: the ring has the rendition that was asked for, and not what the camera gives.
    static func decide(_ ring: RingDescription, _ request: MovieRequest, isAskedFor: Bool) -> Decision {
        decide(ring, request, isAskedFor: isAskedFor) { path, why in
            .refuse(.invalidParams(path, why + advice(ring, request, isAskedFor: isAskedFor)))
        }
    }

    /// What can be chosen for pictures that the file can't hold: other files, or another codec.
    private static func advice(_ ring: RingDescription, _ request: MovieRequest, isAskedFor: Bool) -> String {
        func works(_ fileType: MovieFileType, _ codec: MovieRequest.Video.Codec) -> Bool {
            var other = request
            (other.fileType, other.video.codec) = (fileType, codec)
            let decision = decide(ring, other, isAskedFor: isAskedFor) { .refuse(.invalidParams($0, $1)) }
            if case .refuse = decision { return false }
            return true
        }
        // What goes to a server has no file.
        let files = request.url == nil ? MovieFileType.allCases : []
        let types = files.filter { $0 != request.fileType && works($0, request.video.codec) }
        let names = types.map(\.rawValue) + (works(request.fileType, .h264) ? ["the codec h264"] : [])
        return names.isEmpty ? "" : "; use \(names.joined(separator: " or "))"
    }

    /// - Parameter unheld: the decision for pictures that the file, or the server, can't hold: the parameter, and why.
    private static func decide(
        _ ring: RingDescription, _ request: MovieRequest, isAskedFor: Bool,
        unheld: (_ path: String, _ why: String) -> Decision
    ) -> Decision {
        var layout = FrameLayout(
            FormatDescription(
                pixelFormat: PixelFormat(code: ring.format),
                dimensions: Dimensions(width: ring.width, height: ring.height),
                orientation: PictureOrientation(quarters: ring.orientation / 90, isMirrored: ring.isMirrored),
                extensions: ring.extensions),
            planes: ring.planes.map { PlaneLayout(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) })
        let (format, video) = (layout.pixelFormat, request.video)
        if let wanted = request.frameRate, let rate = layout.description.frameDuration?.framesPerSecond,
            wanted > rate + Self.rateSlack
        {
            return .refuse(
                .invalidParams(
                    "frameRate",
                    "the camera delivers \(JSONValue.plain((rate * 1000).rounded() / 1000)) frames per second, and a "
                        + "movie can't have more"))
        }
        let source = layout.description.orientation
        let wish = PictureOrientation(
            quarters: (request.orientation ?? 0) / 90, isMirrored: request.mirrored ?? false)
        // What was asked for comes turned.
        let turn = isAskedFor ? .upright : source.followed(by: wish)
        layout.description.orientation = turn
        let isTurned = turn != .upright
        let tellsTurns = request.url == nil && request.fileType.tellsTurns
        let isScaled =
            video.width.map { $0 != ring.width } ?? false || video.height.map { $0 != ring.height } ?? false
        func asIs(_ kind: Kind) -> Decision {
            guard !isScaled else {
                return .refuse(
                    .invalidParams(
                        "settings.video.width", "pictures that are stored unchanged can't be scaled; use h264"))
            }
            guard !isTurned || tellsTurns else {
                let holder = request.url?.scheme.rawValue ?? request.fileType.rawValue
                return unheld("orientation", "\(holder) can't say that stored pictures have to be turned")
            }
            if kind == .raw || kind == .lossless, request.fileType == .mov, !format.isRGB, format.rawSamples == nil,
                layout.description.color.range == .full
            {
                return unheld("codec", "a mov file can't say that these pictures are in full range")
            }
            return .record(PictureTrackPlan(kind: kind, layout: layout))
        }
        func ask(_ encoding: Rendition.Encoding, _ size: Dimensions? = nil) -> Decision {
            guard !isAskedFor else {
                return .refuse(BusError(.formatUnsupported, "\(format.name) can't be recorded.", ["nearest": .null]))
            }
            var rendition = Rendition(encoding)
            rendition.videoRotationAngle = request.orientation ?? 0
            rendition.isVideoMirrored = request.mirrored ?? false
            (rendition.width, rendition.height) = (size?.width, size?.height)
            // Without a quality the bus passes the camera's own JPEG on, and doesn't turn it.
            if encoding == .jpeg, size == nil, wish == .upright, source != .upright {
                rendition.quality = PhotoSettings.usualQuality
            }
            return .ask(rendition)
        }
        let isReady = !isTurned
        // What the camera has compressed is held as it comes: it is made smaller, and encoded, when a photo is taken.
        if request.live != nil {
            guard isReady, format == .motionJPEG || format == .jpeg else {
                return ask(.jpeg, LivePhotoDecoder.smaller(turn.turned(layout.dimensions)))
            }
            return .record(PictureTrackPlan(kind: .motionJPEG, layout: layout))
        }
        switch video.codec {
        case .passThrough:
            if let kind = storedKind(format, request) { return asIs(kind) }
            guard request.url == nil, request.fileType.rawFormat(format) != nil else {
                let holder = request.url?.scheme.rawValue ?? request.fileType.rawValue
                return unheld("codec", "the camera delivers \(format.name), which \(holder) can't hold")
            }
            return asIs(.raw)
        case .automatic:
            if let kind = storedKind(format, request), !isTurned, !isScaled { return asIs(kind) }
            if format == .h264 { return asIs(.h264) }
        case .h264:
            // Nothing here decodes it.
            if format == .h264 { return asIs(.h264) }
        case .raw, .ffv1:
            let isRaw = video.codec == .raw
            let held = isRaw ? request.fileType.rawFormat(format) : request.fileType.losslessFormat(format)
            guard held == nil else {
                // These lose nothing when they are turned; luma and chroma may.
                if isTurned, !tellsTurns, let encoding = format.turnable { return ask(encoding) }
                return asIs(isRaw ? .raw : .lossless)
            }
            guard request.fileType != .mp4 else {
                return unheld("codec", "an MP4 file can't hold such pictures")
            }
            // Only the order of their bytes changes.
            if format == .bgr24 || format == .rgb24 { return ask(request.fileType == .mov ? .rgb : .bgr) }
            if MovieFileType.mkv.losslessFormat(format) != nil {
                return unheld(
                    "codec", "\(request.fileType.rawValue) can't hold \(format.name) without compression")
            }
            let nearest = format == .motionJPEG || format == .jpeg ? (isRaw ? .yuyv : .bgr) : format.nearestEncoding
            guard let nearest else {
                return .refuse(BusError(.formatUnsupported, "\(format.name) can't be recorded.", ["nearest": .null]))
            }
            return ask(nearest)
        }
        if isReady, encodable.contains(format) {
            let (most, wish) = (layout.dimensions, request.video)
            let size = Self.size(most, width: wish.width, height: wish.height)
            // Nothing is gained by more, and the encoder's memory and time go by it.
            guard wish.isFitted || size.width * size.height <= max(most.width * most.height, 4) else {
                return .refuse(
                    .invalidParams(
                        "settings.video",
                        "\(size.width)x\(size.height) is larger than the camera's picture, "
                            + "\(most.width)x\(most.height)"))
            }
            return .record(PictureTrackPlan(kind: .encoded, layout: layout))
        }
        return ask(.i420)
    }

    /// The form of the pictures of a camera with which a movie continues.
    static func request(_ request: MovieRequest, following input: RecorderOrder.Input) -> MovieRequest {
        var request = request
        (request.camera, request.orientation, request.mirrored) = (input.camera, input.orientation, input.mirrored)
        request.video = MovieRequest.Video(codec: .h264)
        return request
    }

    /// What becomes of black pictures of that size.
    static func blank(_ size: Dimensions, _ request: MovieRequest) throws(BusError) -> PictureTrackPlan {
        let kind: Kind =
            switch request.video.codec {
            case .raw: .raw
            case .ffv1: .lossless
            default: .encoded
            }
        guard request.video.codec != .passThrough else {
            throw .invalidParams("codec", "there is no picture to store unchanged; use h264")
        }
        guard var layout = FrameLayout.packed(kind == .raw ? .yuyv : .i420, size) else {
            throw BusError(.formatUnsupported, "\(size) can't be recorded.", ["nearest": .null])
        }
        layout.description.frameDuration = request.blank.frameDuration
        return PictureTrackPlan(kind: kind, layout: layout)
    }

    private static func storedKind(_ format: PixelFormat, _ request: MovieRequest) -> Kind? {
        switch format {
        // Hardly any server passes it on.
        case .motionJPEG, .jpeg: request.url == nil ? .motionJPEG : nil
        case .h264: .h264
        default: nil
        }
    }

    /// Frames a second, by which what people write is off: 29.97 for 30000/1001.
    private static let rateSlack = 0.001

    private static let encodable: Set<PixelFormat> = [.i420, .nv12, .nv12FullRange, .yuyv, .uyvy]

    /// Whether pictures of another ring can follow on these.
    func isContinued(by other: PictureTrackPlan) -> Bool {
        let (description, next) = (layout.description, other.layout.description)
        // Stored pictures would be shown with the colours that the file states of the first ones. JPEG has its own.
        let (color, nextColor) = (description.color, next.color)
        let isSame =
            kind == .motionJPEG || kind == .encoded
            || color.primaries == nextColor.primaries && color.transferFunction == nextColor.transferFunction
        return isSame && kind == other.kind && description.pixelFormat == next.pixelFormat
            && description.dimensions == next.dimensions && description.orientation == next.orientation
            && color.matrix == nextColor.matrix && color.range == nextColor.range
            && (layout.pixelFormat.isCompressed || layout.planes == other.layout.planes)
    }

    /// The rendition that gives the same format as before, whatever the camera's is; nil: none does, or none need.
    var stand: Rendition? {
        let encoding: Rendition.Encoding
        switch layout.pixelFormat {
        case .yuyv: encoding = .yuyv
        case .nv12: encoding = .nv12
        case .i420: encoding = .i420
        case .bgr24: encoding = .bgr
        case .rgb24: encoding = .rgb
        case .grey: encoding = .gray
        case .grey16: encoding = .gray16
        default: return nil
        }
        // What is encoded with loss is made of any.
        return kind == .lossless || kind == .raw ? Rendition(encoding) : nil
    }

    // MARK: As stored in the movie

    /// - Parameter parameterSets: of H.264.
    func video(_ request: MovieRequest, parameterSets: [UInt8]) -> MovieVideo {
        switch kind {
        case .motionJPEG: .motionJPEG(layout.description)
        case .h264: .h264(layout.description, parameterSets: parameterSets)
        case .raw: .raw(layout)
        case .encoded: .encoded(layout, settings(request))
        case .lossless:
            .encoded(
                layout,
                VideoSettings(
                    codec: .ffv1, width: layout.dimensions.width, height: layout.dimensions.height, bitRate: 0,
                    keyFrameInterval: 1))
        }
    }

    /// Frames a second of the movie; nil: they are not known.
    func frameRate(_ request: MovieRequest) -> Double? {
        request.frameRate ?? layout.description.frameDuration?.framesPerSecond
    }

    private func settings(_ request: MovieRequest) -> VideoSettings {
        let wish = request.video
        let size = Self.size(layout.dimensions, width: wish.width, height: wish.height)
        var settings = request.fileType.recommendedVideoSettings(size, frameRate: frameRate(request))
        if let bitRate = wish.bitRate { settings.bitRate = bitRate }
        if let interval = wish.keyFrameInterval { settings.keyFrameInterval = interval }
        if let preset = wish.preset { settings.preset = preset }
        settings.isFitted = wish.isFitted
        return settings
    }

    /// A side that is not given keeps the aspect.
    static func size(_ size: Dimensions, width: Int?, height: Int?) -> Dimensions {
        switch (width, height) {
        case (nil, nil): size
        case (let width?, let height?): Dimensions(width: width, height: height)
        case (let width?, nil):
            Dimensions(width: width, height: max(2, (width * size.height + size.width / 2) / size.width))
        case (nil, let height?):
            Dimensions(width: max(2, (height * size.width + size.height / 2) / size.height), height: height)
        }
    }
}

extension PixelFormat {
    /// The encoding that turns such pictures without loss.
    fileprivate var turnable: Rendition.Encoding? {
        switch self {
        case .bgr24: .bgr
        case .rgb24: .rgb
        case .grey: .gray
        case .grey16, .depth16: .gray16
        default: nil
        }
    }
}

extension MovieRequest {
    /// For the pictures that come later in a movie that is encoded: all of them can be scaled to its size.
    var scaled: MovieRequest {
        var request = self
        request.video = Video(codec: .h264, isFitted: true)
        return request
    }
}
