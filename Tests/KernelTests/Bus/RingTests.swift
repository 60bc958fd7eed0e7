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
                let deadline = Deadline.after(seconds: 120)
                while compared < 5 {
                    try #require(!deadline.hasPassed, "no frame stayed for long enough")
                    let frame = try #require(try rings.next(.newest, timeout: .seconds(60)))
                    guard let isSame = rings.use(frame, { KernelTests.isSame($0, theirs) }) else { continue }
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

extension USBTests {
    /// What a camera compresses is written where the bus's clients read it, picture after picture of another size.
    @Suite struct Rings {
        @Test(arguments: [("MJPG", 640, 360), ("YUYV", 320, 180)])
        func framesInTheRingAreV4L2ctls(_ pixelFormat: String, _ width: Int, _ height: Int) async throws {
            let usb = try await USBBus()
            let camera = try EmulatedCamera(port: 0, serial: "SN-R")
            let id = try await usb.id(of: camera)
            let format: JSONValue = [
                "pixelFormat": .string(pixelFormat), "width": JSONValue(width), "height": JSONValue(height),
            ]
            try usb.configure([["device": .string(id), "activeFormat": format]])
            try await usb.wait(id) { $0["isStreaming"] == false && $0["memory"]?.isNull == true }

            // The camera shows the same eight pictures in turn. v4l2-ctl gets them, all at least once.
            let node = try #require(try usb.device(id)["node"]?.string)
            let file = URL(filePath: "/tmp/camerabus-usb-ring-\(ProcessInfo.processInfo.processIdentifier)")
            defer { try? FileManager.default.removeItem(at: file) }
            // A machine that is slow may lose some of them on their way to it; a worker may not have let go of the
            // camera yet.
            var theirs: [[UInt8]] = []
            try await eventually(by: USBBus.patience) {
                _ = try? KernelTests.v4l2ctl([
                    "-d", node, "--stream-mmap", "--stream-count=16", "--stream-to=\(file.path())",
                ])
                guard let bytes = try? Data(contentsOf: file) else { return false }
                theirs = Self.pictures(Array(bytes), size: pixelFormat == "MJPG" ? nil : width * height * 2)
                return Set(theirs).count >= 8
            }

            let rings = try RingConnection(usb.bus.directory, id)
            var (compared, lengths) = (0, Set<Int>())
            let deadline = USBBus.patience
            while compared < 10 {
                try #require(!deadline.hasPassed, "no frame stayed for long enough")
                let frame = try #require(try rings.next(.newest, timeout: .seconds(60)))
                let known = rings.use(frame) { bytes in theirs.contains { KernelTests.isSame(bytes, $0) } }
                guard let isKnown = known else { continue }
                #expect(isKnown, "\(frame.record.bytes) bytes that v4l2-ctl has not got")
                if !isKnown { break }
                lengths.insert(frame.record.bytes)
                compared += 1
            }
            if pixelFormat == "MJPG" {
                // Less than the slot has room for, and not always the same.
                #expect(lengths.count > 1 && lengths.allSatisfy { $0 < rings.ring?.slotBytes ?? 0 })
            }
            try await usb.wait(id) { $0["memory"] == "userptr" }
            camera.unplug()
            try await usb.bus.stop(by: USBBus.patience)
        }

        /// One JPEG ends where the next one begins; other pictures are all of one size.
        private static func pictures(_ bytes: [UInt8], size: Int?) -> [[UInt8]] {
            if let size {
                return stride(from: 0, to: bytes.count - bytes.count % size, by: size).map {
                    Array(bytes[$0..<$0 + size])
                }
            }
            var starts = (0..<max(0, bytes.count - 2)).filter {
                bytes[$0] == 0xFF && bytes[$0 + 1] == 0xD8 && bytes[$0 + 2] == 0xFF
            }
            starts.append(bytes.count)
            return zip(starts, starts.dropFirst()).map { Array(bytes[$0..<$1]) }
        }
    }
}
