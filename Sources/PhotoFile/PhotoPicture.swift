public import CaptureCore

/// A frame that a photo is made of: somebody else's memory, read while the photo is made.
public struct PhotoPicture {
    public var layout: FrameLayout
    /// All of its planes as the layout has them, with as many bytes as the device filled.
    public var bytes: UnsafeRawBufferPointer
    /// How many times its middle is enlarged, in thousandths (``DigitalZoom``): the device's frames are whole, its
    /// pictures aren't.
    public var zoom: Int

    public init(_ layout: FrameLayout, _ bytes: UnsafeRawBufferPointer, zoom: Int = DigitalZoom.whole) {
        self.layout = layout
        self.bytes = bytes
        self.zoom = zoom
    }
}
