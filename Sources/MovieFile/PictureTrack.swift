import BusProtocol
import CaptureCore
import FFmpeg
import Imaging

/// What was given to the muxer.
struct Written {
    var bytes = 0
    var packets = 0

    static func += (left: inout Written, right: Written) {
        left.bytes += right.bytes
        left.packets += right.packets
    }

    mutating func count(_ bytes: Int) {
        self.bytes += bytes
        packets += 1
    }
}

/// The picture of a movie on its way to the muxer.
final class PictureTrack {
    /// How long the last frame is shown, nanoseconds: as long as the shorter of the two before it, because a frame
    /// after which some are missing says nothing of the next.
    private(set) var frameDuration: Int64
    /// Nothing is shown any longer; nil: the last frame is shown for ``frameDuration``.
    var end: Int64?

    /// Nanoseconds: a frame of the very end is seen, too.
    private static let leastDuration: Int64 = 1_000_000
    private var video: MovieVideo
    /// Frames a second that the track states; nil: they are not known.
    private let frameRate: Double?
    private let encoder: VideoEncoder?
    private var source: ImageDescription?
    /// A frame without padding between its lines, one with what it lacked, or the last one's bytes.
    private var room = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// So many bytes of it are the last frame, once it is kept.
    private var keptBytes = 0
    private let keepsLast: Bool
    private let packedLayout: FrameLayout?
    private let fileType: MovieFileType
    /// Raw samples of two bytes have the other one first in the file.
    private let swapsBytes: Bool
    private var track: Muxer.Track?
    private var lastTime: Int64?
    /// How long the frame before the last one was shown; nil: that is not known, and the track states no rate.
    private var earlierDuration: Int64?
    private var largest: Int
    /// Of each frame of a movie whose pictures are not in the order in which they are shown: nanoseconds from when it
    /// is decoded to when it is shown. Empty: they are.
    private(set) var delays: [Int64] = []
    private var frames = 0

    /// - Parameters:
    ///   - fileType: of the file, which holds this.
    ///   - constantFrameRate: ``writeAgain(at:beginsFragment:to:)`` is going to be called, so that there are so many
    ///     frames a second.
    init(
        _ video: MovieVideo, _ fileType: MovieFileType, constantFrameRate: Double? = nil
    ) throws(MediaError) {
        self.video = video
        self.fileType = fileType
        swapsBytes = Self.swapsBytes(video, fileType)
        keepsLast = constantFrameRate != nil
        frameRate = constantFrameRate ?? video.frameRate
        let expectedRate = frameRate ?? FrameDuration.usual.framesPerSecond
        frameDuration = Int64(1_000_000_000 / expectedRate)
        earlierDuration = frameRate == nil ? nil : frameDuration
        switch video {
        case .motionJPEG, .h264:
            (encoder, source, packedLayout, largest) = (nil, nil, nil, 0)
        case .raw(let layout):
            (encoder, source, largest) = (nil, nil, 0)
            packedLayout = FrameLayout.packed(layout.description)
        case .encoded(let layout, let settings):
            packedLayout = nil
            source = Self.description(layout)
            var codec = VideoEncoderSettings.Codec.h264
            if settings.codec == .ffv1, let format = fileType.losslessFormat(layout.pixelFormat) {
                codec = .ffv1(format)
            }
            encoder = try VideoEncoder(
                VideoEncoderSettings(
                    codec, width: settings.width, height: settings.height, bitRate: settings.bitRate,
                    keyFrameInterval: settings.keyFrameInterval, frameRate: expectedRate, preset: settings.preset,
                    color: ColorTags(layout.description.color),
                    pixelShape: settings.pixelShape(of: layout.description)))
            guard settings.codec != .ffv1 else {
                largest = layout.totalBytes
                break
            }
            // Until one has come: a key frame is larger than others, but none is larger than its pixels.
            let pixels = settings.width * settings.height
            largest = Int(min(Double(settings.bitRate) / expectedRate, Double(pixels * 3 / 2)))
        }
    }

    deinit { room.deallocate() }

    /// Pixels that can be encoded, and how they lie in memory.
    static func description(_ layout: FrameLayout) -> ImageDescription? {
        guard let format = imageFormat(layout.pixelFormat) else { return nil }
        return ImageDescription(
            format, width: layout.dimensions.width, height: layout.dimensions.height,
            range: layout.description.color.range == .full ? .full : .limited,
            matrix: ColorMatrix(code: layout.description.color.matrix?.code))
    }

    static func imageFormat(_ format: PixelFormat) -> ImageFormat? {
        switch format {
        case .i420: .yuv420p
        case .nv12, .nv12FullRange: .nv12
        case .yuyv: .yuyv422
        case .uyvy: .uyvy422
        case .bgr24: .bgr24
        case .rgb24: .rgb24
        default: MovieFileType.samples(format)
        }
    }

    /// Pixels that H.264 is made of here.
    static let encodable: Set<PixelFormat> = [.i420, .nv12, .nv12FullRange, .yuyv, .uyvy]

    func add(to muxer: Muxer) throws(MediaError) {
        func stored(_ stored: StoredVideo, _ description: FormatDescription) throws(MediaError) -> Muxer.Track {
            let size = description.dimensions
            return try muxer.addVideo(
                stored, width: size.width, height: size.height, frameRate: frameRate,
                color: ColorTags(description.color), pixelShape: PixelShape(description),
                turn: PictureTurn(description.orientation))
        }
        switch video {
        case .motionJPEG(let description): track = try stored(.motionJPEG, description)
        case .h264(let description, let sets): track = try stored(.h264(parameterSets: sets), description)
        case .raw(let layout):
            guard let format = fileType.rawFormat(layout.pixelFormat) else { return }
            track = try stored(.raw(format), layout.description)
        case .encoded(let layout, let settings):
            guard let encoder else { return }
            // What is encoded with loss comes upright.
            let turn = PictureTurn(layout.description.orientation)
            track = try muxer.addTrack(encoder, frameRate: frameRate, turn: settings.codec == .ffv1 ? turn : .none)
        }
    }

    /// Goes on with pictures that lie otherwise in memory, whatever their size: they keep their shape, with black
    /// around them.
    func setSource(_ layout: FrameLayout) throws(MediaError) {
        guard case .encoded(_, var settings) = video, settings.codec == .h264,
            Self.encodable.contains(layout.pixelFormat), let description = Self.description(layout)
        else {
            throw MediaError("append", message: "pictures that don't match those before them")
        }
        settings.isFitted = true
        (video, source) = (.encoded(layout, settings), description)
    }

    /// It begins with a key frame, and with one goes on behind a hole.
    var needsKeyFrame: Bool { if case .h264 = video { true } else { false } }

    /// Whether a frame can follow on what has come.
    func accepts(_ time: Int64, isKeyFrame: Bool) -> Bool {
        if let lastTime { return time > lastTime }
        return isKeyFrame || !needsKeyFrame
    }

    /// How many bytes of the file a frame takes, as far as can be told.
    func expectedBytes(_ payload: UnsafeRawBufferPointer) -> Int {
        guard encoder == nil else { return largest }
        guard case .motionJPEG = video else { return payload.count }
        return payload.count + (JPEGStream.completion(of: payload)?.bytes ?? 0)
    }

    /// How many bytes of the file the last frame takes once more.
    var expectedBytesAgain: Int { encoder == nil ? keptBytes : largest }

    func write(
        _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64 = 0, isKeyFrame: Bool,
        beginsFragment: Bool, to muxer: Muxer
    ) throws(MediaError) -> Written {
        guard let track else { return Written() }
        let before = lastTime.map { time - $0 }
        let duration = shown(from: time, for: before.map { min($0, earlierDuration ?? $0) } ?? frameDuration)
        var written = Written()
        switch video {
        case .motionJPEG:
            let picture = complete(payload)
            try muxer.write(picture, to: track, at: time, duration: duration, isKeyFrame: true)
            written.count(picture.count)
            if keepsLast { keep(picture) }
        case .h264:
            try muxer.write(
                payload, to: track, at: time, presentationDelay: presentationDelay, duration: duration,
                isKeyFrame: isKeyFrame)
            written.count(payload.count)
            note(presentationDelay)
            if keepsLast { keep(payload) }
        case .raw(let layout):
            guard payload.count >= layout.totalBytes else { throw Self.tooShort(payload, layout) }
            // A driver's memory may be larger than the picture.
            let picture = UnsafeRawBufferPointer(rebasing: payload[..<layout.totalBytes])
            let bytes = packedLayout == layout && !swapsBytes ? picture : pack(picture, layout)
            try muxer.write(bytes, to: track, at: time, duration: duration, isKeyFrame: true)
            written.count(bytes.count)
            if keepsLast { keep(bytes) }
        case .encoded(let layout, let settings):
            guard let encoder, let source, payload.count >= layout.totalBytes,
                let base = UnsafeMutableRawPointer(mutating: payload.baseAddress)
            else { throw Self.tooShort(payload, layout) }
            var planes = ImagePlanes()
            for (index, plane) in layout.planes.enumerated() { planes[index] = (base + plane.offset, plane.stride) }
            let size = settings.isFitted ? fit(layout.description, settings) : nil
            try encoder.encode(planes, source, at: time, asKeyFrame: beginsFragment, size: size) {
                (packet) throws(MediaError) in
                try muxer.write(packet, to: track, duration: duration)
                written.count(packet.bytes.count)
                largest = max(largest, packet.bytes.count)
            }
        }
        (lastTime, earlierDuration, frameDuration) = (time, before ?? earlierDuration, duration)
        return written
    }

    // Most movies have none.
    private func note(_ delay: Int64) {
        defer { frames += 1 }
        guard delay > 0 || !delays.isEmpty else { return }
        if delays.isEmpty { delays = Array(repeating: 0, count: frames) }
        if delays.count < MovieIndex.mostSamples { delays.append(delay) }
    }

    private func shown(from time: Int64, for duration: Int64) -> Int64 {
        guard let end else { return duration }
        return max(min(duration, end - time), Self.leastDuration)
    }

    // The picture's display size, in pixels of the movie's shape.
    private func fit(_ description: FormatDescription, _ settings: VideoSettings) -> VideoEncoder.Size {
        let (own, movies) = (PixelShape(description), encoder?.settings.pixelShape ?? .square)
        var shape = description.dimensions
        let width = shape.width * own.width * movies.height / max(1, own.height * movies.width)
        // What nobody could show is not believed.
        if (1...16384).contains(width) { shape.width = width }
        let fitted = PictureCanvas.fit(shape, into: Dimensions(width: settings.width, height: settings.height))
        return VideoEncoder.Size(width: fitted.width, height: fitted.height)
    }

    /// Writes the last frame once more.
    func writeAgain(at time: Int64, beginsFragment: Bool, to muxer: Muxer) throws(MediaError) -> Written {
        guard let track, let lastTime else { return Written() }
        let duration = time - lastTime
        var written = Written()
        if let encoder {
            try encoder.encodeAgain(at: time, asKeyFrame: beginsFragment) { (packet) throws(MediaError) in
                try muxer.write(packet, to: track, duration: duration)
                written.count(packet.bytes.count)
            }
        } else {
            let bytes = UnsafeRawBufferPointer(rebasing: room[..<keptBytes])
            try muxer.write(bytes, to: track, at: time, duration: duration, isKeyFrame: true)
            written.count(bytes.count)
        }
        (self.lastTime, frameDuration) = (time, duration)
        return written
    }

    /// A camera may leave out what its own driver's users know; whoever opens the file doesn't. A picture that lacks
    /// nothing stays what it is.
    private func complete(_ picture: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard let completion = JPEGStream.completion(of: picture) else { return picture }
        let count = picture.count + completion.bytes
        makeRoom(count)
        completion.fill(picture, into: room)
        return UnsafeRawBufferPointer(rebasing: room[..<count])
    }

    private func makeRoom(_ count: Int) {
        guard room.count < count else { return }
        room.deallocate()
        // Some are larger than others.
        room = .allocate(byteCount: packedLayout == nil ? count * 3 / 2 : count, alignment: 64)
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        keptBytes = bytes.count
        guard let base = bytes.baseAddress, base != UnsafeRawPointer(room.baseAddress) else { return }
        makeRoom(bytes.count)
        room.baseAddress?.copyMemory(from: base, byteCount: bytes.count)
    }

    func finish(_ muxer: Muxer) throws(MediaError) -> Written {
        var written = Written()
        guard let encoder, let track else { return written }
        let duration = frameDuration
        try encoder.finish { (packet) throws(MediaError) in
            try muxer.write(packet, to: track, duration: duration)
            written.count(packet.bytes.count)
        }
        return written
    }

    private func pack(_ payload: UnsafeRawBufferPointer, _ layout: FrameLayout) -> UnsafeRawBufferPointer {
        guard let packedLayout, let base = payload.baseAddress else { return payload }
        if room.count != packedLayout.totalBytes {
            room.deallocate()
            room = .allocate(byteCount: packedLayout.totalBytes, alignment: 64)
        }
        guard let start = room.baseAddress else { return payload }
        for (from, to) in zip(layout.planes, packedLayout.planes) where to.stride > 0 {
            for line in 0..<to.bytes / to.stride {
                (start + to.offset + line * to.stride).copyMemory(
                    from: base + from.offset + line * from.stride, byteCount: to.stride)
            }
        }
        if swapsBytes {
            for index in stride(from: 0, to: room.count - 1, by: 2) {
                let sample = room.loadUnaligned(fromByteOffset: index, as: UInt16.self)
                room.storeBytes(of: sample.byteSwapped, toByteOffset: index, as: UInt16.self)
            }
        }
        return UnsafeRawBufferPointer(room)
    }

    private static func swapsBytes(_ video: MovieVideo, _ fileType: MovieFileType) -> Bool {
        guard case .raw(let layout) = video, layout.pixelFormat.rawSamples?.packing == .words else { return false }
        return fileType.rawFormat(layout.pixelFormat)?.isSwapped ?? false
    }

    private static func tooShort(_ payload: UnsafeRawBufferPointer, _ layout: FrameLayout) -> MediaError {
        MediaError("append", message: "a frame of \(payload.count) bytes, where one has \(layout.totalBytes)")
    }

}
