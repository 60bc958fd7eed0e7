import CaptureCore
import FFmpeg
import Glibc

/// Brings planes to another size and to other chroma, keeping the range: each plane for itself, so no colour can shift.
///
/// Chroma is taken as lying in the middle of the pixels that share it, as JPEG has it.
final class PlanarScaler {
    private enum Chroma {
        case none
        /// No colour, for pictures that come without: one line that stands for all.
        case neutral(PlaneMemory, height: Int, ChromaLayout)
        case scaled(u: PlaneScaler, v: PlaneScaler, ChromaLayout)
    }

    private let y: PlaneScaler
    private let chroma: Chroma

    /// - Parameters:
    ///   - chroma: what comes; nil: luma alone.
    ///   - wanted: what is to be made; nil: luma alone.
    init(
        from: Dimensions, chroma: ChromaLayout?, to: Dimensions, chroma wanted: ChromaLayout?
    ) throws(ConversionError) {
        y = try PlaneScaler(from.width, from.height, to.width, to.height)
        guard let wanted else {
            self.chroma = .none
            return
        }
        let (width, height) = (wanted.width(to.width), wanted.height(to.height))
        guard let chroma else {
            let line = try PlaneMemory(width: width, height: 1)
            memset(line.base, 128, line.stride)
            self.chroma = .neutral(line, height: height, wanted)
            return
        }
        let (fromWidth, fromHeight) = (chroma.width(from.width), chroma.height(from.height))
        func scaler() throws(ConversionError) -> PlaneScaler {
            try PlaneScaler(fromWidth, fromHeight, width, height, repeats: from == to)
        }
        self.chroma = .scaled(u: try scaler(), v: try scaler(), wanted)
    }

    /// The planes are valid until the next call, and as long as those of `picture`.
    func scale(_ picture: PlanarPicture) throws(ConversionError) -> PlanarPicture {
        var result = PlanarPicture(y: try y.scale(picture.y), chroma: nil, range: picture.range, matrix: picture.matrix)
        switch chroma {
        case .none: break
        case .neutral(let line, let height, let layout):
            let plane = PlaneView(base: line.base, stride: 0, width: line.width, height: height)
            result.chroma = (plane, plane, layout)
        case .scaled(let u, let v, let layout):
            guard let source = picture.chroma else { throw .failed("the picture has no chroma") }
            result.chroma = (try u.scale(source.u), try v.scale(source.v), layout)
        }
        return result
    }
}

/// Brings one plane to another size.
private final class PlaneScaler {
    private enum Way {
        case none
        case averageLines(PlaneMemory)
        /// Each sample so many times, across and down.
        case repeated(Int, Int, PlaneMemory)
        case scale(Scaler, PlaneMemory)
    }
    private let way: Way

    /// - Parameter repeats: pixels that shared a sample get it each, and nothing between two of them: edges of colours
    ///   stay where they are.
    init(
        _ fromWidth: Int, _ fromHeight: Int, _ toWidth: Int, _ toHeight: Int, repeats: Bool = false
    ) throws(ConversionError) {
        if (fromWidth, fromHeight) == (toWidth, toHeight) {
            way = .none
            return
        }
        let memory = try PlaneMemory(width: toWidth, height: toHeight)
        if fromWidth == toWidth, (fromHeight + 1) / 2 == toHeight {
            way = .averageLines(memory)
        } else if let across = Self.times(fromWidth, toWidth), let down = Self.times(fromHeight, toHeight),
            repeats || (across == 1 && down == 2)
        {
            way = .repeated(across, down, memory)
        } else {
            let scaler = try failing { () throws(ScalerError) in
                try Scaler(
                    from: ImageDescription(.gray8, width: fromWidth, height: fromHeight, range: .full),
                    to: ImageDescription(.gray8, width: toWidth, height: toHeight, range: .full))
            }
            way = .scale(scaler, memory)
        }
    }

    /// How often each sample has to be there; nil: they don't fit.
    private static func times(_ from: Int, _ to: Int) -> Int? { [1, 2, 4].first { from == (to + $0 - 1) / $0 } }

    func scale(_ plane: PlaneView) throws(ConversionError) -> PlaneView {
        switch way {
        case .none: return plane
        case .averageLines(let memory):
            for line in 0..<memory.height {
                let upper = plane.line(line * 2)
                let lower = plane.line(min(line * 2 + 1, plane.height - 1))
                PixelKernels.average(upper, lower, into: memory.line(line), count: memory.width)
            }
            return memory.view
        case .repeated(let across, let down, let memory):
            for line in 0..<memory.height {
                let (source, target) = (plane.line(line / down), memory.line(line))
                if across == 1 {
                    memcpy(target, source, memory.width)
                } else {
                    for index in 0..<memory.width { target[index] = source[index / across] }
                }
            }
            return memory.view
        case .scale(let scaler, let memory):
            try failing { () throws(ScalerError) in
                try scaler.scale(
                    ImagePlanes(plane.writable, stride: plane.stride),
                    to: ImagePlanes(memory.base, stride: memory.stride))
            }
            return memory.view
        }
    }
}
