import CaptureCore
import Glibc
import TurboJPEG
import X264

/// Draws the frames of a virtual camera. The still part is copied into a slot once; after that a frame costs the band,
/// the digits and the lane of the moving box.
final class VirtualPainter {
    private let background: VirtualBackground
    private let camera: UInt8
    private let line: VirtualLine
    /// Which drawing of the background each slot holds.
    private var drawn: [Int]
    private var drawing = 0
    /// nil: frames are drawn right into their slots.
    private let encoder: VirtualEncoder?

    /// nil for a format that can't be drawn, or without memory.
    init?(_ selection: FormatSelection, _ duration: FrameDuration, camera: UInt8, slots: Int) {
        let drawnAs = VirtualEncoder.source(of: selection.pixelFormat)
        guard let background = VirtualBackground(drawnAs ?? selection.pixelFormat, selection.dimensions) else {
            return nil
        }
        self.background = background
        self.camera = camera
        line = VirtualLine(background.layout)
        drawn = Array(repeating: 0, count: drawnAs == nil ? slots : 1)
        encoder = drawnAs == nil ? nil : VirtualEncoder(selection, duration)
        if drawnAs != nil && encoder == nil { return nil }
    }

    /// Draws a frame into a slot, whose sequence and time are set; false if it could not be made.
    func paint(_ slot: FrameSlot, _ state: VirtualSensorState.Value) -> Bool {
        if background.draw(state.look) { drawing += 1 }
        guard let room = slot.regions.first, let base = room.baseAddress else { return false }
        if let encoder {
            paint(background.base, 0, slot)
            let count = encoder.encode(background, keyframeRequests: state.keyframeRequests, into: room)
            slot.bytesUsed[0] = count ?? 0
            return count != nil
        }
        if drawn[slot.index] != drawing {
            memcpy(base, background.base, background.layout.totalBytes)
            drawn[slot.index] = drawing
        }
        paint(base, slot.index, slot)
        slot.bytesUsed[0] = background.layout.totalBytes
        return true
    }

    private func paint(_ base: UnsafeMutableRawPointer, _ index: Int, _ slot: FrameSlot) {
        guard let look = background.look else { return }
        line.begin(base, look)
        let counter = UInt32(truncatingIfNeeded: slot.captureSequence)
        paintBand(counter, slot.monotonicTime)
        paintDigits(counter, look)
        paintLane(slot.captureSequence, look)
    }

    private func paintBand(_ counter: UInt32, _ time: Int64) {
        let sections = background.sections
        let width = sections.size.width
        let cells = VirtualBand.cells(
            counter: counter, microseconds: UInt64(max(0, time)) / 1000, camera: camera)
        for row in cells.indices {
            for column in 0..<VirtualBand.columns {
                line.run(
                    column * width / VirtualBand.columns, (column + 1) * width / VirtualBand.columns,
                    cells[row] << column & 0x8000_0000 != 0 ? 255 : 0)
            }
            for y in (row * sections.size.height / 24)..<((row + 1) * sections.size.height / 24) { line.write(to: y) }
        }
    }

    private func paintDigits(_ counter: UInt32, _ look: VirtualLook) {
        let sections = background.sections
        let height = sections.digitsBottom - sections.bandBottom
        let dot = height / 9
        guard dot > 0 else { return }
        let figures = 10
        let left = dot * 2
        for row in 0..<VirtualDigits.rows {
            line.run(0, sections.size.width, UInt8(VirtualPattern.digitsBackground))
            var rest = counter
            for figure in (0..<figures).reversed() {
                let dots = VirtualDigits.dots(Int(rest % 10), row: row)
                rest /= 10
                let start = left + figure * (VirtualDigits.columns + 1) * dot
                for column in 0..<VirtualDigits.columns where dots & 0b10000 >> column != 0 {
                    line.run(start + column * dot, start + (column + 1) * dot, 255, isMirrored: look.isMirrored)
                }
            }
            let top = sections.bandBottom + dot + row * dot
            for y in top..<(top + dot) { line.write(to: sections.physical(y, isUpsideDown: look.isUpsideDown)) }
        }
    }

    /// A box that goes to and fro within 120 frames, over grey from dark to light.
    private func paintLane(_ sequence: UInt64, _ look: VirtualLook) {
        let sections = background.sections
        let (width, height) = (sections.size.width, sections.size.height)
        let box = max(4, width / 12)
        let phase = Int(sequence % 120)
        let left = (width - box) * (phase < 60 ? phase : 120 - phase) / 60
        line.copyLane(of: background)
        line.run(left, left + box, 255, isMirrored: look.isMirrored)
        line.run(left + box / 4, left + box - box / 4, 0, isMirrored: look.isMirrored)
        for y in sections.patternBottom..<height {
            line.write(to: sections.physical(y, isUpsideDown: look.isUpsideDown))
        }
    }
}

/// A line without colour that is put together run by run and then written to many lines of a picture.
final class VirtualLine {
    private let layout: FrameLayout
    private let bytesPerPixel: Int
    private let isLimited: Bool
    private let memory: UnsafeMutablePointer<UInt8>
    private let count: Int
    private var target: UnsafeMutableRawPointer?
    private var lane: [UInt8] = []
    private var laneLook: VirtualLook?

    init(_ layout: FrameLayout) {
        self.layout = layout
        switch layout.pixelFormat {
        case .yuyv: bytesPerPixel = 2
        case .bgr24: bytesPerPixel = 3
        default: bytesPerPixel = 1
        }
        isLimited = layout.pixelFormat == .yuyv || layout.pixelFormat == .nv12
        count = layout.dimensions.width * bytesPerPixel
        memory = .allocate(capacity: max(1, count))
        memory.initialize(repeating: 128, count: max(1, count))
    }

    deinit { memory.deallocate() }

    /// From now on lines go to this picture.
    func begin(_ target: UnsafeMutableRawPointer, _ look: VirtualLook) {
        self.target = target
        if look != laneLook {
            laneLook = look
            lane = []
        }
    }

    /// Pixels from `start` up to `end`, grey of 0–255.
    func run(_ start: Int, _ end: Int, _ level: UInt8, isMirrored: Bool = false) {
        let width = layout.dimensions.width
        let first = min(max(isMirrored ? width - end : start, 0), width)
        let last = min(max(isMirrored ? width - start : end, first), width)
        let value = isLimited ? UInt8(16 + (Int(level) * 219 + 127) / 255) : level
        if bytesPerPixel == 2 {
            var index = first * 2
            while index < last * 2 {
                memory[index] = value
                index += 2
            }
        } else {
            memset(memory + first * bytesPerPixel, Int32(value), (last - first) * bytesPerPixel)
        }
    }

    /// Begins with the background's line of the lane. Chroma stays none.
    func copyLane(of background: VirtualBackground) {
        if lane.isEmpty {
            let sections = background.sections
            let y = sections.physical(
                sections.size.height - 1, isUpsideDown: background.look?.isUpsideDown ?? false)
            lane = Array(
                UnsafeRawBufferPointer(start: background.base + y * layout.planes[0].stride, count: count))
        }
        lane.withUnsafeBufferPointer { lane in
            if let base = lane.baseAddress { memory.update(from: base, count: count) }
        }
    }

    func write(to y: Int) {
        guard let target, (0..<layout.dimensions.height).contains(y) else { return }
        memcpy(target + layout.planes[0].offset + y * layout.planes[0].stride, memory, count)
    }
}
