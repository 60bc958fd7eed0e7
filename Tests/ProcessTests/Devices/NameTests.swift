import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// What devices are called, and what is remembered of them.
    @Suite(.timeLimit(.minutes(5))) struct Names {
        @Test func `a renamed device keeps lock, settings and name, and its old topics end`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let other = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            try client.call(
                "device.configure",
                [
                    "lock": lock,
                    "changes": [["device": "cam0", "frameRate": 10, "controls": ["brightness": 17]]],
                ])
            #expect(try other.refusal("device.rename", ["device": "cam0", "name": "front"])?.reason == .deviceBusy)
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket)
            try events.socket.subscribe("event/device/")
            try await barrier(events)

            let renamed = try client.call("device.rename", ["device": "cam0", "name": "front", "lock": lock])
            #expect(renamed["device"]?["id"] == "front" && renamed["device"]?["uniqueID"] == "virtual-0")
            #expect(renamed["kept"] == nil)
            #expect(renamed["device"]?["lock"]?["fence"] == 1)
            let event = try message(events)
            #expect(
                event.topic == "event/device/cam0/" && event.json["event"] == "renamed" && event.json["to"] == "front")
            let state = try client.call("bus.snapshot")["state"]
            #expect(state?["state/device/cam0/"] == nil)
            #expect(state?["state/bus/"]?["devices"] == ["front", "cam1"])
            #expect(try client.refusal("device.get", ["device": "cam0"])?.reason == .deviceNotFound)

            // The new worker sets the camera as it was, and the lock is on it.
            let controls = try client.call("device.controls", ["device": "front"])["controls"]?.array ?? []
            #expect(controls.first { $0["name"] == "brightness" }?["value"] == 17)
            #expect(try other.refusal("device.lock", ["devices": "front"])?.reason == .deviceBusy)
            let frame = try FrameReader(bus, "front", "jpeg:160x0").next()
            #expect(frame.header["device"] == "front")
            #expect(try client.call("device.get", ["device": "front"])["device"]?["frameRate"] == 10)
            try client.call(
                "device.configure", ["lock": lock, "changes": [["device": "front", "controls": ["brightness": 18]]]])
            try client.call("device.unlock", ["lock": lock])

            // Free again: everybody may, and the alias can be taken away.
            #expect(
                try other.call("device.rename", ["device": "front", "name": .null])["device"]?["id"] == "cam0")
            try await bus.stop()
        }

        @Test func `devices that exchange their names keep their locks`() async throws {
            func configuration(left: Int) -> String {
                """
                [devices]
                virtual = 2
                hardware = false
                [aliases]
                left = "virtual-\(left)"
                right = "virtual-\(1 - left)"
                """
            }
            let bus = try await BusHarness(virtual: nil, configuration: configuration(left: 0))
            let client = try RawClient(path: bus.directory.commandSocket)
            let left = try client.call("device.lock", ["devices": "left"])
            let right = try client.call("device.lock", ["devices": "right"])
            try bus.write(configuration(left: 1), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually {
                try client.call("device.get", ["device": "left"])["device"]?["uniqueID"] == "virtual-1"
            }
            for (lock, name) in [(left, "right"), (right, "left")] {
                let device = try client.call("device.get", ["device": .string(name)])["device"]
                #expect(device?["lock"]?["fence"] == lock["fence"], "\(name)")
                let change: JSONValue = ["device": .string(name), "controls": ["brightness": 17]]
                try client.call("device.configure", ["lock": lock["lock"] ?? .null, "changes": [change]])
            }
            try await bus.stop()
        }

        @Test func `names that are none, or another device's, or the configuration's are refused`() async throws {
            let bus = try await BusHarness(
                virtual: nil,
                configuration: """
                    [devices]
                    virtual = 3
                    hardware = false
                    order = ["cam2"]
                    [aliases]
                    left = "virtual-1"
                    later = "usb-that-nobody-has-seen"
                    [positions]
                    virtual-0 = "unspecified"
                    left = "front"
                    """)
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try bus.devices() == ["cam2", "left", "cam0"])
            let names = ["Front", "a/b", "-x", "--help", "-", "left", "later", "cam2", "cam1"]
            for name in names + [String(repeating: "x", count: 33)] {
                let refusal = try client.refusal("device.rename", ["device": "cam0", "name": .string(name)])
                #expect(refusal?.reason == .invalidParams && refusal?.data["path"] == "name", "\(name)")
            }
            let refusal = try client.refusal("device.rename", ["device": "left", "name": "right"])
            #expect(refusal?.reason == .invalidParams && refusal?.message.contains("configuration file") == true)
            #expect(try client.call("device.list")["default"] == "cam2")
            let front = try client.call("device.list", ["position": "front", "type": "virtual"])
            #expect(front["count"] == 1 && front["devices"]?[0]?["id"] == "left" && front["default"] == "left")
            let none = try client.call("device.list", ["position": "back", "media": "audio"])
            #expect(none["count"] == 0 && none["default"] == .null)
            try await bus.stop()
        }

        private static let format: JSONValue = ["pixelFormat": "GREY", "width": 64, "height": 48]

        /// Users who may change devices, and decide nothing for others.
        private static let controllers =
            OtherUser.configuration
            + "[permission.users]\n\(OtherUser.first.uid) = \"control\"\n\(OtherUser.second.uid) = \"control\"\n"

        private static func create(_ name: String) -> (method: String, params: JSONValue) {
            ("source.create", ["name": .string(name), "format": format])
        }

        private static func renaming(_ device: String, _ name: String) -> (method: String, params: JSONValue) {
            ("device.rename", ["device": .string(device), "name": .string(name)])
        }

        private static func isRefused(_ reply: JSONValue) -> Bool {
            let data = reply["error"]?["data"]
            return data?["reason"] == "invalidParams" && data?["path"] == "name"
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `a camera's name is no source's, also when the camera has another`() async throws {
            let home = try TemporaryDirectory()
            let arguments = ["--state-dir", home.path]
            let bus = try await BusHarness(virtual: 1, configuration: Self.controllers, arguments: arguments)
            let admin = try RawClient(path: bus.directory.commandSocket)
            try admin.call("device.rename", ["device": "cam0", "name": "cam"])
            let user = OtherUser.first
            let replies = try await bus.ask(
                as: user,
                [
                    Self.renaming("cam", "x"), Self.create("cam"), Self.create("Cam"), Self.create("cam0"),
                    Self.create("x"), Self.create("mine"), Self.renaming("mine", "cam"), Self.renaming("mine", "cam0"),
                ]
            ).replies
            #expect(
                replies[0]["result"]?["device"]?["id"] == "x" && replies[5]["result"]?["device"] == "mine", "\(replies)"
            )
            for index in [1, 2, 3, 4, 6, 7] { #expect(Self.isRefused(replies[index]), "\(replies[index])") }
            #expect(replies[1]["error"]?["message"]?.string?.contains("Virtual Camera 0 (virtual-0)") == true)
            // Nor is it a rig's that somebody else makes.
            let rigs = try await bus.ask(
                as: user,
                [("rig.set", ["name": "cam", "devices": "x"]), ("rig.set", ["name": "pair", "devices": "x"])]
            ).replies
            #expect(rigs.map(Self.isRefused) == [true, false], "\(rigs)")
            // Its administrator has it back.
            #expect(try admin.call("device.rename", ["device": "x", "name": "cam"])["device"]?["id"] == "cam")
            try admin.call("device.rename", ["device": "cam", "name": .null])
            try await bus.stop()

            // Also the next bus knows what it was called.
            let next = try await BusHarness(virtual: 1, configuration: Self.controllers, arguments: arguments)
            let again = try await next.ask(as: user, [Self.create("cam"), Self.create("x"), Self.create("y")]).replies
            #expect(again.map(Self.isRefused) == [true, true, false], "\(again)")
            try await next.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `an administrator takes a name from a source, which continues under another`() async throws {
            let bus = try await BusHarness(virtual: 1, configuration: Self.controllers)
            let admin = try RawClient(path: bus.directory.commandSocket)
            let source = try await bus.ask(
                as: OtherUser.first, [Self.create("front"), Self.create("later")], staying: true)
            #expect(source.replies.map { $0["result"]?["device"] } == ["front", "later"], "\(source.replies)")
            let others = try await bus.ask(as: OtherUser.second, [Self.renaming("cam0", "front")]).replies
            #expect(others.map(Self.isRefused) == [true], "\(others)")
            let taken = try admin.call("device.rename", ["device": "cam0", "name": "front"])["device"]
            #expect(taken?["id"] == "front" && taken?["uniqueID"] == "virtual-0")
            let moved = try #require(try bus.devices().first { $0.hasPrefix("front-") })
            try await bus.wait(for: "state/device/\(moved)/") {
                $0?["uniqueID"] == "client-front" && $0?["connected"] == true
            }
            // One that has gone keeps its name, too.
            source.program.process.send(SIGKILL)
            try await bus.wait(for: "state/device/later/") { $0 == nil }
            let gone = try await bus.ask(as: OtherUser.second, [Self.renaming("front", "later")]).replies
            #expect(gone.map(Self.isRefused) == [true], "\(gone)")
            #expect(try admin.call("device.rename", ["device": "front", "name": "later"])["device"]?["id"] == "later")
            // It has another one when it is back.
            let back = try await bus.ask(as: OtherUser.first, [Self.create("front"), Self.create("later")]).replies
            #expect(back.map(Self.isRefused) == [true, true], "\(back)")
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `names of a device are kept for it, and only an administrator makes more than there is room for`()
            async throws
        {
            let home = try TemporaryDirectory()
            let ids = (0..<32).map { JSONValue.string("n\($0)") }
            let book: JSONValue = [
                "version": 1, "claims": [:],
                "devices": ["virtual-0": ["name": "V", "made": "cam0", "alias": "n31", "seen": 1, "ids": .array(ids)]],
            ]
            try File.replace("\(home.path)/devices.json", with: book.serialized, mode: 0o600)
            let bus = try await BusHarness(
                virtual: 1, configuration: Self.controllers, arguments: ["--state-dir", home.path])
            #expect(try bus.devices() == ["n31"])
            let replies = try await bus.ask(
                as: OtherUser.first, [Self.renaming("n31", "more"), Self.create("n0"), Self.renaming("n31", "n0")]
            ).replies
            #expect(replies[0]["error"]?["data"]?["limit"] == "names", "\(replies)")
            #expect(Self.isRefused(replies[1]) && replies[2]["result"]?["device"]?["id"] == "n0", "\(replies)")
            let admin = try RawClient(path: bus.directory.commandSocket)
            #expect(try admin.call("device.rename", ["device": "n0", "name": "more"])["device"]?["id"] == "more")
            try await bus.stop()
        }

        @Test func `names and settings outlive the bus, also one that is killed right after its answer`() async throws {
            let home = try TemporaryDirectory()
            let arguments = ["--state-dir", "\(home.path)/deep/er"]
            let first = try await BusHarness(virtual: 2, arguments: arguments)
            let client = try RawClient(path: first.directory.commandSocket)
            try client.call("device.rename", ["device": "cam1", "name": "side"])
            let formats = try client.call("device.formats", ["device": "side"])["formats"]?.array ?? []
            let format = try #require(formats.last { !($0["frameRates"]?.array ?? []).isEmpty })
            let lock = try client.call("device.lock", ["devices": "side"])["lock"] ?? .null
            try client.call(
                "device.configure",
                [
                    "lock": lock,
                    "changes": [
                        [
                            "device": "side", "activeFormat": format["id"] ?? .null, "controls": ["brightness": 21],
                        ]
                    ],
                ])
            let pids = try first.workerPIDs()
            for pid in [first.pid] + pids { kill(pid, SIGKILL) }
            try await first.waitForEnd()

            var status = stat()
            #expect(stat("\(home.path)/deep/er/devices.json", &status) == 0 && status.st_mode & 0o777 == 0o600)
            let second = try await BusHarness(virtual: 2, arguments: arguments)
            #expect(try second.devices() == ["cam0", "side"])
            let again = try RawClient(path: second.directory.commandSocket)
            let device = try again.call("device.get", ["device": "side"])["device"]
            #expect(device?["activeFormat"]?["id"] == format["id"])
            #expect(device?["controls"]?["brightness"] == 21)
            try await second.stop()

            // A book that is damaged costs what it held, and nothing else.
            try File.replace("\(home.path)/deep/er/devices.json", with: Array("{\"version\":".utf8), mode: 0o600)
            let third = try await BusHarness(virtual: 2, arguments: arguments)
            #expect(try third.devices() == ["cam0", "cam1"])
            #expect(third.log.contains("the file of devices"))
            #expect(try third.problems() == ["memoryLost"])
            #expect(access("\(home.path)/deep/er/devices.json.damaged", F_OK) == 0)
            // Two buses with one book would each forget what the other knows.
            let fourth = try await third.run("camerabusd", ["--runtime-dir", "\(home.path)/other"] + arguments)
            #expect(fourth.status == 1 && fourth.standardError.contains("camerabusd.lock"))
            try await third.stop()

            // One that can't be read may be whole, and is left alone.
            let book = "\(home.path)/deep/er/devices.json"
            rename(book, book + ".mine")
            mkdir(book, 0o700)
            let fifth = try await third.run("camerabusd", ["--runtime-dir", "\(home.path)/other"] + arguments)
            #expect(fifth.status == 1 && fifth.standardError.contains("devices.json"))
            #expect(stat(book, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR)
            rmdir(book)
        }

        @Test func `a name under which a session could not be stored says so`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try client.call("session.create", ["inputs": ["cam0"]])["session"] ?? .null
            // The place where a new state file is written is taken.
            let obstacle = "\(bus.directory.stateFile).new"
            try #require(mkdir(obstacle, 0o700) == 0)
            let renamed = try client.call("device.rename", ["device": "cam0", "name": "door"])
            #expect(renamed["device"]?["id"] == "door" && renamed["kept"] == false)
            #expect(try client.call("device.rename", ["device": "door", "name": "gate"])["kept"] == false)
            try #require(rmdir(obstacle) == 0)
            try await eventually {
                let kept = try? JSONValue(parsing: try File.read(bus.directory.stateFile, limit: 1 << 20))
                return kept?["sessions"]?[0]?["inputs"]?[0]?["device"] == "gate"
            }
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let next = try RawClient(path: bus.directory.commandSocket)
            let state = try next.call("session.get", ["session": session])["state"]
            #expect(state?["inputs"]?[0]?["device"] == "gate")
            try await bus.stop()
        }

        @Test func `a setting that can't be stored is applied, and the reply says so`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            // The place where a new book is written is taken.
            mkdir("\(bus.directory.path)/state/devices.json.new", 0o700)
            #expect(
                try client.call("device.set", ["device": "cam0", "controls": ["brightness": 5]])["kept"] == false)
            #expect(
                try client.call("device.zoomRamp", ["device": "cam0", "factor": 2, "rate": 0.01])["kept"] == false)
            #expect(try client.call("device.cancelZoomRamp", ["device": "cam0"])["kept"] == false)
            #expect(try client.call("device.rename", ["device": "cam0", "name": "x"])["kept"] == false)
            #expect(try bus.devices() == ["x"])
            #expect(try bus.problems() == ["memoryNotKept"])
            rmdir("\(bus.directory.path)/state/devices.json.new")
            #expect(try client.call("device.set", ["device": "x", "controls": ["brightness": 6]])["kept"] == nil)
            try await bus.stop()
        }

        @Test func `a new name holds while the process under it is being loaded, and not where it can't be started`()
            async throws
        {
            let scratch = try TemporaryDirectory()
            let gate = "\(scratch.path)/gate"
            #expect(mkfifo(gate, 0o600) == 0)
            let script = """
                #!/bin/sh
                case "$1" in --device=slow) read -r _ <\(gate);; --device=broken) exit 1;; esac
                exec \(Programs.path("camerabus-worker")) "$@"
                """
            try File.replace("\(scratch.path)/worker", with: Array(script.utf8), mode: 0o700)
            let bus = try await BusHarness(virtual: 2, arguments: ["--worker", "\(scratch.path)/worker"])
            let client = try RawClient(path: bus.directory.commandSocket)
            let slow = try client.call("device.rename", ["device": "cam0", "name": "slow"], within: 30)["device"]
            #expect(slow?["id"] == "slow" && slow?["worker"]?["state"] == "starting")
            let refusal = try client.refusal("device.rename", ["device": "cam1", "name": "broken"])
            #expect(refusal?.reason == .workerCrashed)
            let opened = try FileDescriptor(opening: gate, O_WRONLY)
            try FileDescriptor.writeAll(Array("go\n".utf8), to: opened.rawValue)
            try await eventually {
                try client.call("device.get", ["device": "slow"])["device"]?["worker"]?["state"] == "running"
            }
            try await bus.stop()
        }

        /// The search is another program's, which says what the test wants; the workers look for their cameras in vain.
        @Test func `cameras keep their ids and stay known while they are away`() async throws {
            let scratch = try TemporaryDirectory()
            let list = "\(scratch.path)/list.json"
            let script = """
                #!/bin/sh
                [ "$1" = --list ] && exec cat \(list)
                exec \(Programs.path("camerabus-worker")) "$@"
                """
            try File.replace("\(scratch.path)/worker", with: Array(script.utf8), mode: 0o700)
            func plug(_ ports: [Int], unreadable: [Int] = []) throws {
                let cameras = ports.enumerated().map { camera(port: $1, node: $0) }
                let hidden = unreadable.map { port -> JSONValue in
                    let camera = camera(port: port, node: 9)
                    return [
                        "node": "/dev/video9", "index": 0, "device": camera["device"] ?? .null, "why": "not yet",
                    ]
                }
                let survey: JSONValue = ["cameras": .array(cameras), "unreadable": .array(hidden)]
                try File.replace(list, with: survey.serialized, mode: 0o600)
            }
            try plug([1])
            let bus = try await BusHarness(
                virtual: nil, arguments: ["--virtual", "0", "--worker", "\(scratch.path)/worker"])
            let client = try RawClient(path: bus.directory.commandSocket)
            func present() throws -> [String: JSONValue] {
                let devices = try client.call("device.list")["devices"]?.array ?? []
                return Dictionary(uniqueKeysWithValues: devices.map { ($0["uniqueID"]?.string ?? "", $0) })
            }
            let serial = "usb-1e4e:0102-SN0001-if00-index0"
            #expect(try present().keys.sorted() == [serial])
            let id = try #require(try present()[serial]?["id"])
            try client.call("device.rename", ["device": id, "name": "first"])
            let grant = try client.call("device.lock", ["devices": "first"])
            let lock = grant["lock"] ?? .null

            // A second one of the model, with the same serial number, comes up before the first at the next search.
            try plug([2, 1])
            kill(bus.pid, SIGHUP)
            try await eventually { try present().count == 2 }
            let second = try #require(try present().first { $0.key != serial })
            #expect(second.key.hasPrefix("usb-0000:00:14.0-2"))
            #expect(try present()[serial]?["id"] == "first" && present()[serial]?["node"] == "/dev/video1")

            // The first goes: it stays known, locked, and is not the one that is left.
            try plug([2])
            kill(bus.pid, SIGHUP)
            try await eventually { try present()[serial]?["node"] == .null }
            #expect(try present()[serial]?["connected"] == false && present().count == 2)
            #expect(try present()[serial]?["error"]?["reason"] == "deviceDisconnected")
            #expect(try present()[second.key]?["id"] == second.value["id"])
            #expect(try client.refusal("device.formats", ["device": "first"])?.reason == .deviceDisconnected)
            try client.call("device.renew", ["lock": lock])

            // One that can't be looked at is not therefore gone.
            try plug([1], unreadable: [2])
            kill(bus.pid, SIGHUP)
            try await eventually { try present()[serial]?["node"] == "/dev/video0" }
            #expect(try present()[second.key]?["node"] == "/dev/video0")
            #expect(try client.call("device.get", ["device": "first"])["device"]?["lock"]?["fence"] == grant["fence"])
            try await bus.stop()
        }

        private func camera(port: Int, node: Int) -> JSONValue {
            [
                "node": .string("/dev/video\(node)"), "index": 0,
                "device": .string("/sys/devices/nowhere/usb1/1-\(port)/1-\(port):1.0"),
                "usb": ["vendor": "1e4e", "product": "0102", "serial": "SN0001", "interface": "00"], "card": "Cam",
                "driver": "uvcvideo", "bus": .string("usb-0000:00:14.0-\(port)"), "position": "external",
            ]
        }

        private func message(_ client: RawClient) throws -> (topic: String, json: JSONValue) {
            let frames = try client.receive()
            let topic = String(decoding: try #require(frames.first).bytes, as: UTF8.self)
            return (topic, frames.count > 1 ? try JSONValue(parsing: frames[1].bytes) : .null)
        }

        // What was subscribed to before is in force when the acknowledgement has come.
        private func barrier(_ events: RawClient) async throws {
            let nonce = "ack/names-\(CurrentProcess.pid)/"
            try events.socket.subscribe("welcome/")
            try events.socket.subscribe(nonce)
            while try message(events).topic != nonce {}
        }
    }
}
