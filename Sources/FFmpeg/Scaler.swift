import CFFmpeg

/// A picture's kind, for a ``Scaler`` to read or make. Range and matrix matter for YUV only; grey is always taken as
/// full range.
public struct ImageDescription: Hashable, Sendable {
    public var format: ImageFormat
    public var width: Int
    public var height: Int
    public var range: ColorRange
    public var matrix: ColorMatrix

    public init(
        _ format: ImageFormat, width: Int, height: Int, range: ColorRange, matrix: ColorMatrix = .bt601
    ) {
        self.format = format
        self.width = width
        self.height = height
        self.range = range
        self.matrix = matrix
    }
}

/// Where the planes of a picture lie. The memory is not owned.
public struct ImagePlanes {
    var pointers: [4 of UnsafeMutablePointer<UInt8>?] = [nil, nil, nil, nil]
    var strides: [4 of Int32] = [0, 0, 0, 0]

    public init() {}

    /// One plane.
    public init(_ base: UnsafeMutableRawPointer, stride: Int) {
        self[0] = (base, stride)
    }

    /// A plane's start and the bytes from one line to the next; an index beyond 3 is ignored.
    public subscript(plane: Int) -> (base: UnsafeMutableRawPointer, stride: Int)? {
        get {
            guard (0..<4).contains(plane), let base = pointers[plane] else { return nil }
            return (UnsafeMutableRawPointer(base), Int(strides[plane]))
        }
        set {
            guard (0..<4).contains(plane) else { return }
            pointers[plane] = newValue?.base.assumingMemoryBound(to: UInt8.self)
            strides[plane] = Int32(clamping: newValue?.stride ?? 0)
        }
    }
}

/// How a scaler weighs pixels.
public enum ScalerQuality: Hashable, Sendable {
    /// Every source pixel counts by the area that it covers (`SWS_AREA`): for making smaller.
    case area
    /// `SWS_BICUBIC`, slower.
    case bicubic
}

/// What libswscale refuses.
public struct ScalerError: Error, Hashable, Sendable, CustomStringConvertible {
    public var operation: String
    public var message: String

    public var description: String { "\(operation): \(message)" }
}

/// Converts pictures from one size and format to another with libswscale. Used by one thread at a time.
///
/// The first one made silences FFmpeg's log for the process, which would go to standard error.
public final class Scaler {
    public let source: ImageDescription
    public let destination: ImageDescription
    private let context: OpaquePointer

    public init(from source: ImageDescription, to destination: ImageDescription, quality: ScalerQuality = .area)
        throws(ScalerError)
    {
        FFmpegLog.silence()
        let what =
            "\(source.format) \(source.width)x\(source.height) to"
            + " \(destination.format) \(destination.width)x\(destination.height)"
        for description in [source, destination] {
            guard (1...32768).contains(description.width), (1...32768).contains(description.height) else {
                throw ScalerError(operation: "sws_init_context", message: "\(what): size outside of 1...32768")
            }
        }
        guard sws_isSupportedInput(source.format.code) > 0, sws_isSupportedOutput(destination.format.code) > 0 else {
            throw ScalerError(operation: "sws_isSupportedInput", message: "\(what): format not supported")
        }
        guard let context = sws_alloc_context() else {
            throw ScalerError(operation: "sws_alloc_context", message: "no memory")
        }
        // Ranges as options before the start: sws_setColorspaceDetails alone comes too late for grey and cascaded
        // contexts.
        let options: [(String, Int64)] = [
            ("srcw", Int64(source.width)), ("srch", Int64(source.height)),
            ("src_format", Int64(source.format.code.rawValue)), ("src_range", source.range == .full ? 1 : 0),
            ("dstw", Int64(destination.width)), ("dsth", Int64(destination.height)),
            ("dst_format", Int64(destination.format.code.rawValue)), ("dst_range", destination.range == .full ? 1 : 0),
            ("sws_flags", Int64(quality == .area ? SWS_AREA : SWS_BICUBIC)),
        ]
        for (name, value) in options where av_opt_set_int(UnsafeMutableRawPointer(context), name, value, 0) < 0 {
            sws_freeContext(context)
            throw ScalerError(operation: "av_opt_set_int", message: "\(name) \(value) refused")
        }
        let result = sws_init_context(context, nil, nil)
        guard result >= 0 else {
            sws_freeContext(context)
            throw ScalerError(operation: "sws_init_context", message: "\(what): error \(result)")
        }
        // Refused (-1) where neither side is YUV, where it has no meaning.
        _ = sws_setColorspaceDetails(
            context, source.matrix.coefficients, source.range == .full ? 1 : 0, destination.matrix.coefficients,
            destination.range == .full ? 1 : 0, Self.rounding(source, destination), 1 << 16, 1 << 16)
        self.context = context
        self.source = source
        self.destination = destination
    }

    deinit { sws_freeContext(context) }

    /// Brightness, of which 256 are a level. Where libswscale has a fast way to red, green and blue it cuts fractions
    /// off in several steps, and is a level too dark on the average.
    private static func rounding(_ source: ImageDescription, _ destination: ImageDescription) -> Int32 {
        let isFast =
            [.yuv420p, .yuv422p].contains(source.format) && [.rgb24, .bgr24].contains(destination.format)
            && (source.width, source.height) == (destination.width, destination.height)
        // With more, black would not stay black.
        return isFast ? 192 : 0
    }

    /// Converts one picture. Both must have the planes, strides and sizes that were described; strides must hold a
    /// line.
    public func scale(_ picture: ImagePlanes, to result: ImagePlanes) throws(ScalerError) {
        try check(picture, source)
        try check(result, destination)
        var (from, to) = (picture, result)
        let height = from.withPointers { pointers, strides in
            to.withPointers { outPointers, outStrides in
                UnsafeMutableRawPointer(pointers).withMemoryRebound(to: UnsafePointer<UInt8>?.self, capacity: 4) {
                    sws_scale(context, $0, strides, 0, Int32(source.height), outPointers, outStrides)
                }
            }
        }
        guard Int(height) == destination.height else {
            throw ScalerError(operation: "sws_scale", message: "made \(height) of \(destination.height) lines")
        }
    }

    private func check(_ picture: ImagePlanes, _ description: ImageDescription) throws(ScalerError) {
        for plane in 0..<description.format.planes {
            guard picture.pointers[plane] != nil,
                Int(picture.strides[plane]) >= description.format.lineBytes(plane: plane, width: description.width)
            else { throw ScalerError(operation: "sws_scale", message: "plane \(plane) is missing or its stride short") }
        }
    }
}

extension ImagePlanes {
    fileprivate mutating func withPointers<Result>(
        _ body: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int32>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &pointers) { pointers in
            withUnsafeMutablePointer(to: &strides) { strides in
                body(
                    UnsafeMutableRawPointer(pointers).assumingMemoryBound(to: UnsafeMutablePointer<UInt8>?.self),
                    UnsafeMutableRawPointer(strides).assumingMemoryBound(to: Int32.self))
            }
        }
    }
}
