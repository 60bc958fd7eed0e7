/// The machine-readable band of a virtual camera's picture: who took it, when, and as which frame, in black and white
/// cells.
///
/// 32 cells across the whole width and 4 down, each 1/24 of the picture's height, at its top. Row by row, left to
/// right, they are the bits, highest first and white for 1, of 16 bytes: 0xB2, which tells the reader what black and
/// white are; the frame counter (captureSequence modulo 2³²), 4 bytes, and the monotonic clock in microseconds, 8
/// bytes, big-endian; the camera's index, 1 byte; and the CRC-16 (CCITT, from 0xFFFF) of the 13 bytes before it, 2
/// bytes, big-endian.
enum VirtualBand {
    static let columns = 32
    static let rows = 4
    private static let marker: UInt8 = 0xB2

    /// The four rows, the first cell in the highest bit.
    static func cells(counter: UInt32, microseconds: UInt64, camera: UInt8) -> [4 of UInt32] {
        var crc: UInt16 = 0xFFFF
        for shift in stride(from: 24, through: 0, by: -8) { add(UInt8(truncatingIfNeeded: counter >> shift), to: &crc) }
        for shift in stride(from: 56, through: 0, by: -8) {
            add(UInt8(truncatingIfNeeded: microseconds >> shift), to: &crc)
        }
        add(camera, to: &crc)
        return [
            UInt32(marker) << 24 | counter >> 8,
            counter << 24 | UInt32(truncatingIfNeeded: microseconds >> 40),
            UInt32(truncatingIfNeeded: microseconds >> 8),
            UInt32(truncatingIfNeeded: microseconds) << 24 | UInt32(camera) << 16 | UInt32(crc),
        ]
    }

    private static func add(_ byte: UInt8, to crc: inout UInt16) {
        crc ^= UInt16(byte) << 8
        for _ in 0..<8 { crc = crc & 0x8000 != 0 ? crc << 1 ^ 0x1021 : crc << 1 }
    }
}

/// Figures of five by seven dots, for people.
enum VirtualDigits {
    static let columns = 5
    static let rows = 7

    /// A figure's row of dots, the leftmost in bit 4.
    static func dots(_ figure: Int, row: Int) -> UInt8 {
        (0..<10).contains(figure) && (0..<rows).contains(row) ? glyphs[figure * rows + row] : 0
    }

    private static let glyphs: [UInt8] = [
        0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110,
        0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110,
        0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111,
        0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110,
        0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010,
        0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110,
        0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110,
        0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000,
        0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110,
        0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100,
    ]
}
