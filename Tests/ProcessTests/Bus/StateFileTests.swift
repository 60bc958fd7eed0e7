import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// What a coordinator makes of the file that the one before it left, in whatever form it finds it.
    @Suite(.timeLimit(.minutes(5))) struct StateFiles {
        /// What becomes of the file while no coordinator is there.
        enum Harm: String, CaseIterable {
            case removed, empty, torn, noJSON, otherVersion, oldForm, noLock, link, directory, pipe, foreign
        }

        @Test(arguments: Harm.allCases)
        func `a file that can't be used costs the locks, and never lets a fence fall`(_ harm: Harm) async throws {
            if harm == .foreign, CurrentProcess.uid != 0 { return }
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let old = try client.call("device.lock", ["devices": "cam0"])
            try client.call("device.configure", change(lock: old["lock"]))
            try await bus.killCoordinator()
            let path = bus.directory.stateFile
            try damage(path, harm)
            try await bus.startCoordinator()
            // The one who had it is told so, and can do nothing to the device.
            let again = try RawClient(path: bus.directory.commandSocket)
            #expect(try again.refusal("device.configure", change(lock: old["lock"]))?.reason == .lockLost)
            let new = try again.call("device.lock", ["devices": "cam0"])
            #expect(try #require(new["fence"]?.integer) > #require(old["fence"]?.integer))
            // The device's process, which has seen the old fence, takes the new one.
            try again.call("device.configure", change(lock: new["lock"]))
            if harm != .removed {
                var status = stat()
                #expect(lstat("\(path).damaged", &status) == 0, "nothing lies aside")
                #expect(bus.log.contains("the state file could not be used"))
            }
            // From here on it is kept as usual.
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let third = try RawClient(path: bus.directory.commandSocket)
            try third.call("device.configure", change(lock: new["lock"]))
            try await bus.stop()
        }

        /// The runtime directory goes with each boot, and with each stop of the service.
        @Test func `fences go on when only the state directory is left`() async throws {
            let home = try TemporaryDirectory()
            var last: Int64 = 0
            for _ in 0..<3 {
                let bus = try await BusHarness(virtual: 1, arguments: ["--state-dir", home.path])
                let client = try RawClient(path: bus.directory.commandSocket)
                for _ in 0..<2 {
                    let grant = try client.call("device.lock", ["devices": "cam0"])
                    let fence = try #require(grant["fence"]?.integer)
                    #expect(fence > last)
                    last = fence
                    try client.call("device.unlock", ["lock": grant["lock"] ?? .null])
                }
                try await bus.stop()
            }
            // Counted, not taken from the clock.
            #expect(last < 1 << 20)
        }

        @Test func `a batch that the end of the bus cuts off is in force on none of its cameras`() async throws {
            let home = try TemporaryDirectory()
            let first = try await BusHarness(virtual: 3, arguments: ["--state-dir", home.path])
            let client = try RawClient(path: first.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": ["cam0", "cam1"]])["lock"] ?? .null
            func changes(_ brightness: JSONValue) -> JSONValue {
                [
                    "lock": lock,
                    "changes": [
                        ["device": "cam0", "controls": ["brightness": brightness]],
                        ["device": "cam1", "controls": ["brightness": brightness]],
                    ],
                ]
            }
            try client.call("device.configure", changes(10))
            try client.call(
                "fault.inject", ["device": "cam1", "fault": "slow", "milliseconds": 5000])
            try client.start("device.configure", changes(33))
            let other = try RawClient(path: first.directory.commandSocket)
            try await eventually {
                try other.call("device.get", ["device": "cam0"])["device"]?["controls"]?["brightness"] == 33
            }
            // Has the book written as it is now.
            try other.call("device.rename", ["device": "cam2", "name": "third"])
            try await first.stop()

            let second = try await BusHarness(virtual: 3, arguments: ["--state-dir", home.path])
            let again = try RawClient(path: second.directory.commandSocket)
            #expect(try second.devices().contains("third"))
            for camera in ["cam0", "cam1"] {
                let value = try again.call("device.get", ["device": .string(camera)])["device"]
                #expect(value?["controls"]?["brightness"] == 10, "\(camera)")
            }
            try await second.stop()
        }

        @Test func `another boot's file gives its fence and no lock`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let old = try client.call("device.lock", ["devices": "cam0", "lease": 600_000])
            try await bus.killCoordinator()
            var state = try read(bus.directory.stateFile).object ?? [:]
            state["boot"] = "00000000-0000-0000-0000-000000000000"
            try File.replace(bus.directory.stateFile, with: JSONValue.object(state).serialized, mode: 0o600)
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            let new = try again.call("device.lock", ["devices": "cam0"])
            let fence = try #require(new["fence"]?.integer)
            #expect(fence > old["fence"]?.integer ?? .max)
            // Counted on, not begun from the clock.
            #expect(fence < 1000)
            try await bus.stop()
        }

        @Test func `a lock that can't be written is refused, never begins, and nobody hears of its end`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("event/lock/")
            try events.socket.subscribe("state/lock/")
            try events.socket.subscribe("ack/here/")
            _ = try events.receive()
            // The temporary name can't be made: a folder with something in it is in its way.
            let obstacle = "\(bus.directory.stateFile).new"
            try PrivateDirectory.make(obstacle, mode: 0o700)
            try File.replace("\(obstacle)/x", with: [], mode: 0o600)
            #expect(try client.refusal("device.lock", ["devices": "cam0"])?.reason == .internalError)
            #expect(try client.call("device.get", ["device": "cam0"])["device"]?["lock"] == .null)
            File.remove("\(obstacle)/x")
            rmdir(obstacle)
            let lock = try client.call("device.lock", ["devices": "cam0"])
            // The first that is told is the lock that there is.
            let message = try JSONValue(parsing: try #require(try events.receive().last).bytes)
            #expect(message["value"]?["fence"] == lock["fence"])
            try await bus.stop()
        }

        @Test func `a lease that can't be written is not renewed, and a lock is ended all the same`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let lasting = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let lease = try client.call("device.lock", ["devices": "cam1", "lease": 600_000])["lock"] ?? .null
            func expires() throws -> JSONValue? {
                try client.call("device.locks")["locks"]?.array?.compactMap { $0["expires"] }.first { $0 != .null }
            }
            let before = try expires()
            let obstacle = "\(bus.directory.stateFile).new"
            try PrivateDirectory.make(obstacle, mode: 0o700)
            #expect(try client.refusal("device.renew", ["lock": lease])?.reason == .internalError)
            #expect(try expires() == before)
            // What changes nothing needs no writing.
            #expect(try client.call("device.renew", ["lock": lasting])["expires"] == .null)
            #expect(try client.call("device.unlock", ["lock": lasting]) == ["kept": false])
            #expect(try client.call("device.get", ["device": "cam0"])["device"]?["lock"] == .null)
            rmdir(obstacle)
            #expect(try client.call("device.renew", ["lock": lease])["expires"] != before)
            #expect(try client.call("device.unlock", ["lock": lease]) == [:])
            try await bus.stop()
        }

        private func change(lock: JSONValue?) -> JSONValue {
            ["lock": lock ?? .null, "changes": [["device": "cam0", "controls": ["brightness": 5]]]]
        }

        private func read(_ path: String) throws -> JSONValue {
            try File.read(path, limit: 1 << 20).withUnsafeBytes { try JSONValue(parsing: $0) }
        }

        private func damage(_ path: String, _ harm: Harm) throws {
            let whole = try File.read(path, limit: 1 << 20)
            var state = try read(path).object ?? [:]
            func write(_ bytes: [UInt8]) throws { try File.replace(path, with: bytes, mode: 0o600) }
            switch harm {
            case .removed: File.remove(path)
            case .empty: try write([])
            case .torn: try write(Array(whole.prefix(whole.count / 2)))
            case .noJSON: try write(Array(repeating: 0, count: 4096))
            case .otherVersion:
                state["version"] = 7
                try write(JSONValue.object(state).serialized)
            case .oldForm:
                state["version"] = nil
                try write(JSONValue.object(state).serialized)
            case .noLock:
                state["locks"] = [["id": "x"]]
                try write(JSONValue.object(state).serialized)
            case .link:
                rename(path, "\(path).there")
                symlink("\(path).there", path)
            case .directory:
                File.remove(path)
                try PrivateDirectory.make(path, mode: 0o700)
            case .pipe:
                File.remove(path)
                mkfifo(path, 0o600)
            case .foreign: chown(path, 65534, 65534)
            }
        }
    }
}
