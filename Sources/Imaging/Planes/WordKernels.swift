/// Loops over one line of little-endian samples of 16 bits, as those of ``PixelKernels`` are over bytes.
enum WordKernels {
    /// Samples of so many bits, 8 or more, so that the largest is 65535: the upper bits fill the lower ones.
    static func widen(
        _ source: UnsafeRawPointer, bits: Int, isSwapped: Bool, into target: UnsafeMutableRawPointer, count: Int
    ) {
        if isSwapped {
            for index in 0..<count { store(load(source, index).byteSwapped, target, index) }
            return
        }
        guard bits < 16 else {
            target.copyMemory(from: source, byteCount: 2 * count)
            return
        }
        let (up, down) = (UInt16(truncatingIfNeeded: 16 - bits), UInt16(truncatingIfNeeded: 2 * bits - 16))
        for index in 0..<count {
            let sample = load(source, index)
            store(sample &<< up | sample &>> down, target, index)
        }
    }

    /// Bytes, times 257.
    static func widen(_ source: ConstantPixels, into target: UnsafeMutableRawPointer, count: Int) {
        for index in 0..<count { store(UInt16(source[index]) &* 257, target, index) }
    }

    static func split(
        _ source: UnsafeRawPointer, _ first: UnsafeMutableRawPointer, _ second: UnsafeMutableRawPointer,
        _ third: UnsafeMutableRawPointer, _ count: Int
    ) {
        for index in 0..<count {
            store(load(source, 3 &* index), first, index)
            store(load(source, 3 &* index &+ 1), second, index)
            store(load(source, 3 &* index &+ 2), third, index)
        }
    }

    static func merge(
        _ first: UnsafeRawPointer, _ second: UnsafeRawPointer, _ third: UnsafeRawPointer,
        into target: UnsafeMutableRawPointer, count: Int
    ) {
        for index in 0..<count {
            store(load(first, index), target, 3 &* index)
            store(load(second, index), target, 3 &* index &+ 1)
            store(load(third, index), target, 3 &* index &+ 2)
        }
    }

    /// Of red, green and blue: BT.601, rounded.
    static func luma(_ source: UnsafeRawPointer, into target: UnsafeMutableRawPointer, count: Int) {
        for index in 0..<count {
            let (red, green) = (UInt32(load(source, 3 &* index)), UInt32(load(source, 3 &* index &+ 1)))
            let blue = UInt32(load(source, 3 &* index &+ 2))
            // Weights of 65536 in all, so that the sum fits.
            let sum = red &* 19595 &+ green &* 38470 &+ blue &* 7471 &+ 32768
            store(UInt16(truncatingIfNeeded: sum &>> 16), target, index)
        }
    }

    private static func load(_ source: UnsafeRawPointer, _ index: Int) -> UInt16 {
        UInt16(littleEndian: source.loadUnaligned(fromByteOffset: 2 &* index, as: UInt16.self))
    }

    private static func store(_ value: UInt16, _ target: UnsafeMutableRawPointer, _ index: Int) {
        target.storeBytes(of: value.littleEndian, toByteOffset: 2 &* index, as: UInt16.self)
    }
}
