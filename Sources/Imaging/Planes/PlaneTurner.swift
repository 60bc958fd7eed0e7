public import CaptureCore
import Glibc

/// Turns and mirrors planes of pixels.
public enum PlaneTurner {
    /// Pixels a side that are turned together, so that lines of the source stay in the cache while their columns are
    /// read.
    private static let block = 32

    /// The same for memory that is of no type.
    public static func turn(
        _ source: UnsafeRawPointer, stride: Int, _ size: Dimensions, bytesPerPixel: Int,
        _ orientation: PictureOrientation, to target: UnsafeMutableRawPointer, targetStride: Int
    ) {
        turn(
            source.assumingMemoryBound(to: UInt8.self), stride: stride, size, bytesPerPixel: bytesPerPixel,
            orientation, to: target.assumingMemoryBound(to: UInt8.self), targetStride: targetStride)
    }

    /// Turns one plane of 1, 2 or 3 bytes a pixel. The memory of both has all lines of the size; they don't overlap.
    ///
    /// - Parameter size: the source's, in pixels.
    static func turn(
        _ source: ConstantPixels, stride: Int, _ size: Dimensions, bytesPerPixel: Int,
        _ orientation: PictureOrientation, to target: Pixels, targetStride: Int
    ) {
        let turned = orientation.turned(size)
        let walk = orientation.walk(size, bytesPerPixel: bytesPerPixel, stride: stride)
        if walk.right == bytesPerPixel {
            for line in 0..<turned.height {
                memcpy(
                    target + line * targetStride, source + walk.origin + line * walk.down, turned.width * bytesPerPixel)
            }
            return
        }
        // Line by line where a line stays a line.
        let height = orientation.swapsSides ? block : 1
        let width = orientation.swapsSides ? block : turned.width
        for top in Swift.stride(from: 0, to: turned.height, by: height) {
            for left in Swift.stride(from: 0, to: turned.width, by: width) {
                let count = min(width, turned.width - left)
                for line in top..<min(top + height, turned.height) {
                    let from = source + walk.origin + left * walk.right + line * walk.down
                    let to = target + line * targetStride + left * bytesPerPixel
                    switch bytesPerPixel {
                    case 3: triples(from, step: walk.right, into: to, count: count)
                    case 2: pairs(from, step: walk.right, into: to, count: count)
                    default: bytes(from, step: walk.right, into: to, count: count)
                    }
                }
            }
        }
    }

    private static func bytes(_ source: ConstantPixels, step: Int, into target: Pixels, count: Int) {
        for index in 0..<count { target[index] = source[index &* step] }
    }

    private static func pairs(_ source: ConstantPixels, step: Int, into target: Pixels, count: Int) {
        for index in 0..<count {
            let (from, to) = (source + index &* step, target + 2 &* index)
            to[0] = from[0]
            to[1] = from[1]
        }
    }

    private static func triples(_ source: ConstantPixels, step: Int, into target: Pixels, count: Int) {
        for index in 0..<count {
            let (from, to) = (source + index &* step, target + 3 &* index)
            to[0] = from[0]
            to[1] = from[1]
            to[2] = from[2]
        }
    }
}

/// Turns and mirrors planar pictures of one size.
final class PictureTurner {
    private let orientation: PictureOrientation
    private let memory: PlanarMemory

    /// nil where nothing is to be turned.
    ///
    /// - Parameters:
    ///   - size: of the pictures that come.
    ///   - chroma: theirs; nil: luma alone.
    init?(
        _ orientation: PictureOrientation, _ size: Dimensions, chroma: ChromaLayout?
    ) throws(ConversionError) {
        if orientation == .upright { return nil }
        self.orientation = orientation
        let turned = orientation.turned(size)
        memory = try PlanarMemory(
            width: turned.width, height: turned.height, chroma: chroma.map { orientation.turned($0) })
    }

    /// The chroma in which a picture is to come, so that it has the wanted one when it is turned.
    ///
    /// Pixels that share chroma must go on sharing it. At an edge where fewer do, that would need chroma between the
    /// lines: such pictures keep all of theirs.
    static func chroma(_ wanted: ChromaLayout?, _ request: PictureRequest) -> ChromaLayout? {
        guard let wanted, request.orientation != .upright else { return wanted }
        let size = request.dimensions
        let isWhole = size.width % wanted.across == 0 && size.height % wanted.down == 0
        return isWhole ? wanted : .s444
    }

    /// Valid until the next call.
    func turn(_ picture: PlanarPicture) throws(ConversionError) -> PlanarPicture {
        turn(picture.y, memory.y)
        if let target = memory.chroma {
            guard let source = picture.chroma else { throw .failed("the picture has no chroma") }
            turn(source.u, target.u)
            turn(source.v, target.v)
        }
        return memory.picture(picture.range, picture.matrix)
    }

    private func turn(_ plane: PlaneView, _ target: PlaneMemory) {
        PlaneTurner.turn(
            plane.base, stride: plane.stride, Dimensions(width: plane.width, height: plane.height), bytesPerPixel: 1,
            orientation, to: target.base, targetStride: target.stride)
    }
}

extension PictureBuffer {
    /// Makes a packed picture of the wanted size its own, turned as the request says.
    func setTurned(
        _ picture: UnsafeRawBufferPointer, stride: Int, bytesPerPixel: Int, _ request: PictureRequest,
        _ layout: FrameLayout
    ) throws(ConversionError) {
        try reserve(layout.totalBytes)
        let size = request.unturned
        guard let target = room.baseAddress, let source = picture.baseAddress, let plane = layout.planes.first,
            picture.count >= stride * (size.height - 1) + size.width * bytesPerPixel
        else { throw .failed("there is no room for the picture") }
        PlaneTurner.turn(
            source.assumingMemoryBound(to: UInt8.self), stride: stride, size, bytesPerPixel: bytesPerPixel,
            request.orientation, to: target.assumingMemoryBound(to: UInt8.self), targetStride: plane.stride)
        setCount(layout.totalBytes)
    }
}
