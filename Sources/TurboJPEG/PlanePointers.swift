import CTurboJPEG

/// The planes of a YUV picture in memory: full range, BT.601, as JPEG (JFIF) has them.
///
/// The memory is not owned. Each plane must be readable, or for decompression writable, for
/// ``ChromaSubsampling/planeHeight(_:pictureHeight:)`` lines of ``ChromaSubsampling/planeWidth(_:pictureWidth:)``
/// bytes.
public struct YUVPlanes {
    var pointers: [3 of UnsafeMutablePointer<UInt8>?]
    var strides: [3 of Int32]

    /// Three planes; strides are bytes from one line to the next.
    public init(
        y: UnsafeMutableRawPointer, yStride: Int, u: UnsafeMutableRawPointer, uStride: Int,
        v: UnsafeMutableRawPointer, vStride: Int
    ) {
        pointers = [
            y.assumingMemoryBound(to: UInt8.self), u.assumingMemoryBound(to: UInt8.self),
            v.assumingMemoryBound(to: UInt8.self),
        ]
        strides = [Int32(clamping: yStride), Int32(clamping: uStride), Int32(clamping: vStride)]
    }

    /// Luma alone, for ``ChromaSubsampling/gray``.
    public init(gray: UnsafeMutableRawPointer, stride: Int) {
        pointers = [gray.assumingMemoryBound(to: UInt8.self), nil, nil]
        strides = [Int32(clamping: stride), 0, 0]
    }

    /// Refuses planes that the library would read or write beyond a line's end, or that are missing.
    func check(_ subsampling: ChromaSubsampling, width: Int, _ operation: String) throws(JPEGError) {
        for plane in 0..<subsampling.planes {
            guard pointers[plane] != nil else {
                throw JPEGError(operation: operation, message: "plane \(plane) is missing")
            }
            guard Int(strides[plane]) >= subsampling.planeWidth(plane, pictureWidth: width) else {
                throw JPEGError(
                    operation: operation, message: "stride \(strides[plane]) of plane \(plane) is shorter than a line")
            }
        }
    }

    mutating func withPointers<Result>(
        _ body: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int32>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &pointers) { pointers in
            withUnsafeMutablePointer(to: &strides) { strides in
                pointers.withMemoryRebound(to: UnsafeMutablePointer<UInt8>?.self, capacity: 3) { pointers in
                    strides.withMemoryRebound(to: Int32.self, capacity: 3) { strides in body(pointers, strides) }
                }
            }
        }
    }
}
