import CTurboJPEG

/// What a JPEG picture's header says.
public struct JPEGHeader: Hashable, Sendable {
    public var width: Int
    public var height: Int
    public var subsampling: ChromaSubsampling
    public var colors: Colors

    /// What its samples mean.
    public enum Colors: Hashable, Sendable {
        /// Luma and chroma, or luma alone: it can be had as YUV planes.
        case yuv
        /// Red, green and blue as they are.
        case rgb
        /// Cyan, magenta, yellow and black (CMYK, YCCK): it can be had as ``PackedFormat/cmyk`` only.
        case inks
    }
}

/// A scale at which the library decodes in the DCT domain, at less cost than at full size.
public enum JPEGScale: Int, Hashable, Sendable, CaseIterable, Comparable {
    case full = 1
    case half = 2
    case quarter = 4
    case eighth = 8

    /// Pixels left of so many.
    public func scaled(_ pixels: Int) -> Int { (pixels + rawValue - 1) / rawValue }

    /// Smaller pictures are less.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue > right.rawValue }
}

/// Reads JPEG pictures. Used by one thread at a time.
public final class JPEGDecompressor {
    private var handle: tjhandle

    public init() throws(JPEGError) {
        guard let handle = tjInitDecompress() else { throw JPEGError("tjInitDecompress", nil) }
        self.handle = handle
    }

    deinit { tjDestroy(handle) }

    /// Reads the header alone.
    public func header(_ jpeg: UnsafeRawBufferPointer) throws(JPEGError) -> JPEGHeader {
        let operation = "tjDecompressHeader3"
        let data = try bytes(jpeg, operation)
        var (width, height, subsampling, colorspace) = (Int32(0), Int32(0), Int32(-1), Int32(-1))
        let result = tjDecompressHeader3(
            handle, data, UInt(jpeg.count), &width, &height, &subsampling, &colorspace)
        if result != 0 {
            let error = JPEGError(operation, handle)
            // A picture that breaks off within its header would be gone on with by the next one (libjpeg-turbo 2.1).
            if let fresh = tjInitDecompress() {
                tjDestroy(handle)
                handle = fresh
            }
            // The error code says "warning" also of a failure after a warning; but then there is no size.
            guard width > 0 else { throw error }
        }
        guard let known = ChromaSubsampling(code: subsampling), width > 0, height > 0 else {
            throw JPEGError(operation: operation, message: "unknown chroma subsampling or empty picture")
        }
        return JPEGHeader(
            width: Int(width), height: Int(height), subsampling: known,
            colors: Self.colors(colorspace))
    }

    private static func colors(_ colorspace: Int32) -> JPEGHeader.Colors {
        switch colorspace {
        case Int32(TJCS_RGB.rawValue): .rgb
        case Int32(TJCS_CMYK.rawValue), Int32(TJCS_YCCK.rawValue): .inks
        default: .yuv
        }
    }

    /// Decodes to planar YUV, full range BT.601, of the picture's own subsampling (`tjDecompressToYUVPlanes`).
    ///
    /// - Parameters:
    ///   - header: of this very picture, from ``header(_:)``.
    ///   - planes: with room for the scaled size; see ``YUVPlanes`` for how much is written of each.
    /// - Returns: the library's words if the data is damaged and was decoded as far as it goes; nil if all is well.
    public func decompress(
        _ jpeg: UnsafeRawBufferPointer, header: JPEGHeader, scale: JPEGScale = .full, to planes: YUVPlanes
    ) throws(JPEGError) -> String? {
        let operation = "tjDecompressToYUVPlanes"
        let data = try bytes(jpeg, operation)
        // The library writes as much as the picture itself says, so planes for another one would overflow.
        guard try self.header(jpeg) == header else {
            throw JPEGError(operation: operation, message: "the header belongs to another picture")
        }
        let (width, height) = (scale.scaled(header.width), scale.scaled(header.height))
        try planes.check(header.subsampling, width: width, operation)
        var planes = planes
        return try warning(operation) {
            planes.withPointers { pointers, strides in
                tjDecompressToYUVPlanes(
                    handle, data, UInt(jpeg.count), pointers, Int32(width), strides, Int32(height), TJFLAG_LIMITSCANS)
            }
        }
    }

    /// Decodes to packed pixels (`tjDecompress2`).
    ///
    /// - Parameters:
    ///   - header: of this very picture, from ``header(_:)``.
    ///   - output: `stride` bytes a line, with room for the scaled size.
    /// - Returns: the library's words if the data is damaged and was decoded as far as it goes; nil if all is well.
    public func decompress(
        _ jpeg: UnsafeRawBufferPointer, header: JPEGHeader, scale: JPEGScale = .full, format: PackedFormat,
        stride: Int, to output: UnsafeMutableRawBufferPointer
    ) throws(JPEGError) -> String? {
        let operation = "tjDecompress2"
        let data = try bytes(jpeg, operation)
        let (width, height) = (scale.scaled(header.width), scale.scaled(header.height))
        let line = width * format.bytesPerPixel
        guard stride >= line, stride <= Int(Int32.max), let base = output.baseAddress,
            stride * (height - 1) + line <= output.count
        else { throw JPEGError(operation: operation, message: "there is no room for \(width)x\(height)") }
        return try warning(operation) {
            tjDecompress2(
                handle, data, UInt(jpeg.count), base.assumingMemoryBound(to: UInt8.self), Int32(width), Int32(stride),
                Int32(height), format.code, TJFLAG_LIMITSCANS)
        }
    }

    private func bytes(_ jpeg: UnsafeRawBufferPointer, _ operation: String) throws(JPEGError) -> UnsafePointer<UInt8> {
        guard let base = jpeg.baseAddress, !jpeg.isEmpty else {
            throw JPEGError(operation: operation, message: "the picture is empty")
        }
        return base.assumingMemoryBound(to: UInt8.self)
    }

    private func warning(_ operation: String, _ body: () -> Int32) throws(JPEGError) -> String? {
        if body() == 0 { return nil }
        guard tjGetErrorCode(handle) == Int32(TJERR_WARNING.rawValue) else { throw JPEGError(operation, handle) }
        return JPEGError.text(handle)
    }
}
