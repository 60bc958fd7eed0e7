import CTurboJPEG

/// How a JPEG picture is turned without decoding it (`TJXOP_*`).
public enum JPEGTransform: Hashable, Sendable, CaseIterable {
    /// Left and right exchanged.
    case mirror
    /// Top and bottom exchanged.
    case flip
    /// Mirrored at the diagonal from top left to bottom right.
    case transpose
    /// Mirrored at the diagonal from top right to bottom left.
    case transverse
    /// Clockwise.
    case rotate90, rotate180, rotate270

    var code: Int32 {
        switch self {
        case .mirror: Int32(TJXOP_HFLIP.rawValue)
        case .flip: Int32(TJXOP_VFLIP.rawValue)
        case .transpose: Int32(TJXOP_TRANSPOSE.rawValue)
        case .transverse: Int32(TJXOP_TRANSVERSE.rawValue)
        case .rotate90: Int32(TJXOP_ROT90.rawValue)
        case .rotate180: Int32(TJXOP_ROT180.rawValue)
        case .rotate270: Int32(TJXOP_ROT270.rawValue)
        }
    }

    /// Whether nothing of such a picture would be left over: blocks that aren't whole can only be at the right and at
    /// the bottom.
    public func isPerfect(_ header: JPEGHeader) -> Bool {
        let hasWholeColumns = header.width % (8 * header.subsampling.horizontalFactor) == 0
        let hasWholeLines = header.height % (8 * header.subsampling.verticalFactor) == 0
        return switch self {
        case .transpose: true
        case .mirror, .rotate270: hasWholeColumns
        case .flip, .rotate90: hasWholeLines
        case .rotate180, .transverse: hasWholeColumns && hasWholeLines
        }
    }
}

/// Turns JPEG pictures without decoding and encoding them, so that nothing is lost. Used by one thread at a time.
public final class JPEGTransformer {
    private let handle: tjhandle

    public init() throws(JPEGError) {
        guard let handle = tjInitTransform() else { throw JPEGError("tjInitTransform", nil) }
        self.handle = handle
    }

    deinit { tjDestroy(handle) }

    /// The most bytes that a turned picture can take: room for this much is always enough. 0 for an impossible size.
    public static func maximumBytes(_ header: JPEGHeader) -> Int {
        // The library asks for as many as the unturned picture may take.
        max(
            JPEGCompressor.maximumBytes(
                width: header.width, height: header.height, subsampling: header.subsampling),
            JPEGCompressor.maximumBytes(
                width: header.height, height: header.width, subsampling: header.subsampling))
    }

    /// Turns a picture (`tjTransform`). What stands in it beside the picture (EXIF, comments) is left out.
    ///
    /// - Parameters:
    ///   - header: of this very picture.
    ///   - output: with at least ``maximumBytes(_:)``.
    /// - Returns: bytes written, and the library's words if the data is damaged and was turned as far as it goes.
    /// - Throws: also where ``JPEGTransform/isPerfect(_:)`` says no.
    public func transform(
        _ jpeg: UnsafeRawBufferPointer, header: JPEGHeader, _ transform: JPEGTransform,
        into output: UnsafeMutableRawBufferPointer
    ) throws(JPEGError) -> (bytes: Int, warning: String?) {
        let operation = "tjTransform"
        guard let base = jpeg.baseAddress, !jpeg.isEmpty, let room = output.baseAddress,
            output.count >= Self.maximumBytes(header)
        else { throw JPEGError(operation: operation, message: "there is no picture, or no room for it") }
        var wish = tjtransform()
        wish.op = transform.code
        wish.options = TJXOPT_PERFECT | TJXOPT_COPYNONE
        var buffer: UnsafeMutablePointer<UInt8>? = room.assumingMemoryBound(to: UInt8.self)
        var size = UInt(output.count)
        let result = tjTransform(
            handle, base.assumingMemoryBound(to: UInt8.self), UInt(jpeg.count), 1, &buffer, &size, &wish,
            TJFLAG_NOREALLOC | TJFLAG_LIMITSCANS)
        guard size <= UInt(output.count) else { throw JPEGError(operation: operation, message: "it wrote too much") }
        if result == 0 { return (Int(size), nil) }
        guard tjGetErrorCode(handle) == Int32(TJERR_WARNING.rawValue) else { throw JPEGError(operation, handle) }
        return (Int(size), JPEGError.text(handle))
    }
}
