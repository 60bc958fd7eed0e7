import BusProtocol
import CaptureCore
import CaptureSources
import LinuxIO
import Testing

@testable import Worker

/// What a zoom ramp does on the device's thread, where others may come in between any two of its steps.
@Suite("Zoom ramps at the device") struct ZoomRampTests {
    private let bench = TestBench()
    private static let zoom = "zoom_absolute"

    private func keeper() throws -> DeviceKeeper {
        bench.set {
            $0.extra = [
                CaptureControl(
                    name: Self.zoom, title: "", id: 0x9A090D, type: .integer, minimum: 100, maximum: 400,
                    defaultValue: 100)
            ]
        }
        let keeper = DeviceKeeper(
            TestSource(bench), device: "cam0", committed: nil, zoom: DigitalZoomState(limit: 1))
        _ = try keeper.open()
        return keeper
    }

    private func begin(_ factor: Double, _ keeper: DeviceKeeper) throws -> RampingZoom {
        try keeper.beginZoom(ZoomWish(target: .factor(factor), rate: 1), at: MonotonicClock.now()).ramping
    }

    @Test("what ends one ramp leaves the next one running, which has begun meanwhile")
    func replaced() throws {
        let keeper = try keeper()
        let first = try begin(2, keeper)
        #expect(try keeper.stepZoom(first, to: 200))
        let second = try begin(4, keeper)
        #expect(try !keeper.stepZoom(first, to: 150))
        keeper.endZoom(first)
        #expect(keeper.rampingZoom == second)
        #expect(try keeper.stepZoom(second, to: 300))
        #expect(bench.now.set[Self.zoom] == .integer(300))
        keeper.endZoom(second)
        #expect(keeper.rampingZoom == nil && keeper.snapshot?.configuration.isRampingZoom == false)
        #expect(keeper.committed?.controls.first { $0.name == Self.zoom }?.value == .integer(300))
    }

    @Test("one that is refused changes nothing of what is committed, and of the one that runs")
    func refused() throws {
        let keeper = try keeper()
        let first = try begin(2, keeper)
        let before = (keeper.committed, keeper.generation)
        // The device goes after it was looked at.
        bench.set { $0.readsLeft = 1 }
        #expect(throws: BusError.self) { try begin(4, keeper) }
        bench.set { $0.readsLeft = nil }
        #expect(keeper.committed == before.0 && keeper.generation == before.1 && keeper.rampingZoom == first)
        #expect(try keeper.stepZoom(first, to: 200))
    }
}
