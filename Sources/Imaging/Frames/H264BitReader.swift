/// The bits of a unit, without the bytes that keep start codes out of it (ITU-T H.264, 7.3.1).
struct H264BitReader {
    private let unit: UnsafeRawBufferPointer
    /// The next byte's. The first one is the unit's kind.
    private var index = 1
    private var byte: UInt8 = 0
    /// Of ``byte``, that are to be read.
    private var left: UInt8 = 0
    /// Bytes in a row.
    private var zeros = 0
    /// More was read than there is, or a number of more than 32 bits.
    private(set) var isOver = false

    /// - Parameter unit: without its start code.
    init(_ unit: UnsafeRawBufferPointer) { self.unit = unit }

    mutating func flag() -> Bool {
        if left == 0 {
            if zeros >= 2, index < unit.count, unit[index] == 3 { (index, zeros) = (index + 1, 0) }
            guard index < unit.count else {
                isOver = true
                return false
            }
            (byte, left) = (unit[index], 8)
            zeros = byte == 0 ? zeros + 1 : 0
            index += 1
        }
        left -= 1
        return byte >> left & 1 == 1
    }

    mutating func number(_ count: Int) -> Int {
        var number = 0
        for _ in 0..<count { number = number << 1 | (flag() ? 1 : 0) }
        return number
    }

    /// ue(v): Exp-Golomb. Of se(v) only the bits are taken.
    mutating func golomb() -> Int {
        var zeros = 0
        while !isOver, !flag() {
            zeros += 1
            if zeros > 31 { isOver = true }
        }
        guard !isOver else { return 0 }
        return (1 << zeros) - 1 + number(zeros)
    }

    mutating func skipScalingList(_ count: Int) {
        guard flag() else { return }
        var (last, next) = (8, 8)
        for _ in 0..<count {
            if next != 0 {
                let code = golomb()
                next = (last + (code % 2 == 0 ? -code / 2 : (code + 1) / 2) + 512) & 255
            }
            if next != 0 { last = next }
        }
    }
}
