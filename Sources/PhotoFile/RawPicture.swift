import CaptureCore
import Imaging

/// A raw frame's samples without padding, line after line: a byte each, or two with the lower one first.
struct RawPicture {
    let samples: RawSamples
    let dimensions: Dimensions
    /// What the camera's zoom leaves of it.
    let middle: (left: Int, top: Int, size: Dimensions)
    private let memory = PictureBuffer()

    /// A sample in memory.
    var bytesPerSample: Int { samples.bits > 8 ? 2 : 1 }

    /// Valid as long as this picture is.
    var bytes: UnsafeRawBufferPointer { memory.bytes }

    init(_ picture: PhotoPicture) throws(PhotoFileError) {
        let (layout, size) = (picture.layout, picture.layout.dimensions)
        guard let samples = layout.pixelFormat.rawSamples else {
            throw .unsupported("\(layout.pixelFormat.name) is no raw format: a DNG can't be made of it")
        }
        self.samples = samples
        dimensions = size
        guard (1...32768).contains(size.width), (1...32768).contains(size.height), let plane = layout.planes.first,
            (0..<1 << 40).contains(plane.offset), (0..<1 << 24).contains(plane.stride)
        else { throw .unsupported("\(layout.pixelFormat.name) of \(size) can't be") }
        let lineBytes = samples.lineBytes(width: size.width)
        let stride = plane.stride > 0 ? plane.stride : lineBytes
        guard stride >= lineBytes else {
            throw .unsupported("\(layout.pixelFormat.name) of \(size) in lines of \(stride) bytes can't be")
        }
        let needed = plane.offset + stride * (size.height - 1) + lineBytes
        guard needed <= picture.bytes.count else {
            throw .truncated(needed: needed, delivered: picture.bytes.count)
        }
        let zoom = min(max(picture.zoom, DigitalZoom.whole), Int(DigitalZoom.mostFactor) * DigitalZoom.whole)
        let part = Dimensions(
            width: max(1, size.width * DigitalZoom.whole / zoom), height: max(1, size.height * DigitalZoom.whole / zoom)
        )
        middle = ((size.width - part.width) / 2, (size.height - part.height) / 2, part)

        let bytesPerLine = size.width * (samples.bits > 8 ? 2 : 1)
        do throws(ConversionError) {
            try memory.reserve(bytesPerLine * size.height)
        } catch {
            throw PhotoFileError(error)
        }
        for line in 0..<size.height {
            let start = plane.offset + line * stride
            samples.unpack(
                UnsafeRawBufferPointer(rebasing: picture.bytes[start..<start + lineBytes]),
                into: UnsafeMutableRawBufferPointer(
                    rebasing: memory.room[line * bytesPerLine..<(line + 1) * bytesPerLine]), width: size.width)
        }
        memory.setCount(bytesPerLine * size.height)
    }
}

extension RawSamples {
    /// Which of red, green and blue (0, 1, 2) the first two pixels of the first two lines have; all 0 for grey.
    var planes: [Int] {
        switch pattern {
        case .grey: [0, 0, 0, 0]
        case .bggr: [2, 1, 1, 0]
        case .gbrg: [1, 2, 0, 1]
        case .grbg: [1, 0, 2, 1]
        case .rggb: [0, 1, 1, 2]
        }
    }

    /// Brings a line as the device has it into whole bytes.
    fileprivate func unpack(
        _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, width: Int
    ) {
        switch packing {
        case .bytes, .words: target.copyMemory(from: source)
        case .swappedWords:
            for index in stride(from: 0, to: 2 * width, by: 2) {
                target[index] = source[index + 1]
                target[index + 1] = source[index]
            }
        case .mipi:
            let (pixels, bytes, lowerBits) = (groupPixels, groupBytes, bits - 8)
            let mask = 1 << lowerBits - 1
            for column in 0..<width {
                let start = column / pixels * bytes
                // The lower bits of a group's pixels follow one another from its first byte's lowest bit on.
                let bit = column % pixels * lowerBits
                let index = start + pixels + bit / 8
                var rest = Int(source[index])
                if bit % 8 + lowerBits > 8 { rest |= Int(source[index + 1]) << 8 }
                let sample = Int(source[start + column % pixels]) << lowerBits | rest >> (bit % 8) & mask
                target[2 * column] = UInt8(truncatingIfNeeded: sample)
                target[2 * column + 1] = UInt8(truncatingIfNeeded: sample >> 8)
            }
        }
    }
}
