public import BusProtocol
public import CaptureCore

/// Finds out whether JPEG pictures can be decoded. Decodes no more pixels than it must, but reads all of each picture
/// for that. Used by one thread at a time.
public final class JPEGChecker {
    private let converter: PictureConverter
    private let output = PictureBuffer()

    /// - Throws: `formatUnsupported`.
    public init(_ layout: FrameLayout) throws(BusError) {
        let (width, height) = (layout.dimensions.width, layout.dimensions.height)
        let eighth = Dimensions(width: max(1, (width + 7) / 8), height: max(1, (height + 7) / 8))
        converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .gray, dimensions: eighth))
    }

    /// - Parameters: as of ``PictureConverter/convert(_:bytesUsed:zoom:into:)``.
    /// - Throws: why no picture can be made of it.
    public func check(_ regions: [UnsafeRawBufferPointer], bytesUsed: [Int]) throws(ConversionError) {
        _ = try converter.convert(regions, bytesUsed: bytesUsed, into: output)
    }
}
