import BusProtocol
import CameraBusTesting
import JSON
import Testing
import ZeroMQ

extension ProcessTests {
    /// `camerabus` on another machine, through the real gateway.
    @Suite(.timeLimit(.minutes(5))) struct RemoteCommand {
        private struct Desk {
            let bus: BusHarness
            let gateway: RemoteGateway

            init() async throws {
                bus = try await BusHarness(virtual: 1)
                gateway = try await RemoteGateway(bus)
            }

            /// What tells the program where to go, and as whom.
            func environment(
                _ pair: CurveKeyPair, server: CurveKey? = nil, port: Int? = nil
            ) throws -> [String: String] {
                let text = KeyFile.text(
                    publicKey: pair.publicKey.text, secretKey: pair.secretKey.text, name: "desk")
                // As 'camerabus keys server' prints it.
                let serverFile = try bus.write("\((server ?? gateway.serverKey).text)\n", to: "rig.pub")
                return [
                    "CAMERABUS_RUNTIME_DIR": "tcp://127.0.0.1:\(port ?? gateway.port)",
                    "CAMERABUS_SERVER_KEY": serverFile, "CAMERABUS_KEY": try bus.write(text, to: "desk.key"),
                ]
            }
        }

        @Test func `what stands in the way is told for what it is, and at once`() async throws {
            let desk = try await Desk()
            let pair = try desk.gateway.add("desk", .view)
            let stranger = try CurveKeyPair.make()
            let context = try Context()
            let other = try Socket(context, .router)
            let (otherPort, closed) = (try LocalPort.free(), try LocalPort.free())
            try other.bind("tcp://127.0.0.1:\(otherPort)")
            func told(_ environment: [String: String]) async throws -> String {
                let result = try await desk.bus.run(
                    "camerabus", ["devices", "--timeout", "60"], environment: environment)
                #expect(result.status == 3, "\(result)")
                return result.standardError
            }
            for (port, words) in [
                (closed, "Connection refused"), (otherPort, "is not the request port"),
                (desk.gateway.port + 1, "is the event port"),
            ] {
                let text = try await told(try desk.environment(pair, port: port))
                #expect(text.contains(words), "\(words): \(text)")
            }
            let unknown = try await told(try desk.environment(stranger))
            #expect(
                unknown.contains("refused this program") && unknown.contains(stranger.publicKey.text),
                "\(unknown)")
            let wrong = try await told(try desk.environment(pair, server: stranger.publicKey))
            #expect(wrong.contains("differs from"), "\(wrong)")
            var named = try desk.environment(pair)
            named["CAMERABUS_RUNTIME_DIR"] = "tcp://no-such-host.invalid:7350"
            #expect(try await told(named).contains("is unknown"))
            withExtendedLifetime(other) {}
            try await desk.bus.stop()
        }

        @Test func `the doctor goes the way to another machine`() async throws {
            let desk = try await Desk()
            let pair = try desk.gateway.add("desk", .view)
            let sound = try await desk.bus.run(
                "camerabus", ["doctor", "--json"], environment: try desk.environment(pair))
            let checks = try JSONValue(parsing: sound.standardOutput)["checks"]?.array ?? []
            let remote = checks.first { $0["id"] == "remote" }
            #expect(remote?["outcome"] == "healthy", "\(sound)")
            #expect(remote?["text"]?.string?.contains("as 'desk' with the role view") == true)
            #expect(checks.first { $0["id"] == "clocks" }?["outcome"] == "healthy")
            #expect(checks.first { $0["id"] == "workers" }?["text"] == "1 run", "\(checks)")
            let stranger = try await desk.bus.run(
                "camerabus", ["doctor", "--json"], environment: try desk.environment(try CurveKeyPair.make()))
            let found = try JSONValue(parsing: stranger.standardOutput)["checks"]?.array?
                .flatMap { $0["findings"]?.array ?? [] }.compactMap { $0["id"]?.string }
            #expect(stranger.status == 1 && found == ["remote-key-not-let-in"], "\(stranger)")
            try await desk.bus.stop()
        }

        @Test func `a key that is taken back is told to who holds a lock, and to who sees pictures`() async throws {
            let desk = try await Desk()
            let environment = try desk.environment(try desk.gateway.add("desk", .control))
            // Pictures come as JPEG unless something else is asked for, and there is no memory to share.
            let frame = try await desk.bus.run(
                "camerabus", ["frames", "cam0", "-n", "1", "--json"], environment: environment)
            #expect(try JSONValue(parsing: frame.standardOutput)["format"] == "JPEG", "\(frame)")
            let shared = try await desk.bus.run(
                "camerabus", ["frames", "cam0", "-n", "1", "--shared"], environment: environment)
            #expect(shared.status == 2 && shared.standardError.contains("only on the machine of the bus"), "\(shared)")

            let gate = try Gate("\(desk.bus.scratchPath)/gate")
            let holder = try desk.bus.start(
                "camerabus", ["lock", "cam0", "--timeout", "5", "--", "sh", "-c", "echo on; \(gate.waiting)"],
                environment: environment)
            let viewer = try desk.bus.start(
                "camerabus", ["frames", "cam0", "--timeout", "5"], environment: environment)
            try await eventually {
                holder.standardOutput == "on\n" && viewer.standardOutput.split(separator: "\n").count > 2
            }
            try desk.gateway.revoke("desk")
            try await eventually(by: .after(seconds: 60)) {
                holder.standardError.contains("lockLost: The lock has ended: its lease of 10 s has expired")
                    && holder.standardError.contains("refused this program")
            }
            try gate.open()
            let held = try await holder.end()
            #expect(
                held.status == 3 && held.standardError.contains("cam0: another client may have held the lock"),
                "\(held)")
            let seen = try await viewer.end()
            #expect(seen.status == 3 && seen.standardError.contains("refused this program"), "\(seen)")
            try await desk.bus.stop()
        }
    }
}
