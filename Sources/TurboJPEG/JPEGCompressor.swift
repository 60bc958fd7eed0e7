import CTurboJPEG

/// Makes JPEG pictures. Holds the library's tables, so keep it and use it again; used by one thread at a time.
public final class JPEGCompressor {
    private let handle: tjhandle

    public init() throws(JPEGError) {
        guard let handle = tjInitCompress() else { throw JPEGError("tjInitCompress", nil) }
        self.handle = handle
    }

    deinit { tjDestroy(handle) }

    /// The most bytes that a picture of this size can take (`tjBufSize`): room for this much is always enough. 0 for an
    /// impossible size.
    public static func maximumBytes(width: Int, height: Int, subsampling: ChromaSubsampling) -> Int {
        guard (1...65500).contains(width), (1...65500).contains(height) else { return 0 }
        let bytes = tjBufSize(Int32(width), Int32(height), subsampling.code)
        return bytes > UInt(Int.max) ? 0 : Int(bytes)
    }

    /// Compresses planar YUV, full range BT.601.
    ///
    /// - Parameters:
    ///   - planes: see ``YUVPlanes`` for how much is read of each.
    ///   - quality: 1–100.
    ///   - output: with less than ``maximumBytes(width:height:subsampling:)`` it may not fit, which is an error.
    /// - Returns: bytes written.
    public func compress(
        _ planes: YUVPlanes, width: Int, height: Int, subsampling: ChromaSubsampling, quality: Int,
        into output: UnsafeMutableRawBufferPointer
    ) throws(JPEGError) -> Int {
        let operation = "tjCompressFromYUVPlanes"
        try JPEGError.check(width: width, height: height, operation)
        try planes.check(subsampling, width: width, operation)
        var planes = planes
        return try write(operation, output) { buffer, size in
            planes.withPointers { pointers, strides in
                UnsafeMutableRawPointer(pointers).withMemoryRebound(to: UnsafePointer<UInt8>?.self, capacity: 3) {
                    tjCompressFromYUVPlanes(
                        handle, $0, Int32(width), strides, Int32(height), subsampling.code, buffer, size,
                        Int32(min(max(quality, 1), 100)), TJFLAG_NOREALLOC)
                }
            }
        }
    }

    /// Compresses a packed picture, converting its colours (`tjCompress2`).
    ///
    /// - Parameters:
    ///   - source: `stride` bytes a line; the last line need not be whole beyond its pixels.
    ///   - quality: 1–100.
    /// - Returns: bytes written.
    public func compress(
        _ source: UnsafeRawBufferPointer, format: PackedFormat, width: Int, height: Int, stride: Int,
        subsampling: ChromaSubsampling, quality: Int, into output: UnsafeMutableRawBufferPointer
    ) throws(JPEGError) -> Int {
        let operation = "tjCompress2"
        let pixels = try checkPacked(source, format, width, height, stride, operation)
        let chroma = format == .gray ? ChromaSubsampling.gray : subsampling
        return try write(operation, output) { buffer, size in
            tjCompress2(
                handle, pixels, Int32(width), Int32(clamping: stride), Int32(height), format.code, buffer, size,
                chroma.code, Int32(min(max(quality, 1), 100)), TJFLAG_NOREALLOC)
        }
    }

    /// Converts a packed picture to planar YUV as JPEG has it, without compressing (`tjEncodeYUVPlanes`).
    public func convert(
        _ source: UnsafeRawBufferPointer, format: PackedFormat, width: Int, height: Int, stride: Int,
        to planes: YUVPlanes, subsampling: ChromaSubsampling
    ) throws(JPEGError) {
        let operation = "tjEncodeYUVPlanes"
        let pixels = try checkPacked(source, format, width, height, stride, operation)
        try planes.check(subsampling, width: width, operation)
        var planes = planes
        let result = planes.withPointers { pointers, strides in
            tjEncodeYUVPlanes(
                handle, pixels, Int32(width), Int32(clamping: stride), Int32(height), format.code, pointers, strides,
                subsampling.code, 0)
        }
        guard result == 0 else { throw JPEGError(operation, handle) }
    }

    private func checkPacked(
        _ source: UnsafeRawBufferPointer, _ format: PackedFormat, _ width: Int, _ height: Int, _ stride: Int,
        _ operation: String
    ) throws(JPEGError) -> UnsafePointer<UInt8> {
        try JPEGError.check(width: width, height: height, operation)
        let line = width * format.bytesPerPixel
        guard stride >= line, stride <= Int(Int32.max), let base = source.baseAddress,
            stride * (height - 1) + line <= source.count
        else { throw JPEGError(operation: operation, message: "the source is too short for \(width)x\(height)") }
        return base.assumingMemoryBound(to: UInt8.self)
    }

    private func write(
        _ operation: String, _ output: UnsafeMutableRawBufferPointer,
        _ body: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<UInt>) -> Int32
    ) throws(JPEGError) -> Int {
        guard let base = output.baseAddress else {
            throw JPEGError(operation: operation, message: "there is no room to write to")
        }
        var buffer: UnsafeMutablePointer<UInt8>? = base.assumingMemoryBound(to: UInt8.self)
        var size = UInt(output.count)
        guard body(&buffer, &size) == 0 else { throw JPEGError(operation, handle) }
        return Int(clamping: size)
    }
}
