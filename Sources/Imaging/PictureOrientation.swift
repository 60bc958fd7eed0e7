import CaptureCore

extension PictureOrientation {
    /// The chroma that a picture with this chroma has when it is turned; the same the other way round.
    func turned(_ chroma: ChromaLayout) -> ChromaLayout {
        swapsSides ? ChromaLayout(across: chroma.down, down: chroma.across) : chroma
    }

    /// Where the pixels of a turned picture lie in its source.
    struct Walk: Hashable {
        /// Bytes from the source's start to what becomes the first pixel.
        var origin: Int
        /// Bytes to what becomes the pixel to the right, and the one below.
        var right: Int
        var down: Int
    }

    /// - Parameters:
    ///   - size: the source's, in pixels.
    ///   - bytesPerPixel: 1 to 4.
    ///   - stride: bytes from one line of the source to the next.
    func walk(_ size: Dimensions, bytesPerPixel: Int, stride: Int) -> Walk {
        let (lastColumn, lastLine) = ((size.width - 1) * bytesPerPixel, (size.height - 1) * stride)
        var walk =
            switch quarters {
            case 1: Walk(origin: lastLine, right: -stride, down: bytesPerPixel)
            case 2: Walk(origin: lastColumn + lastLine, right: -bytesPerPixel, down: -stride)
            case 3: Walk(origin: lastColumn, right: stride, down: -bytesPerPixel)
            default: Walk(origin: 0, right: bytesPerPixel, down: stride)
            }
        if isMirrored {
            walk.origin += (turned(size).width - 1) * walk.right
            walk.right = -walk.right
        }
        return walk
    }
}
