import CameraBusTesting
import CaptureCore
import CaptureSources
import Testing

/// Raw formats of more than 8 bits show what that of 8 does, sample by sample.
@Suite struct VirtualDeepenerTests {
    @Test func twelveBitsInTwoBytes() throws {
        let (plain, deep) = (try line(.bayerRGGB8), try line(.bayerRGGB12))
        try #require(plain.count == 640 && deep.count == 1280)
        for x in 0..<640 {
            #expect(Int(deep[2 * x]) | Int(deep[2 * x + 1]) << 8 == (Int(plain[x]) * 4095 + 127) / 255)
        }
    }

    @Test func tenBitsPacked() throws {
        let (plain, deep) = (try line(.bayerRGGB8), try line(.bayerRGGB10Packed))
        try #require(plain.count == 640 && deep.count == 800)
        for x in 0..<640 {
            let (upper, lower) = (Int(deep[x / 4 * 5 + x % 4]), Int(deep[x / 4 * 5 + 4]))
            #expect(upper << 2 | lower >> (2 * (x % 4)) & 3 == (Int(plain[x]) * 1023 + 127) / 255)
        }
    }

    @Test func sixteenBitsOfGrey() throws {
        let (plain, deep) = (try line(.grey), try line(.grey16))
        try #require(plain.count == 640 && deep.count == 1280)
        for x in 0..<640 { #expect(deep[2 * x] == plain[x] && deep[2 * x + 1] == plain[x]) }
    }

    /// A line of the bars, which stay the same from frame to frame.
    private func line(_ format: PixelFormat) throws -> [UInt8] {
        let camera = try openCamera(0, format, 640, 360)
        let stream = try camera.startStreaming()
        defer { try? camera.stopStreaming() }
        let plane = stream.layout.planes[0]
        let slot = try nextFrame(stream)
        #expect(slot.bytesUsed == [plane.stride * 360])
        return Array(payload(slot)[200 * plane.stride..<201 * plane.stride])
    }
}
