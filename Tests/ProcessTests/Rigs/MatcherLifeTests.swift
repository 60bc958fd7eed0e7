import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// The matcher of a rig runs while somebody is connected to the rig's socket.
    @Suite(.timeLimit(.minutes(5))) struct MatcherLife {
        private static let topic = "set/desk/gray:64x0/"

        private func matchers(_ bus: BusHarness) -> [Int32] { bus.pids(of: "camerabus-matcher") }

        private func reader(_ bus: BusHarness) throws -> RawClient {
            try RawClient(.subscribe, path: bus.directory.mediaSocket("desk"), topics: [Self.topic])
        }

        /// Waits for a set; errors before it are passed over.
        private func set(_ reader: RawClient) throws -> JSONValue {
            while true {
                let frames = try reader.receive(within: 30)
                let header = try JSONValue(parsing: try #require(frames.dropFirst().first).bytes)
                if header["error"] == nil { return header }
            }
        }

        @Test func `64 rigs cost no process, and one with a reader costs one until the reader has gone`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let raw = try RawClient(path: bus.directory.commandSocket)
            for number in 0..<64 {
                try raw.call("rig.set", ["name": .string("rig-\(number)"), "devices": ["cam0", "cam1"]])
                // Whoever has the reply can connect.
                #expect(access(bus.directory.mediaSocket("rig-\(number)"), F_OK) == 0)
            }
            #expect(matchers(bus) == [])
            func state() throws -> JSONValue? {
                try raw.call("bus.snapshot", ["prefix": "state/rig/"])["state"]?["state/rig/rig-40/"]
            }
            let before = try #require(try state())

            let client = try await bus.connect()
            let sets = try await client.frameSets("rig-40", "gray:64x0")
            let first = try await Deadline.usual.limit("a set") { try await sets.next().header.stream }
            let pids = matchers(bus)
            #expect(pids.count == 1)
            #expect(try state() == before)

            // Who comes back at once finds the same one.
            sets.close()
            let again = try await client.frameSets("rig-40", "gray:64x0")
            _ = try await Deadline.usual.limit("a set") { try await again.next() }
            #expect(matchers(bus) == pids)

            again.close()
            try await eventually { matchers(bus).isEmpty }
            #expect(!bus.log.contains("the matcher has ended"))
            #expect(access(bus.directory.mediaSocket("rig-40"), F_OK) == 0)
            let later = try await client.frameSets("rig-40", "gray:64x0")
            let stream = try await Deadline.usual.limit("a set") { try await later.next().header.stream }
            #expect(stream != first && matchers(bus).count == 1 && matchers(bus) != pids)
            try await client.deleteRig("rig-40")
            try await eventually {
                matchers(bus).isEmpty && access(bus.directory.mediaSocket("rig-40"), F_OK) != 0
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `a matcher that is killed is back while somebody needs it, and stays away else`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let raw = try RawClient(path: bus.directory.commandSocket)
            try raw.call("rig.set", ["name": "desk", "devices": ["cam0", "cam1"]])
            do {
                let reader = try reader(bus)
                let stream = try set(reader)["stream"]
                kill(try #require(matchers(bus).first), SIGKILL)
                while try set(reader)["stream"] == stream {}
            }
            let pid = try #require(matchers(bus).first)
            // Its reader has gone, and that is known to it.
            try await bus.wait(for: "state/device/cam0/") { $0?["isOpen"] == false }
            let ends = bus.log.split(separator: "\n").count { $0.contains("the matcher has ended") }
            kill(pid, SIGKILL)
            try await eventually {
                bus.log.split(separator: "\n").count { $0.contains("the matcher has ended") } > ends
            }
            for _ in 0..<2 { try raw.call("bus.ping") }
            #expect(matchers(bus) == [])
            _ = try set(try reader(bus))
            try await bus.stop()
        }

        @Test func `readers get sets from the next bus, with and without a matcher of the one before`() async throws {
            let bus = try await BusHarness(virtual: 2)
            try RawClient(path: bus.directory.commandSocket).call(
                "rig.set", ["name": "desk", "devices": ["cam0", "cam1"]])
            // Nobody has read yet.
            try await bus.killCoordinator()
            let early = try reader(bus)
            try await bus.startCoordinator()
            _ = try set(early)
            let pid = try #require(matchers(bus).first)

            // The next bus takes the matcher over, and its end leaves the rig to readers that come later.
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            _ = try set(early)
            #expect(matchers(bus) == [pid])
            kill(pid, SIGTERM)
            _ = try set(try reader(bus))
            #expect(matchers(bus).count == 1 && matchers(bus) != [pid])
            try await bus.stop()
        }

        @Test func `a name that a device takes from an idle rig is the device's, and the rig's again after it`()
            async throws
        {
            let rig = """
                [devices]
                virtual = 2
                hardware = false
                [[rig]]
                name = "desk"
                devices = ["virtual-0", "virtual-1"]

                """
            let bus = try await BusHarness(virtual: nil, configuration: rig)
            _ = try set(try reader(bus))
            for isHidden in [true, false] {
                try bus.write(rig + (isHidden ? "[aliases]\ndesk = \"virtual-0\"\n" : ""), to: "camerabus.toml")
                kill(bus.pid, SIGHUP)
                try await bus.wait(for: "state/device/desk/") { ($0 != nil) == isHidden }
                guard isHidden else { continue }
                _ = try FrameReader(bus, "desk", "jpeg:160x0").next()
            }
            _ = try set(try reader(bus))
            try await bus.stop()
        }

        @Test func `who reads sets through the gateway has a matcher as long as he does`() async throws {
            let bus = try await BusHarness(virtual: 2)
            try RawClient(path: bus.directory.commandSocket).call(
                "rig.set", ["name": "desk", "devices": ["cam0", "cam1"]])
            let gateway = try await RemoteGateway(bus)
            let probe = try RemoteProbe(gateway, try gateway.add("laptop", .view))
            let topic = Array("set/desk/jpeg:64x0/".utf8)
            let media = try probe.socket(.dealer, .media)
            #expect(matchers(bus) == [])
            for _ in 0..<2 {
                try media.send(MediaAsk(.next, topic: topic).bytes)
                let message = try #require(try probe.receive(media, within: 30))
                #expect(message.count > 2, "\(message.last.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "")")
                #expect(matchers(bus).count == 1)
                try media.send(MediaAsk(.end, topic: topic).bytes)
                try await eventually { matchers(bus).isEmpty }
            }
            let web = try await WebGateway(bus)
            let page = try WebSocketProbe(web)
            page.send(binary: MediaAsk(.next, topic: topic).bytes)
            #expect(try page.receiveBinary()?.topic == String(decoding: topic, as: UTF8.self))
            #expect(matchers(bus).count == 1)
            page.send(binary: MediaAsk(.end, topic: topic).bytes)
            try await eventually { matchers(bus).isEmpty }
            try await bus.stop()
        }
    }
}
