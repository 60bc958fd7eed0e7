import BusProtocol
import CaptureCore
import Testing

@testable import Worker

@Suite("Payloads")
struct FrameBookkeepingTests {
    @Test("planes of several regions follow one another in the payload")
    func regions() throws {
        let layout = FrameLayout(
            pixelFormat: .nv12, dimensions: Dimensions(width: 4, height: 2),
            planes: [PlaneLayout(offset: 0, stride: 4, bytes: 8), PlaneLayout(offset: 16, stride: 4, bytes: 4)])
        let plan = try #require(PayloadPlan(layout, regions: [16, 16]))
        #expect(plan.planes == [.init(offset: 0, stride: 4, bytes: 8), .init(offset: 8, stride: 4, bytes: 4)])
        #expect(plan.count(bytesUsed: [8, 4]) == 12)
        #expect(copy(plan, [Array(1...16), Array(101...116)], [8, 4]) == Array(1...8) + Array(101...104))
    }

    @Test("what a device leaves out of the last line is zero, and never old memory; more than that is a damaged frame")
    func truncated() throws {
        let layout = FrameLayout(
            pixelFormat: .yuyv, dimensions: Dimensions(width: 2, height: 2),
            planes: [PlaneLayout(offset: 0, stride: 8, bytes: 16)])
        let plan = try #require(PayloadPlan(layout, regions: [32]))
        #expect(plan.count(bytesUsed: [12]) == 16)
        #expect(copy(plan, [Array(1...32)], [12]) == Array(1...12) + [0, 0, 0, 0])
        var slot = Array(repeating: UInt8(7), count: 32)
        slot.withUnsafeMutableBytes { plan.fillUp($0, bytesUsed: [12]) }
        #expect(slot == Array(repeating: 7, count: 12) + [0, 0, 0, 0] + Array(repeating: 7, count: 16))
        slot.withUnsafeMutableBytes { plan.fillUp($0, bytesUsed: [20]) }
        #expect(slot[16] == 7)
        #expect(plan.count(bytesUsed: [8]) == nil)
        #expect(plan.count(bytesUsed: []) == nil)
        #expect(plan.count(bytesUsed: [32]) == 16)
    }

    @Test("a compressed picture is as many bytes as were filled")
    func compressed() throws {
        let layout = try #require(FrameLayout.packed(.motionJPEG, Dimensions(width: 8, height: 8)))
        let plan = try #require(PayloadPlan(layout, regions: [64]))
        #expect(plan.planes == nil)
        #expect(plan.count(bytesUsed: [10]) == 10)
        #expect(plan.count(bytesUsed: [0]) == nil)
        #expect(plan.count(bytesUsed: [65]) == nil)
        #expect(copy(plan, [Array(1...64)], [10]) == Array(1...10))
    }

    @Test("a layout that lies outside of its memory is none")
    func impossible() {
        let layout = FrameLayout(
            pixelFormat: .grey, dimensions: Dimensions(width: 4, height: 4),
            planes: [PlaneLayout(offset: 8, stride: 4, bytes: 16)])
        #expect(PayloadPlan(layout, regions: [16]) == nil)
        #expect(PayloadPlan(layout, regions: []) == nil)
    }

    private func copy(_ plan: PayloadPlan, _ regions: [[UInt8]], _ bytesUsed: [Int]) -> [UInt8] {
        var payload = [UInt8](repeating: 0xEE, count: plan.count(bytesUsed: bytesUsed) ?? 0)
        let buffers = regions.map { region in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: region.count, alignment: 16)
            buffer.copyBytes(from: region)
            return buffer
        }
        defer { for buffer in buffers { buffer.deallocate() } }
        payload.withUnsafeMutableBytes {
            plan.copy(buffers.map { UnsafeRawBufferPointer($0) }, bytesUsed: bytesUsed, into: $0)
        }
        return payload
    }
}
