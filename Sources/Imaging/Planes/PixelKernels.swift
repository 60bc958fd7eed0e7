import Glibc

// Loops over one line of pixels, written so that the compiler makes vector code of them: one simple load and store
// pattern each, no branch, no trapping arithmetic. libswscale does the same between its own formats, but takes 8–14 ms
// for a change of range at 1920x1080 where these take less than one.

typealias ConstantPixels = UnsafePointer<UInt8>
typealias Pixels = UnsafeMutablePointer<UInt8>

enum PixelKernels {
    /// Takes pairs of bytes apart: the first of each, and the second of each.
    static func split(_ source: ConstantPixels, first: Pixels?, second: Pixels?, pairs: Int) {
        if let first {
            for index in 0..<pairs { first[index] = UInt8(truncatingIfNeeded: pair(source, index)) }
        }
        if let second {
            for index in 0..<pairs { second[index] = UInt8(truncatingIfNeeded: pair(source, index) &>> 8) }
        }
    }

    /// Puts pairs of bytes together.
    static func merge(first: ConstantPixels, second: ConstantPixels, into target: Pixels, pairs: Int) {
        let words = UnsafeMutableRawPointer(target)
        for index in 0..<pairs {
            let word = UInt16(first[index]) | UInt16(second[index]) &<< 8
            words.storeBytes(of: word.littleEndian, toByteOffset: 2 &* index, as: UInt16.self)
        }
    }

    /// Every so many-th byte.
    static func gather(_ source: ConstantPixels, every step: Int, into target: Pixels, count: Int) {
        for index in 0..<count { target[index] = source[index &* step] }
    }

    /// The mean of two lines, halves rounded up.
    static func average(_ upper: ConstantPixels, _ lower: ConstantPixels, into target: Pixels, count: Int) {
        for index in 0..<count {
            let sum = UInt16(truncatingIfNeeded: upper[index]) &+ UInt16(truncatingIfNeeded: lower[index])
            target[index] = UInt8(truncatingIfNeeded: (sum &+ 1) &>> 1)
        }
    }

    /// Shifts little-endian samples of 16 bits up.
    static func shiftUp(_ source: UnsafeRawPointer, by bits: Int, into target: UnsafeMutableRawPointer, count: Int) {
        let shift = UInt16(truncatingIfNeeded: bits)
        for index in 0..<count {
            let sample = UInt16(littleEndian: source.loadUnaligned(fromByteOffset: 2 &* index, as: UInt16.self))
            target.storeBytes(of: (sample &<< shift).littleEndian, toByteOffset: 2 &* index, as: UInt16.self)
        }
    }

    private static func pair(_ source: ConstantPixels, _ index: Int) -> UInt16 {
        UInt16(littleEndian: UnsafeRawPointer(source).loadUnaligned(fromByteOffset: 2 &* index, as: UInt16.self))
    }
}

/// Brings samples from one range to the other: 16–235 (chroma 16–240) to 0–255, or back. In 8-bit fixed point, off by
/// at most one from the exact value.
enum RangeChange {
    case toFull, toLimited

    /// In place, so that the compiler sees that input and output can't overlap otherwise.
    func luma(_ line: Pixels, _ count: Int) {
        switch self {
        case .toFull:
            for index in 0..<count {
                // In bytes but for the product: twice as many at a time.
                let above = max(line[index], 16) &- 16
                let more = UInt8(truncatingIfNeeded: (UInt16(truncatingIfNeeded: above) &* 42 &+ 128) &>> 8)
                line[index] = above &+ min(more, 255 &- above)
            }
        case .toLimited:
            for index in 0..<count {
                let value = UInt16(truncatingIfNeeded: line[index])
                line[index] = UInt8(truncatingIfNeeded: (value &* 220 &+ 128) &>> 8 &+ 16)
            }
        }
    }

    func chroma(_ line: Pixels, _ count: Int) {
        switch self {
        case .toFull:
            for index in 0..<count {
                let colour = Int16(truncatingIfNeeded: line[index]) &- 128
                let wide = colour &+ (colour &* 71 &+ 256) &>> 9 &+ 128
                line[index] = UInt8(truncatingIfNeeded: max(0, min(wide, 255)))
            }
        case .toLimited:
            for index in 0..<count {
                let colour = Int16(truncatingIfNeeded: line[index]) &- 128
                line[index] = UInt8(truncatingIfNeeded: (colour &* 225 &+ 128) &>> 8 &+ 128)
            }
        }
    }
}
