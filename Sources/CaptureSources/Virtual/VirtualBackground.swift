import CaptureCore
import Glibc

/// The still part of a virtual camera's picture in memory, in the format that frames have.
final class VirtualBackground {
    let layout: FrameLayout
    let base: UnsafeMutableRawPointer
    let sections: VirtualSections
    private(set) var look: VirtualLook?

    /// nil for a format that virtual cameras don't have, or without memory.
    ///
    /// - Parameter pixelFormat: for Motion JPEG the planes that it is encoded from: 4:2:2, full range.
    init?(_ pixelFormat: PixelFormat, _ size: Dimensions) {
        let layout: FrameLayout?
        if pixelFormat == .motionJPEG {
            let (luma, chroma) = (size.area, size.width / 2 * size.height)
            layout = FrameLayout(
                pixelFormat: .motionJPEG, dimensions: size,
                planes: [
                    PlaneLayout(offset: 0, stride: size.width, bytes: luma),
                    PlaneLayout(offset: luma, stride: size.width / 2, bytes: chroma),
                    PlaneLayout(offset: luma + chroma, stride: size.width / 2, bytes: chroma),
                ])
        } else {
            layout = FrameLayout.packed(pixelFormat, size)
        }
        var memory: UnsafeMutableRawPointer?
        guard let layout, posix_memalign(&memory, 4096, max(1, layout.totalBytes)) == 0, let memory else { return nil }
        self.layout = layout
        base = memory
        sections = VirtualSections(size: size)
    }

    deinit { free(base) }

    /// Draws everything anew if it has to look different from now on; true if so.
    func draw(_ look: VirtualLook) -> Bool {
        if look == self.look { return false }
        self.look = look
        let pattern = VirtualPattern(sections: sections, look: look)
        var encoded: [Key: [[UInt8]]] = [:]
        for line in 0..<layout.dimensions.height {
            let kind = sections.line(line)
            let physical = sections.physical(line, isUpsideDown: look.isUpsideDown)
            let key = Key(line: kind, isOdd: physical % 2 == 1)
            let planes = encoded[key] ?? encode(pattern.colors(kind), isOdd: key.isOdd)
            encoded[key] = planes
            for (index, bytes) in planes.enumerated() {
                // One line of chroma for two of luma.
                let isHalf = (layout.pixelFormat == .nv12 || layout.pixelFormat == .nv12FullRange) && index == 1
                if isHalf && key.isOdd { continue }
                let plane = layout.planes[index]
                let target = base + plane.offset + (isHalf ? physical / 2 : physical) * plane.stride
                bytes.withUnsafeBytes { source in
                    if let start = source.baseAddress { memcpy(target, start, source.count) }
                }
            }
        }
        return true
    }

    private struct Key: Hashable {
        var line: VirtualSections.Line
        var isOdd: Bool
    }

    /// A line as each plane has it.
    private func encode(_ colors: [VirtualColor], isOdd: Bool) -> [[UInt8]] {
        let pairs = stride(from: 0, to: colors.count - 1, by: 2).map { index in
            let (left, right) = (colors[index], colors[index + 1])
            return VirtualColor(
                y: (left.y + right.y) / 2, u: (left.u + right.u) / 2, v: (left.v + right.v) / 2)
        }
        switch layout.pixelFormat {
        case .yuyv:
            var bytes: [UInt8] = []
            for (index, pair) in pairs.enumerated() {
                let chroma = pair.limited
                bytes += [colors[2 * index].limited.y, chroma.u, colors[2 * index + 1].limited.y, chroma.v]
            }
            return [bytes]
        case .nv12FullRange: return [colors.map(\.full.y), pairs.flatMap { [$0.full.u, $0.full.v] }]
        case .nv12: return [colors.map(\.limited.y), pairs.flatMap { [$0.limited.u, $0.limited.v] }]
        case .motionJPEG: return [colors.map(\.full.y), pairs.map(\.full.u), pairs.map(\.full.v)]
        case .bgr24: return [colors.flatMap { [$0.rgb.b, $0.rgb.g, $0.rgb.r] }]
        case .bayerRGGB8:
            return [
                colors.enumerated().map { index, color in
                    let rgb = color.rgb
                    return switch (isOdd, index % 2 == 1) {
                    case (false, false): rgb.r
                    case (true, true): rgb.b
                    default: rgb.g
                    }
                }
            ]
        default: return [colors.map(\.full.y)]
        }
    }
}
