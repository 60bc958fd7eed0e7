import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Settings under a name.
    @Suite(.timeLimit(.minutes(5))) struct Profiles {
        private static func control(_ client: RawClient, _ device: String, _ name: String) throws -> JSONValue? {
            let controls = try client.call("device.controls", ["device": .string(device)])["controls"]?.array ?? []
            return controls.first { $0["name"]?.string == name }?["value"]
        }

        private static func configure(_ client: RawClient, _ changes: JSONValue...) throws {
            let devices = JSONValue.array(changes.compactMap { $0["device"] })
            let lock = try client.call("device.lock", ["devices": devices])["lock"] ?? .null
            try client.call("device.configure", ["lock": lock, "changes": .array(changes)])
            try client.call("device.unlock", ["lock": lock])
        }

        @Test func `profiles outlive the bus, also one that is killed right after its answer`() async throws {
            let home = try TemporaryDirectory()
            let arguments = ["--state-dir", "\(home.path)/state"]
            let first = try await BusHarness(virtual: 2, arguments: arguments)
            let client = try RawClient(path: first.directory.commandSocket)
            try Self.configure(
                client,
                [
                    "device": "cam1", "activeFormat": ["width": 640, "height": 480], "frameRate": 10,
                    "controls": ["brightness": 33],
                ])
            let saved = try client.call("profile.save", ["name": "dim", "devices": ["cam1"]])["profile"]
            let settings = saved?["devices"]?[0]
            #expect(settings?["activeFormat"]?["width"] == 640 && settings?["frameDuration"] == "1/10")
            #expect(settings?["controls"]?["brightness"] == 33)
            for pid in [first.pid] + (try first.workerPIDs()) { kill(pid, SIGKILL) }
            try await first.waitForEnd()

            var status = stat()
            #expect(stat("\(home.path)/state/profiles.json", &status) == 0 && status.st_mode & 0o777 == 0o600)
            let second = try await BusHarness(virtual: 2, arguments: arguments)
            let again = try RawClient(path: second.directory.commandSocket)
            #expect(try again.call("profile.list")["profiles"]?[0] == saved)
            try again.call("device.set", ["device": "cam1", "controls": ["brightness": 1]])
            let applied = try again.call("profile.apply", ["name": "dim"])
            #expect(applied["verdict"] == "valid" && applied["applied"]?["cam1"]?["frameDuration"] == "1/10")
            #expect(try Self.control(again, "cam1", "brightness") == 33)
            try await second.stop()

            // A book that is damaged costs what it held, and nothing else.
            try File.replace("\(home.path)/state/profiles.json", with: Array("{\"version\":1}".utf8), mode: 0o600)
            let third = try await BusHarness(virtual: 2, arguments: arguments)
            #expect(try third.problems() == ["memoryLost"])
            #expect(
                try RawClient(path: third.directory.commandSocket).call("profile.list")["profiles"]?.array?.isEmpty
                    == true)
            #expect(access("\(home.path)/state/profiles.json.damaged", F_OK) == 0)
            try await third.stop()
        }

        @Test func `a profile is applied whole or not at all, and to the device that is meant`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let client = try RawClient(path: bus.directory.commandSocket)
            let other = try RawClient(path: bus.directory.commandSocket)
            try Self.configure(
                client, ["device": "cam0", "controls": ["brightness": 10]],
                ["device": "cam1", "controls": ["brightness": 20]])
            try client.call("profile.save", ["name": "pair", "devices": ["cam0", "cam1"]])
            for device in ["cam0", "cam1"] {
                try client.call("device.set", ["device": .string(device), "controls": ["brightness": 0]])
            }
            // One of them refuses when it is made: the other is put back.
            try client.call("fault.inject", ["device": "cam1", "fault": "refuse"])
            let error = try #require(try client.refusal("profile.apply", ["name": "pair"]))
            #expect(error.data["device"] == "cam1")
            #expect(try Self.control(client, "cam0", "brightness") == 0)
            try client.call("fault.inject", ["device": "cam1", "fault": "none"])

            // Somebody has one of them locked.
            let lock = try other.call("device.lock", ["devices": "cam1"])["lock"] ?? .null
            #expect(try client.refusal("profile.apply", ["name": "pair"])?.reason == .deviceBusy)
            #expect(try client.refusal("profile.apply", ["name": "pair", "lock": lock])?.reason == .lockRequired)
            #expect(
                try client.call("profile.apply", ["name": "pair", "devices": "cam1", "lock": lock])["applied"]?["cam1"]
                    != nil)
            #expect(try Self.control(client, "cam1", "brightness") == 20)
            try other.call("device.unlock", ["lock": lock])

            // Its own settings go to each, and nobody knows whose are for a third one like both.
            try client.call("profile.apply", ["name": "pair"])
            #expect(try Self.control(client, "cam0", "brightness") == 10)
            #expect(try client.refusal("profile.apply", ["name": "pair", "devices": "cam2"])?.reason == .invalidParams)

            // A device goes by another id: its profile goes with it.
            try client.call("device.rename", ["device": "cam0", "name": "front"])
            let devices = try client.call("profile.list")["profiles"]?[0]?["devices"]
            #expect(devices?[0]?["device"] == "front" && devices?[1]?["device"] == "cam1")
            let before = try client.call("device.get", ["device": "front"])["device"]?["generation"]
            let dry = try client.call("profile.apply", ["name": "pair", "dryRun": true])
            #expect(dry["applied"]?["front"]?["controls"]?["brightness"] == 10)
            #expect(try client.call("device.get", ["device": "front"])["device"]?["generation"] == before)
            try await bus.stop()
        }
    }
}
