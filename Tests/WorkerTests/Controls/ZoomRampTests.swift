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

    private func camera() throws -> CameraDevice {
        bench.set {
            $0.extra = [
                CaptureControl(
                    name: Self.zoom, title: "", id: 0x9A090D, type: .integer, minimum: 100, maximum: 400,
                    defaultValue: 100)
            ]
        }
        let camera = CameraDevice(
            TestSource(bench), device: "cam0", committed: nil, zoom: DigitalZoomState(limit: 1))
        _ = try camera.open()
        return camera
    }

    private func begin(_ factor: Double, _ camera: CameraDevice) throws -> RampingZoom {
        try camera.beginZoom(ZoomRequest(target: .factor(factor), rate: 1), at: MonotonicClock.now()).ramping
    }

    @Test("what ends one ramp leaves the next one running, which has begun meanwhile")
    func replaced() throws {
        let camera = try camera()
        let first = try begin(2, camera)
        #expect(try camera.stepZoom(first, to: 200))
        let second = try begin(4, camera)
        #expect(try !camera.stepZoom(first, to: 150))
        camera.endZoom(first)
        #expect(camera.rampingZoom == second)
        #expect(try camera.stepZoom(second, to: 300))
        #expect(bench.now.set[Self.zoom] == .integer(300))
        camera.endZoom(second)
        #expect(camera.rampingZoom == nil && camera.snapshot?.configuration.isRampingZoom == false)
        #expect(camera.committed?.controls.first { $0.name == Self.zoom }?.value == .integer(300))
    }

    @Test("one that is refused changes nothing of what is committed, and of the one that runs")
    func refused() throws {
        let camera = try camera()
        let first = try begin(2, camera)
        let before = (camera.committed, camera.generation)
        // The device goes after it was looked at.
        bench.set { $0.readsLeft = 1 }
        #expect(throws: BusError.self) { try begin(4, camera) }
        bench.set { $0.readsLeft = nil }
        #expect(camera.committed == before.0 && camera.generation == before.1 && camera.rampingZoom == first)
        #expect(try camera.stepZoom(first, to: 200))
    }
}
