import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import FrameRing
import JSON
import LinuxIO
import Testing

extension KernelTests {
    /// Frames that the driver writes where the bus's clients read them.
    @Suite struct Rings {
        @Test func framesInTheRingAreV4L2ctls() async throws {
            let test = try TestCamera()
            let file = URL(filePath: "/tmp/camerabus-ring-\(ProcessInfo.processInfo.processIdentifier)")
            defer { try? FileManager.default.removeItem(at: file) }
            try test.v4l2ctl(
                "--set-fmt-video", "width=640,height=360,pixelformat=YUYV", "--stream-mmap", "--stream-count=1",
                "--stream-to=\(file.path())")
            let theirs = try Array(Data(contentsOf: file))
            #expect(theirs.count == 640 * 360 * 2)

            let bus = try await BusHarness(virtual: nil)
            let client = try RawClient(path: bus.directory.commandSocket)
            let identity = try #require(KernelRing.identities.first)
            var device = ""
            func value() throws -> JSONValue {
                try client.call("device.get", ["device": .string(device)], within: 60)["device"] ?? .null
            }
            try await eventually(by: .after(seconds: 120)) {
                let devices = try client.call("device.list", within: 60)["devices"]?.array ?? []
                let found = devices.first { $0["uniqueID"]?.string == identity.uniqueID }
                device = found?["id"]?.string ?? ""
                return !(found?["activeFormat"]?.isNull ?? true)
            }
            #expect(try value()["memory"]?.isNull == true)
            try await KernelTests.tellingLog(of: bus) {
                let rings = try RingConnection(bus.directory, device)
                var compared = 0
                while compared < 20 {
                    let frame = try #require(try rings.next(timeout: .seconds(60)))
                    guard let isSame = rings.use(frame, { $0.elementsEqual(theirs) }) else { continue }
                    #expect(isSame, "frame \(compared) differs from v4l2-ctl's")
                    if !isSame { break }
                    compared += 1
                }
                let expected = KernelRing.topology == .multi ? "mmap" : "userptr"
                try await eventually(by: .after(seconds: 30)) { try value()["memory"]?.string == expected }
                #expect(rings.ring?.slots == 12 && rings.ring?.keep == 4)
            }
            try await eventually(by: .after(seconds: 30)) { try value()["memory"]?.isNull == true }
            try await bus.stop()
        }
    }
}
