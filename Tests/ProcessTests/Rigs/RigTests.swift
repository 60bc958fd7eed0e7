import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Named groups of devices.
    @Suite(.timeLimit(.minutes(5))) struct Rigs {
        /// As a matcher does it.
        @Test func `what is written of locks wakes nobody who watches who may see sets`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "desk", "devices": ["cam0", "cam1"]])
            try await eventually { access(bus.directory.accessListFile, F_OK) == 0 }
            let watch = try FileWatch(bus.directory.accessListFile)
            try client.call("device.lock", ["devices": "cam0"])
            var item = pollfd(fd: watch.rawValue, events: Int16(POLLIN), revents: 0)
            #expect(poll(&item, 1, 0) == 0)
            try await bus.stop()
        }

        @Test func `a rig is locked and configured as one, or not at all`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let client = try RawClient(path: bus.directory.commandSocket)
            let other = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "desk", "devices": ["cam2", "cam0"]])
            // Whatever it is called later.
            try client.call("device.rename", ["device": "cam0", "name": "left"])
            let state = try client.call("bus.snapshot", ["prefix": "state/rig/"])["state"]?["state/rig/desk/"]
            #expect(state?["devices"]?[1]?["id"] == "left" && state?["complete"] == true)

            let single = try other.call("device.lock", ["devices": "left"])["lock"] ?? .null
            let refusal = try #require(try client.refusal("device.lock", ["devices": "desk"]))
            #expect(refusal.reason == .deviceBusy)
            #expect(try client.call("device.get", ["device": "cam2"])["device"]?["lock"] == .null)
            try other.call("device.unlock", ["lock": single])
            let lock = try client.call("device.lock", ["devices": "desk"])
            #expect(lock["devices"] == ["cam2", "left"])

            let token = lock["lock"] ?? .null
            let change: JSONValue = [
                "device": "desk", "activeFormat": ["width": 640, "height": 480], "frameRate": 10,
            ]
            let done = try client.call("device.configure", ["lock": token, "changes": [change]])
            for device in ["cam2", "left"] {
                #expect(done["applied"]?[device]?["activeFormat"]?["width"] == 640)
                #expect(done["generation"]?[device] != nil)
            }
            let before = try client.call("device.list")
            try client.call("fault.inject", ["device": "left", "fault": "refuse"])
            let faster: JSONValue = ["device": "desk", "frameRate": 5]
            #expect(
                try client.refusal("device.configure", ["lock": token, "changes": [faster]])?.data["device"] == "left")
            for index in 0..<3 {
                #expect(
                    try client.call("device.list")["devices"]?[index]?["frameRate"]
                        == before["devices"]?[index]?["frameRate"])
            }
            let admin = try other.call("device.takeOver", ["devices": "desk"])
            #expect(admin["devices"] == ["cam2", "left"])
            #expect(try client.refusal("device.renew", ["lock": token])?.reason == .lockLost)
            try await bus.stop()
        }

        @Test func `a rig and a device that take each other's name do not take each other's socket`() async throws {
            let cameras = "[devices]\nvirtual = 2\nhardware = false\n"
            let rig = cameras + "[[rig]]\nname = \"left\"\ndevices = [\"virtual-0\", \"virtual-1\"]\n"
            let hidden = rig + "[aliases]\nleft = \"virtual-0\"\n"
            let bus = try await BusHarness(virtual: nil, configuration: rig)
            let client = try RawClient(path: bus.directory.commandSocket)
            let path = bus.directory.mediaSocket("left")
            // A rig has a process while somebody reads.
            let reader = try RawClient(.subscribe, path: path, topics: ["set/left/gray:64x0/"])
            func holder(_ lockPath: String) async throws -> ProcessDescriptor {
                var found: ProcessDescriptor?
                try await eventually {
                    if case .somebody(let process?) = LockFile.holder(of: lockPath) { found = process }
                    return found != nil && access(path, F_OK) == 0
                }
                return try #require(found)
            }
            /// The configuration is another one while the process that has the name can't end.
            func exchange(_ configuration: String, _ old: ProcessDescriptor) async throws {
                old.send(SIGSTOP)
                try bus.write(configuration, to: "camerabus.toml")
                kill(bus.pid, SIGHUP)
                try await eventually { old.hasEnded }
                // The bus has seen it, too.
                for _ in 0..<2 { try client.call("bus.ping") }
            }
            try await exchange(hidden, holder(bus.directory.matcherLock("left")))
            let worker = try await holder(bus.directory.deviceLock("left"))
            _ = try FrameReader(bus, "left", "jpeg:160x0").next()
            try await exchange(rig, worker)
            let matcher = try await holder(bus.directory.matcherLock("left"))

            // A bus that finds the matcher of a rig that a device hides by now ends it.
            try await bus.killCoordinator()
            try bus.write(hidden, to: "camerabus.toml")
            try await bus.startCoordinator()
            try await eventually { matcher.hasEnded }
            let second = try await holder(bus.directory.deviceLock("left"))
            _ = try FrameReader(bus, "left", "jpeg:160x0").next()

            // And the other way round.
            try await bus.killCoordinator()
            try bus.write(rig, to: "camerabus.toml")
            try await bus.startCoordinator()
            try await eventually { second.hasEnded }
            _ = try await holder(bus.directory.matcherLock("left"))
            let sets = try RawClient(.subscribe, path: path, topics: ["set/left/jpeg:160x0/"])
            _ = try sets.receive(within: 20)
            withExtendedLifetime(reader) {}
            try await bus.stop()
        }

        @Test func `a rig outlives the bus, and one of the configuration is changed there`() async throws {
            let home = try TemporaryDirectory()
            let configuration = """
                [bus]
                state_dir = "\(home.path)/state"
                [devices]
                virtual = 2
                hardware = false
                [aliases]
                left = "virtual-0"
                [[rig]]
                name = "stereo"
                devices = ["left", "virtual-1"]
                tolerance_ms = 4
                [[rig]]
                name = "broken"
                devices = ["cam1", "usb-that-nobody-has-seen"]
                """
            let bus = try await BusHarness(virtual: nil, configuration: configuration)
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try bus.problems() == ["rigIncomplete"])
            let rigs = try client.call("rig.list")["rigs"]
            #expect(rigs?[0]?["name"] == "broken" && rigs?[0]?["complete"] == false)
            #expect(rigs?[0]?["devices"]?[1]?["id"] == .null)
            #expect(rigs?[1]?["tolerance"] == 4 && rigs?[1]?["configured"] == true)
            #expect(rigs?[1]?["devices"]?[0]?["uniqueID"] == "virtual-0")
            let missing = try #require(try client.refusal("device.lock", ["devices": "broken"]))
            #expect(missing.reason == .deviceNotFound && missing.data["device"] == "usb-that-nobody-has-seen")
            #expect(missing.data["rig"] == "broken")
            for method in ["rig.set", "rig.delete"] {
                var params: [String: JSONValue] = ["name": "stereo"]
                if method == "rig.set" { params["devices"] = "cam1" }
                let refusal = try client.refusal(method, .object(params))
                #expect(refusal?.reason == .invalidParams && refusal?.message.contains("configuration") == true)
            }
            let doctor = try await bus.run("camerabus", ["doctor"])
            #expect(doctor.standardOutput.contains("usb-that-nobody-has-seen"), "\(doctor.standardOutput)")
            try client.call("rig.set", ["name": "mine", "devices": "cam1"])
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            let names = try again.call("rig.list")["rigs"]?.array?.compactMap { $0["name"]?.string }
            #expect(names == ["broken", "mine", "stereo"])
            try again.call("rig.delete", ["name": "mine"])
            try await bus.stop()
        }

        @Test func `a rig that could not be kept leaves nothing when its bus dies`() async throws {
            let home = try TemporaryDirectory()
            let bus = try await BusHarness(virtual: 2, arguments: ["--state-dir", home.path])
            let client = try RawClient(path: bus.directory.commandSocket)
            let path = "\(home.path)/rigs.json"
            try #require(mkdir(path + ".new", 0o700) == 0)
            let names = ["both", "gone", "idle"]
            let sockets = names.map { bus.directory.mediaSocket($0) }
            for name in names {
                let made = try client.call("rig.set", ["name": .string(name), "devices": ["cam0", "cam1"]])
                #expect(made["kept"] == false)
            }
            #expect(sockets.allSatisfy { access($0, F_OK) == 0 })
            let readers = try ["both", "gone"].map { name in
                try RawClient(
                    .subscribe, path: bus.directory.mediaSocket(name), topics: ["set/\(name)/gray:64x0/"])
            }
            for reader in readers { _ = try reader.receive(within: 20) }
            let pids = bus.pids(of: "camerabus-matcher")
            try #require(pids.count == 2)
            try await bus.killCoordinator()
            // One dies as well, and nobody is there to see to its socket.
            kill(pids[0], SIGKILL)
            try await eventually { bus.pids(of: "camerabus-matcher").count == 1 }
            try await bus.startCoordinator()
            try await eventually {
                bus.pids(of: "camerabus-matcher").isEmpty && sockets.allSatisfy { access($0, F_OK) != 0 }
            }
            #expect(try RawClient(path: bus.directory.commandSocket).call("rig.list")["rigs"] == [])
            withExtendedLifetime(readers) {}
            try #require(rmdir(path + ".new") == 0)
            try await bus.stop()
        }

        @Test func `the configuration's rigs are read again`() async throws {
            func configuration(_ rigs: String) -> String { "[devices]\nvirtual = 2\nhardware = false\n\(rigs)" }
            let bus = try await BusHarness(
                virtual: nil, configuration: configuration("[[rig]]\nname = \"a\"\ndevices = [\"cam0\"]"))
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "b", "devices": "cam1"])
            try bus.write(
                configuration("[[rig]]\nname = \"b\"\ndevices = [\"cam0\", \"cam1\"]"), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await bus.wait(for: "state/rig/b/") { $0?["configured"] == true }
            #expect(try client.call("rig.list")["rigs"]?.array?.count == 1)
            // What stands there goes before what a client made, which is there again when it doesn't.
            try bus.write(configuration(""), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await bus.wait(for: "state/rig/b/") { $0?["configured"] == false }
            #expect(try client.call("rig.list")["rigs"]?[0]?["devices"]?.array?.count == 1)
            try await bus.stop()
        }

        @Test(
            "a rig that makes no sense is refused with the configuration",
            arguments: [
                "[[rig]]\ndevices = [\"cam0\"]", "[[rig]]\nname = \"a\"", "[[rig]]\nname = \"A\"\ndevices = [\"cam0\"]",
                "[[rig]]\nname = \"a\"\ndevices = []", "[[rig]]\nname = \"a\"\ndevices = [\"x\", \"x\"]",
                "[[rig]]\nname = \"a\"\ndevices = [\"x\"]\nlead = \"x\"", "[rig]\nname = \"a\"\ndevices = [\"x\"]",
                "[[rig]]\nname = \"a\"\ndevices = [\"x\"]\n[[rig]]\nname = \"a\"\ndevices = [\"y\"]",
                "[[rig]]\nname = \"a\"\ndevices = [\"x\"]\ntolerance_ms = -1",
            ])
        func nonsense(text: String) async throws {
            let scratch = try TemporaryDirectory()
            let path = "\(scratch.path)/camerabus.toml"
            try File.replace(path, with: Array(text.utf8), mode: 0o600)
            let child = try RunningProgram(
                Programs.path("camerabusd"),
                ["--runtime-dir", "\(scratch.path)/bus", "--no-hardware", "--config", path],
                environment: ["PATH": "/usr/bin:/bin"], scratch: scratch)
            let result = try await child.end()
            #expect(result.status == 1 && result.standardError.contains("rig"), "\(result.standardError)")
        }
    }
}
