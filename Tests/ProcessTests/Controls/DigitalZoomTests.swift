import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// A camera that can't zoom, zoomed by the bus in what it makes.
    @Suite(.timeLimit(.minutes(5))) struct DigitalZoom {
        /// A movie of one picture, whose columns of eight pixels are brighter and brighter: 0 to 7.
        private static let movie: String = {
            let line = (0..<64).map { String(UnicodeScalar(UInt8(16 + $0 / 8 * 15))) }.joined()
            let luma = String(repeating: line, count: 48)
            return "YUV4MPEG2 W64 H48 F25:1 Ip A1:1 Cmono\nFRAME\n" + luma
        }()

        private let state = "state/device/plain/"

        /// A line of the next picture with that factor.
        private func line(_ reader: FrameReader, _ zoom: JSONValue?) throws -> [Int] {
            let deadline = MonotonicClock.now() + 60_000_000_000
            while MonotonicClock.now() < deadline {
                let frame = try reader.next()
                if frame.header["zoom"] != zoom { continue }
                return frame.payload.withUnsafeBytes { $0[(24 * 64)..<(25 * 64)].map { Int($0) } }
            }
            throw TestingError("no frame is zoomed so")
        }

        private func isSame(_ left: Int, _ right: Int) -> Bool { abs(left - right) <= 2 }

        @Test func `a camera without zoom is zoomed in its renditions, also after a crash`() async throws {
            let folder = try TemporaryDirectory()
            let path = "\(folder.path)/plain.y4m"
            try File.replace(path, with: Array(Self.movie.utf8), mode: 0o600)
            let bus = try await BusHarness(virtual: nil, arguments: ["--replay", path])
            let client = try RawClient(path: bus.directory.commandSocket)
            let controls = try client.call("device.controls", ["device": "plain"])
            let zoom = controls["cameraControls"]?.array?.first { $0["name"] == "videoZoomFactor" }
            #expect(zoom?["sources"] == ["digital_zoom"] && zoom?["maximum"] == 3)
            #expect(controls["supports"]?["videoZoomFactor"] == true)

            let reader = try FrameReader(bus, "plain", "gray")
            let native = try FrameReader(bus, "plain", "native")
            let whole = try line(reader, nil)
            #expect(whole[63] - whole[0] > 90)
            try client.call("device.set", ["device": "plain", "controls": ["videoZoomFactor": 2]])
            let half = try line(reader, 2)
            #expect(isSame(half[0], whole[16]) && isSame(half[63], whole[47]), "\(half) of \(whole)")
            #expect(try native.next().header["zoom"] == nil)
            let refusal = try client.refusal("device.set", ["device": "plain", "controls": ["videoZoomFactor": 4]])
            #expect(refusal?.reason == .controlOutOfRange && refusal?.data["max"] == 3)

            // As the others: in profiles, and put back by the worker's successor.
            let profile = try client.call("profile.save", ["name": "near", "devices": ["plain"]])["profile"]
            #expect(profile?["devices"]?[0]?["controls"]?["digital_zoom"] == 2000)
            let worker = try #require(try bus.workerPID("plain"))
            kill(worker, SIGKILL)
            try await eventually { try bus.workerPID("plain").map { $0 != worker } ?? false }
            let next = try FrameReader(bus, "plain", "gray")
            #expect(try next.next().header["zoom"] == 2)

            try client.call("device.zoomRamp", ["device": "plain", "factor": 1, "rate": 4])
            try await bus.wait(for: state) {
                $0?["controls"]?["rampingVideoZoom"] == false && $0?["controls"]?["videoZoomFactor"] == 1
            }
            #expect(try line(next, nil) == whole)
            try client.call("profile.apply", ["name": "near"])
            #expect(try line(next, 2) == half)
            try await bus.stop()
        }

        @Test func `where nothing is to be zoomed nothing is`() async throws {
            let folder = try TemporaryDirectory()
            let path = "\(folder.path)/plain.y4m"
            try File.replace(path, with: Array(Self.movie.utf8), mode: 0o600)
            let bus = try await BusHarness(
                virtual: nil, configuration: "[worker]\nmax_zoom = 1.0\n", arguments: ["--replay", path])
            let client = try RawClient(path: bus.directory.commandSocket)
            let refusal = try client.refusal(
                "device.set", ["device": "plain", "controls": ["videoZoomFactor": 2]])
            #expect(refusal?.reason == .controlUnsupported)
            try await bus.stop()
        }
    }
}
