import CFFmpeg

/// Writes decoded pictures to memory of a given layout: line by line where they are as wanted, else by a ``Scaler``.
///
/// Used by one thread at a time.
public final class PictureCopier {
    fileprivate var scaler: Scaler?
    /// What the scaler makes: it writes whole blocks, beyond what it was given room for.
    private var made: UnsafeMutablePointer<AVFrame>?
    /// A picture that is stored bottom up, turned.
    private var turned: UnsafeMutablePointer<AVFrame>?

    public init() {}

    deinit {
        av_frame_free(&made)
        av_frame_free(&turned)
    }

    static func range(_ format: AVPixelFormat, _ told: AVColorRange) -> ColorRange {
        // A decoder may keep the format when the range alone changes.
        guard told == AVCOL_RANGE_UNSPECIFIED else { return told == AVCOL_RANGE_JPEG ? .full : .limited }
        return switch format {
        case AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUVJ411P:
            .full
        default: .limited
        }
    }

    func copy(
        _ frame: UnsafeMutablePointer<AVFrame>, as wanted: ImageDescription, to planes: ImagePlanes
    ) throws(MediaError) {
        let picture = frame.pointee
        let format = ImageFormat(AVPixelFormat(picture.format))
        let range = Self.range(format.code, picture.color_range)
        let matrix = ColorMatrix(code: UInt8(exactly: picture.colorspace.rawValue))
        let source = ImageDescription(
            format, width: Int(picture.width), height: Int(picture.height), range: range, matrix: matrix)
        let hasRange = wanted.format != .bgr24 && wanted.format != .rgb24 && wanted.format != .gray8
        if format == wanted.format, source.width == wanted.width, source.height == wanted.height,
            !hasRange || (range == wanted.range && matrix == wanted.matrix)
        {
            return try lines(frame, wanted, planes)
        }
        let upright = try uprightPicture(frame, source)
        if scaler?.source != source || scaler?.destination != wanted {
            do throws(ScalerError) {
                scaler = try Scaler(from: source, to: wanted)
            } catch {
                throw MediaError(error.operation, message: error.message)
            }
            made = try buffer(wanted, replacing: &made)
        }
        guard let scaler, let made else { throw MediaError("av_frame_get_buffer", cffmpeg_no_memory()) }
        do throws(ScalerError) {
            try scaler.scale(Self.planes(upright), to: Self.planes(made))
        } catch {
            throw MediaError(error.operation, message: error.message)
        }
        try lines(made, wanted, planes)
    }

    private func buffer(
        _ description: ImageDescription, replacing old: inout UnsafeMutablePointer<AVFrame>?
    ) throws(MediaError) -> UnsafeMutablePointer<AVFrame>? {
        av_frame_free(&old)
        guard let frame = av_frame_alloc() else { throw MediaError("av_frame_alloc", cffmpeg_no_memory()) }
        frame.pointee.format = description.format.code.rawValue
        frame.pointee.width = Int32(clamping: description.width)
        frame.pointee.height = Int32(clamping: description.height)
        let result = av_frame_get_buffer(frame, 0)
        guard result >= 0 else {
            var freed: UnsafeMutablePointer<AVFrame>? = frame
            av_frame_free(&freed)
            throw MediaError("av_frame_get_buffer", result)
        }
        return frame
    }

    // The scaler takes strides above zero only.
    private func uprightPicture(
        _ frame: UnsafeMutablePointer<AVFrame>, _ description: ImageDescription
    ) throws(MediaError) -> UnsafeMutablePointer<AVFrame> {
        let count = description.format.planes
        guard (0..<count).contains(where: { Self.stride(frame, $0) < 0 }) else { return frame }
        if turned?.pointee.width != frame.pointee.width || turned?.pointee.height != frame.pointee.height
            || turned?.pointee.format != frame.pointee.format
        {
            turned = try buffer(description, replacing: &turned)
        }
        guard let turned else { throw MediaError("av_frame_get_buffer", cffmpeg_no_memory()) }
        try lines(frame, description, Self.planes(turned))
        return turned
    }

    private func lines(
        _ frame: UnsafeMutablePointer<AVFrame>, _ description: ImageDescription, _ planes: ImagePlanes
    ) throws(MediaError) {
        for plane in 0..<description.format.planes {
            let bytes = description.format.lineBytes(plane: plane, width: description.width)
            guard let from = Self.base(frame, plane), let to = planes[plane], bytes > 0, to.stride >= bytes else {
                throw MediaError("copyPicture", message: "plane \(plane) is missing or too narrow")
            }
            let stride = Self.stride(frame, plane)
            for line in 0..<description.format.lines(plane: plane, height: description.height) {
                (to.base + line * to.stride).copyMemory(from: from + line * stride, byteCount: bytes)
            }
        }
    }

    fileprivate static func planes(_ frame: UnsafeMutablePointer<AVFrame>) -> ImagePlanes {
        var planes = ImagePlanes()
        for plane in 0..<4 {
            if let base = base(frame, plane) { planes[plane] = (base, stride(frame, plane)) }
        }
        return planes
    }

    private static func base(_ frame: UnsafeMutablePointer<AVFrame>, _ plane: Int) -> UnsafeMutableRawPointer? {
        let data = frame.pointee.data
        let pointer: UnsafeMutablePointer<UInt8>? =
            switch plane {
            case 0: data.0
            case 1: data.1
            case 2: data.2
            default: data.3
            }
        return pointer.map(UnsafeMutableRawPointer.init)
    }

    private static func stride(_ frame: UnsafeMutablePointer<AVFrame>, _ plane: Int) -> Int {
        let strides = frame.pointee.linesize
        return switch plane {
        case 0: Int(strides.0)
        case 1: Int(strides.1)
        case 2: Int(strides.2)
        default: Int(strides.3)
        }
    }
}

extension PictureCopier {
    /// Writes a picture that lies in memory to other memory, in the format and size that is wanted there.
    ///
    /// - Parameter result: each plane with room for its lines, and no more than these is written.
    public func copy(
        _ planes: ImagePlanes, _ description: ImageDescription, as wanted: ImageDescription, to result: ImagePlanes
    ) throws(MediaError) {
        if description == wanted { return try lines(planes, wanted, result) }
        // The scaler writes whole blocks, beyond the lines' ends.
        if scaler?.destination != wanted || made == nil { made = try buffer(wanted, replacing: &made) }
        guard let made else { throw MediaError("av_frame_get_buffer", cffmpeg_no_memory()) }
        try scale(planes, description, as: wanted, to: Self.planes(made))
        try lines(made, wanted, result)
    }

    /// Writes a picture that lies in memory to a frame of that kind.
    func copy(
        _ planes: ImagePlanes, _ description: ImageDescription, as wanted: ImageDescription,
        to frame: UnsafeMutablePointer<AVFrame>
    ) throws(MediaError) {
        let result = Self.planes(frame)
        if description == wanted { return try lines(planes, wanted, result) }
        try scale(planes, description, as: wanted, to: result)
    }

    /// Writes a picture that lies in memory to a part of a frame, which is planar with 4:2:0. What is around it stays
    /// as it is.
    ///
    /// - Parameters:
    ///   - wanted: with the size of that part.
    ///   - x: where it begins, even, as ``y`` is.
    func copy(
        _ planes: ImagePlanes, _ description: ImageDescription, as wanted: ImageDescription, x: Int, y: Int,
        of frame: UnsafeMutablePointer<AVFrame>
    ) throws(MediaError) {
        let whole = Self.planes(frame)
        var part = ImagePlanes()
        for plane in 0..<wanted.format.planes {
            guard let (base, stride) = whole[plane] else { continue }
            let shift = plane == 0 ? 0 : 1
            part[plane] = (base + (y >> shift) * stride + (x >> shift), stride)
        }
        try copy(planes, description, as: wanted, to: part)
    }

    /// Makes a frame black, which is planar with 4:2:0 and of a limited range.
    static func blacken(_ frame: UnsafeMutablePointer<AVFrame>) {
        let planes = Self.planes(frame)
        for plane in 0..<3 {
            guard let (base, stride) = planes[plane] else { continue }
            let lines = ImageFormat.yuv420p.lines(plane: plane, height: Int(frame.pointee.height))
            base.initializeMemory(as: UInt8.self, repeating: plane == 0 ? 16 : 128, count: stride * lines)
        }
    }

    private func scale(
        _ planes: ImagePlanes, _ description: ImageDescription, as wanted: ImageDescription, to result: ImagePlanes
    ) throws(MediaError) {
        do throws(ScalerError) {
            if scaler?.source != description || scaler?.destination != wanted {
                scaler = try Scaler(from: description, to: wanted)
            }
            try scaler?.scale(planes, to: result)
        } catch {
            throw MediaError(error.operation, message: error.message)
        }
    }

    private func lines(
        _ planes: ImagePlanes, _ wanted: ImageDescription, _ result: ImagePlanes
    ) throws(MediaError) {
        for plane in 0..<wanted.format.planes {
            let bytes = wanted.format.lineBytes(plane: plane, width: wanted.width)
            guard let from = planes[plane], let to = result[plane], from.stride >= bytes, to.stride >= bytes else {
                throw MediaError("copyPicture", message: "plane \(plane) is missing or too narrow")
            }
            for line in 0..<wanted.format.lines(plane: plane, height: wanted.height) {
                (to.base + line * to.stride).copyMemory(from: from.base + line * from.stride, byteCount: bytes)
            }
        }
    }
}
