import BusProtocol
import CaptureCore
import Testing

@testable import Worker

@Suite("Slots and payloads")
struct FrameBookkeepingTests {
    @Test("the device always keeps two buffers")
    func reserve() {
        var ledger = SlotLedger(slots: 4)
        for slot in 0..<2 {
            ledger.dequeued(slot)
            #expect(ledger.retain(slot) == true)
            #expect(ledger.release(slot) == false)
        }
        ledger.dequeued(2)
        #expect(ledger.queued == 1)
        #expect(ledger.retain(2) == false)
        #expect(ledger.release(2) == true)
        #expect(!ledger.isHome)
        #expect(ledger.release(0) == true)
        #expect(ledger.release(1) == true)
        #expect(ledger.isHome)
    }

    @Test("a buffer is in use until the last user is done")
    func users() {
        var ledger = SlotLedger(slots: 4)
        ledger.dequeued(1)
        #expect(ledger.retain(1) == true)
        #expect(ledger.retain(1) == true)
        #expect(ledger.release(1) == false)
        #expect(ledger.release(1) == false)
        #expect(ledger.release(1) == true)
    }

    @Test("a buffer that the device doesn't take back is not waited for")
    func lost() {
        var ledger = SlotLedger(slots: 4)
        ledger.dequeued(3)
        #expect(ledger.release(3) == true)
        ledger.lost(3)
        #expect(ledger.total == 3)
        #expect(ledger.isHome)
    }

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
