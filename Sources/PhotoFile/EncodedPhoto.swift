public import CaptureCore

/// A photo's file, whole.
public struct EncodedPhoto: Hashable, Sendable {
    public var bytes: [UInt8]
    /// As its pixels lie in the file: a tag that says how it is to be turned does not count.
    public var dimensions: Dimensions
    /// Of the thumbnail that stands in it; nil: there is none.
    public var thumbnail: Dimensions?

    public init(bytes: [UInt8], dimensions: Dimensions, thumbnail: Dimensions? = nil) {
        self.bytes = bytes
        self.dimensions = dimensions
        self.thumbnail = thumbnail
    }
}
