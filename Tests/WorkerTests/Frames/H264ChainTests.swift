import CaptureSources
import Testing

@testable import Worker

@Suite("Pictures that build on one another") struct H264ChainTests {
    private static let sequence: [UInt8] = [0, 0, 0, 1, 0x67, 0x42, 0, 0x1F, 0x96]
    private static let picture: [UInt8] = [0, 0, 0, 1, 0x68, 0xCE, 0x3C, 0x80]
    private static let key: [UInt8] = [0, 0, 0, 1, 0x65, 0x88, 0x84, 0x21]

    @Test("a parameter set that comes alone again and again is kept once")
    func repeated() {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 8)
        defer { memory.deallocate() }
        let slot = FrameSlot(index: 0, regions: [memory])
        var chain = H264Chain()
        func take(_ bytes: [UInt8]) -> H264Chain.Verdict {
            memory.copyBytes(from: bytes)
            slot.bytesUsed[0] = bytes.count
            return chain.take(slot)
        }
        #expect(take(Self.sequence + Self.picture + Self.key) == .picture(isKeyframe: true))
        for _ in 0..<50 { #expect(take(Self.picture) == .parameterSets) }
        #expect(take(Self.key) == .picture(isKeyframe: true))
        #expect(memory.prefix(slot.bytesUsed[0]).elementsEqual(Self.sequence + Self.picture + Self.key))
    }
}
