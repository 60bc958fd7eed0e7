import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// A change over two devices that was found possible, and can't be made or kept after all.
    @Suite(.timeLimit(.minutes(5))) struct RollBack {
        private static let devices = ["cam0", "cam1"]

        /// Two cameras under one lock, in a configuration of their own.
        private struct Rig {
            let bus: BusHarness
            let client: RawClient
            let lock: JSONValue

            init() async throws {
                bus = try await BusHarness(virtual: 2)
                client = try RawClient(path: bus.directory.commandSocket)
                lock = try client.call("device.lock", ["devices": ["cam0", "cam1"]])["lock"] ?? .null
                let answer = try client.call(
                    "device.configure", batch { Self.change($0, height: 480, rate: 15, gain: 10, contrast: 20) })
                #expect(answer["verdict"] == "valid")
            }

            static func change(
                _ device: String, height: Int64, rate: Int64, gain: Int64, contrast: Int64
            ) -> JSONValue {
                [
                    "device": .string(device), "frameRate": .integer(rate),
                    "activeFormat": ["pixelFormat": "YUYV", "width": 640, "height": .integer(height)],
                    "controls": ["gain": .integer(gain), "contrast": .integer(contrast)],
                ]
            }

            func batch(_ change: (String) -> JSONValue) -> JSONValue {
                ["lock": lock, "changes": .array(devices.map(change))]
            }

            /// Another format, rate and controls for both.
            var wanted: JSONValue { batch { Self.change($0, height: 360, rate: 30, gain: 50, contrast: 60) } }

            /// What is set on a device, as its process has read it.
            func configuration(_ device: String) throws -> [JSONValue?] {
                let state = try client.call("device.get", ["device": .string(device)])["device"]
                return ["activeFormat", "frameRate", "controls"].map { state?[$0] }
            }

            func configurations() throws -> [[JSONValue?]] { try devices.map(configuration) }

            func generation(_ device: String) throws -> Int64 {
                try #require(
                    try client.call("device.get", ["device": .string(device)])["device"]?["generation"]?.integer)
            }

            func inject(_ fault: JSONValue) throws { try client.call("fault.inject", fault) }
        }

        @Test func `changes whose first camera has no process leave nothing in the second`() async throws {
            let rig = try await Rig()
            // More than a worker keeps, while the first is not even starting.
            var refusals = 0
            try await eventually {
                guard let pid = try rig.bus.workerPID("cam0") else { return false }
                kill(pid, SIGKILL)
                try await eventually { try rig.bus.workerPID("cam0") != pid }
                for _ in 0..<20 { try rig.client.start("device.configure", rig.wanted) }
                for _ in 0..<20 {
                    if case .failure = try rig.client.reply(within: 30).result { refusals += 1 }
                }
                return refusals > 20
            }
            let set = try rig.client.call(
                "device.set", ["device": "cam1", "lock": rig.lock, "controls": ["gain": 33]])
            #expect(set["verdict"] == "valid", "\(set)")
            try await rig.bus.stop()
        }

        /// What the second camera refuses, once it is set.
        @Test(arguments: ["contrast", nil])
        func `what the second refuses when it is made is taken back on the first`(_ control: String?) async throws {
            let rig = try await Rig()
            let reader = try FrameReader(rig.bus, "cam0", "native")
            let old = try reader.next()
            #expect(old.header["height"] == 480)
            let before = try rig.configurations()
            let generation = try rig.generation("cam0")
            let untouched = try rig.generation("cam1")
            var fault: [String: JSONValue] = ["device": "cam1", "fault": "refuse"]
            fault["control"] = control.map(JSONValue.string)
            try rig.inject(.object(fault))

            let error = try #require(try rig.client.refusal("device.configure", rig.wanted))
            #expect(error.reason == (control == nil ? .formatUnsupported : .controlOutOfRange))
            #expect(error.data["device"] == "cam1")
            #expect(error.data["control"] == control.map(JSONValue.string))
            #expect(error.data["rolledBack"] == ["cam0"])
            #expect(error.data["notRolledBack"] == [])
            #expect(try rig.configurations() == before)
            // It was made on the first, and taken back: no number stands for two configurations.
            #expect(try rig.generation("cam0") == generation + 2)
            #expect(try rig.generation("cam1") == untouched)
            // So are its pictures.
            var frame = try reader.next()
            while frame.header["generation"]?.integer ?? 0 < generation + 2 { frame = try reader.next() }
            #expect(frame.header["height"] == 480 && frame.stream != old.stream)

            // And so is what is put back after its process has died.
            let pid = try #require(try rig.bus.workerPID("cam0"))
            kill(pid, SIGKILL)
            try await eventually {
                let worker = try rig.client.call("device.get", ["device": "cam0"])["device"]?["worker"]
                return worker?["state"] == "running" && worker?["pid"]?.integer != Int64(pid)
            }
            while frame.stream == old.stream || frame.header["generation"]?.integer ?? 0 < generation + 2 {
                frame = try reader.next()
            }
            #expect(frame.header["height"] == 480)
            try await eventually { try rig.configurations() == before }

            // The refusal was for once.
            #expect(try rig.client.call("device.configure", rig.wanted)["verdict"] == "valid")
            #expect(try rig.configurations() != before)
            try await rig.bus.stop()
        }

        @Test func `what can't be kept on the disk is taken back on both, and never said to be done`() async throws {
            let rig = try await Rig()
            let before = try rig.configurations()
            let generations = try Self.devices.map(rig.generation)
            // In the way of the next state file.
            let obstacle = "\(rig.bus.directory.stateFile).new"
            try PrivateDirectory.make(obstacle, mode: 0o700)
            let error = try #require(try rig.client.refusal("device.configure", rig.wanted))
            #expect(error.reason == .internalError)
            #expect(error.message.contains("disk"))
            #expect(error.data["rolledBack"] == ["cam0", "cam1"])
            #expect(error.data["notRolledBack"] == [])
            #expect(try rig.configurations() == before)
            // They had made it by then.
            #expect(try Self.devices.map(rig.generation) == generations.map { $0 + 2 })
            #expect(rmdir(obstacle) == 0)
            #expect(try rig.client.call("device.configure", rig.wanted)["verdict"] == "valid")
            try await rig.bus.stop()
        }

        /// A process that does not know the end of it yet would take it back if the bus ended now.
        @Test func `nobody is told of a change before it is decided on the disk and all devices know`() async throws {
            let rig = try await Rig()
            let workers = try Self.devices.map { try ProcessDescriptor(pid: #require(try rig.bus.workerPID($0))) }
            let asker = try RawClient(path: rig.bus.directory.commandSocket)
            try rig.inject(["device": "cam1", "fault": "slow", "milliseconds": 2000])
            func decided() throws -> [JSONValue] {
                try File.read(rig.bus.directory.stateFile, limit: 1 << 20).withUnsafeBytes {
                    try JSONValue(parsing: $0)["decided"]?.array ?? []
                }
            }
            // What is over stays in the file until it is written again.
            let before = try decided()
            try asker.start(
                "device.configure",
                rig.batch { ["device": .string($0), "controls": ["gain": 77]] })
            // The first has made it, and is stopped while the second is at it.
            try await eventually {
                try rig.client.call("device.get", ["device": "cam0"])["device"]?["controls"]?["gain"] == 77
            }
            // Its state is told before its answer; after that comes the answer to this.
            try rig.inject(["device": "cam0", "fault": "none"])
            workers[0].send(SIGSTOP)
            #expect(try decided() == before, "the second was too quick for this test")
            try await eventually { try decided() != before }
            // Whatever was to be said when it was decided has been said before this answer.
            try asker.start("bus.ping")
            #expect(try asker.reply().result.get() == [:])
            workers[0].send(SIGCONT)
            #expect(try asker.reply().result.get()["verdict"] == "valid")
            try rig.inject(["device": "cam1", "fault": "none"])
            try await rig.bus.stop()
        }
    }
}
