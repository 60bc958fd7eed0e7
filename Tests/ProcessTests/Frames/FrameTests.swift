import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Frames through the whole system, and what deaths and stopped readers cost.
    @Suite(.timeLimit(.minutes(5))) struct Frames {
        @Test func `a subscription does not change the settings of the device`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            func set() throws -> [JSONValue?] {
                let device = try client.call("device.get", ["device": "cam0"])["device"]
                return ["activeFormat", "frameDuration", "generation"].map { device?[$0] }
            }
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let change: JSONValue = [
                "device": "cam0", "activeFormat": ["width": 640, "height": 480], "frameRate": 25,
            ]
            try client.call("device.configure", ["lock": lock, "changes": [change]])
            try client.call("device.unlock", ["lock": lock])
            let before = try set()
            for rendition in ["jpeg:320x240@10", "native", "gray@5"] {
                let frame = try FrameReader(bus, "cam0", rendition).next()
                #expect(frame.header["generation"] == before[2])
                #expect(try set() == before)
            }
            try await bus.stop()
        }

        @Test func `a batch whose last change is impossible changes nothing on either device`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": ["cam0", "cam1"]])["lock"] ?? .null
            let possible: JSONValue = [
                "device": "cam0", "activeFormat": ["width": 640, "height": 480], "frameRate": 15,
            ]
            let impossible: JSONValue = ["device": "cam1", "activeFormat": ["width": 640, "height": 481]]
            let before = try client.call("device.list")
            let error = try #require(
                try client.refusal("device.configure", ["lock": lock, "changes": [possible, impossible]]))
            #expect(error.reason == .formatUnsupported)
            #expect(error.data["device"] == "cam1")
            #expect(error.data["nearest"]?["height"] == 480)
            let after = try client.call("device.list")
            for index in 0..<2 {
                for name in ["activeFormat", "frameRate", "generation"] {
                    #expect(before["devices"]?[index]?[name] == after["devices"]?[index]?[name])
                }
            }
            let both: JSONValue = [
                "lock": lock,
                "changes": [
                    possible, ["device": "cam1", "activeFormat": ["width": 640, "height": 480], "frameRate": 14],
                ],
                "mode": "nearest",
            ]
            let dry = try client.call(
                "device.configure", .object((both.object ?? [:]).merging(["dryRun": true]) { $1 }))
            #expect(dry["verdict"] == "adjusted")
            #expect(
                try client.call("device.list")["devices"]?[0]?["generation"] == before["devices"]?[0]?["generation"])
            let done = try client.call("device.configure", both)
            #expect(done["verdict"] == "adjusted")
            #expect(done["adjusted"]?[0]?["path"]?.string?.hasPrefix("changes[1]") == true)
            #expect(done["applied"]?["cam0"]?["activeFormat"]?["height"] == 480)
            #expect(done["applied"]?["cam1"]?["frameDuration"] == "1/15")
            try await bus.stop()
        }

        @Test func `a worker killed under load is back with a new stream, and the other camera loses nothing`()
            async throws
        {
            let bus = try await BusHarness(virtual: 2)
            let first = try FrameReader(bus, "cam0", "gray:320x0")
            let second = try FrameReader(bus, "cam1", "gray:320x0@10")
            let old = try first.next().stream
            let start = try second.next()
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGKILL)
            var new = old
            while new == old { new = try first.next().stream }
            // The other camera's frames up to now: one stream, no hole.
            var last = start
            for _ in 0..<30 {
                let frame = try second.next()
                #expect(frame.stream == start.stream)
                #expect(frame.sequence == last.sequence + 1)
                last = frame
            }
            try await bus.stop()
        }

        @Test func `a reader that is stopped disturbs no other reader of the same rendition`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let stopped = try bus.start("camerabus", ["frames", "cam0", "bgr:640x360@5"])
            let reader = try FrameReader(bus, "cam0", "bgr:640x360@5")
            var last = try reader.next()
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try client.call("device.get", ["device": "cam0"])["device"]?["isStreaming"] == true }
            stopped.process.send(SIGSTOP)
            let end = MonotonicClock.now() + 10_000_000_000
            while MonotonicClock.now() < end {
                let frame = try reader.next()
                #expect(frame.sequence == last.sequence + 1)
                #expect(frame.stream == last.stream)
                last = frame
            }
            stopped.process.send(SIGCONT)
            stopped.process.send(SIGKILL)
            try await bus.stop()
        }

        @Test func `the picture is what the header says, in every rendition`() async throws {
            let bus = try await BusHarness(virtual: 2)
            for rendition in [
                "native", "jpeg:640x360", "bgr:640x360@10", "rgb:640x0", "gray", "yuyv:640x360", "nv12:640x360", "i420",
            ] {
                let reader = try FrameReader(bus, "cam1", rendition)
                var last: UInt32?
                for _ in 0..<3 {
                    let frame = try reader.next()
                    let counter = try #require(frame.pictureCounter, "\(rendition)")
                    #expect(UInt64(counter.counter) == frame.captureSequence)
                    #expect(counter.camera == 1)
                    if let last { #expect(counter.counter > last) }
                    last = counter.counter
                }
            }
            try await bus.stop()
        }

        @Test func `an impossible rendition returns its error, and a ninth rendition too`() async throws {
            let bus = try await BusHarness(virtual: 1)
            for (rendition, reason) in [
                ("webp", BusError.Reason.invalidParams), ("jpeg:99999x1", .invalidParams),
                ("bgr:7680x4320", .formatUnsupported),
            ] {
                let error = try FrameReader(bus, "cam0", rendition).error()
                #expect(error.reason == reason, "\(rendition)")
            }
            let eight = try (1...8).map { try FrameReader(bus, "cam0", "gray:\(64 * $0)x0") }
            for reader in eight { _ = try reader.next() }
            #expect(try FrameReader(bus, "cam0", "gray:1000x0").error().reason == .limitExceeded)
            withExtendedLifetime(eight) {}
            try await bus.stop()
        }

        @Test func `a device without users is closed`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            func device() throws -> JSONValue { try client.call("device.get", ["device": "cam0"])["device"] ?? .null }
            do {
                let reader = try FrameReader(bus, "cam0", "native")
                _ = try reader.next()
                try await eventually { try device()["isStreaming"] == true }
            }
            try await eventually { try device()["isStreaming"] == false && device()["isOpen"] == false }
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            try await eventually { try device()["isOpen"] == true }
            try client.call("device.unlock", ["lock": lock])
            try await eventually { try device()["isOpen"] == false }
            // A subscription without the final slash only watches.
            let watcher = try RawClient(.subscribe, path: bus.directory.mediaSocket("cam0"))
            try watcher.socket.subscribe("frame/cam0/native")
            try watcher.socket.subscribe("ack/x/")
            _ = try watcher.receive()
            #expect(try device()["isStreaming"] == false)
            try await bus.stop()
        }
    }
}
