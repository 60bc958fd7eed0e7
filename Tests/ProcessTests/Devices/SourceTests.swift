import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Devices that are no cameras: movies, and frames of clients.
    @Suite(.timeLimit(.minutes(5))) struct Sources {
        private static let format: JSONValue = ["pixelFormat": "GREY", "width": 64, "height": 48]

        private func ffmpeg(_ bus: BusHarness, _ arguments: [String]) async throws {
            let result = try await bus.run("ffmpeg", ["-nostdin", "-v", "error", "-y"] + arguments)
            try #require(result.status == 0, "\(result)")
        }

        private func isGone(_ client: RawClient, _ device: String) throws -> Bool {
            try client.refusal("device.get", ["device": .string(device)])?.reason == .deviceNotFound
        }

        @Test func `a movie is a camera, from the command line and from the configuration`() async throws {
            // The files come after the bus: what is not there yet is waited for.
            let folder = try TemporaryDirectory()
            let movie = "\(folder.path)/The Street.avi"
            let bus = try await BusHarness(
                virtual: nil,
                configuration: """
                    [devices]
                    hardware = false
                    [[replay]]
                    name = "Yard"
                    path = "\(folder.path)/yard"
                    loop = false
                    fps = 20
                    """, arguments: ["--replay", movie])
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try Set(bus.devices()) == ["the-street", "yard"])
            let missing = try client.call("device.get", ["device": "the-street"])["device"]
            #expect(missing?["uniqueID"] == "replay-The-Street" && missing?["connected"] == false)
            #expect(missing?["error"]?["reason"] == "deviceDisconnected")

            try await ffmpeg(
                bus, ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=25", "-frames:v", "5", "-c:v", "mjpeg", movie])
            mkdir("\(folder.path)/yard", 0o700)
            try await ffmpeg(
                bus, ["-f", "lavfi", "-i", "testsrc=size=64x48", "-frames:v", "9", "\(folder.path)/yard/%d.png"])
            for device in ["the-street", "yard"] {
                try await bus.wait(for: "state/device/\(device)/") { $0?["connected"] == true }
            }
            let street = try FrameReader(bus, "the-street", "jpeg")
            var sequences: [Int64] = []
            for _ in 0..<8 {
                let frame = try street.next()
                #expect(frame.header["format"] == "MJPG" && frame.header["width"] == 64)
                sequences.append(frame.header["captureSequence"]?.integer ?? -1)
            }
            #expect(sequences == sequences.sorted() && (sequences.last ?? 0) >= 7)

            // Played once: gone, and there again when it is plugged in.
            for _ in 0..<2 {
                let yard = try FrameReader(bus, "yard", "gray")
                let frame = try yard.next()
                #expect(frame.header["width"] == 64)
                try await bus.wait(for: "state/device/yard/") { $0?["connected"] == false }
                try client.call("fault.inject", ["device": "yard", "fault": "replug"])
                try await bus.wait(for: "state/device/yard/") { $0?["connected"] == true }
            }
            #expect(try client.refusal("fault.inject", ["device": "yard", "fault": "stall"]) != nil)
            try await bus.stop()
        }

        @Test func `another file takes a movie's place when the configuration is read again`() async throws {
            let folder = try TemporaryDirectory()
            func configuration(_ file: String) -> String {
                """
                [devices]
                hardware = false
                [[replay]]
                name = "street"
                path = "\(folder.path)/\(file)"
                """
            }
            let bus = try await BusHarness(virtual: nil, configuration: configuration("small.y4m"))
            for (file, size) in [("small.y4m", "64x48"), ("large.y4m", "128x96")] {
                try await ffmpeg(
                    bus,
                    [
                        "-f", "lavfi", "-i", "testsrc=size=\(size)", "-frames:v", "5", "-pix_fmt", "yuv420p",
                        "\(folder.path)/\(file)",
                    ])
            }
            try await bus.wait(for: "state/device/street/") { $0?["connected"] == true }
            #expect(try FrameReader(bus, "street", "native").next().header["width"] == 64)
            try bus.write(configuration("large.y4m"), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await bus.wait(for: "state/device/street/") { $0?["activeFormat"]?["width"] == 128 }
            #expect(try FrameReader(bus, "street", "native").next().header["width"] == 128)
            try await bus.stop()
        }

        @Test(arguments: [
            ("[[replay]]", "replay.path"), ("[[replay]]\npath = \"a.mp4\"", "replay.path"),
            ("[[replay]]\npath = \"/a.mp4\"\nlopp = true", "replay.lopp"),
            ("[[replay]]\npath = \"/a.mp4\"\nfps = 0", "replay.fps"),
            ("[[replay]]\npath = \"/a.mp4\"\nfps = \"1/30\"", "replay.fps"),
            ("[[replay]]\npath = \"/a.mp4\"\nmax_gap = 0", "replay.max_gap"),
            ("[[replay]]\npath = \"/a.mp4\"\n[[replay]]\npath = \"/b/a.mkv\"", "'a'"),
            ("[replay]\npath = \"/a.mp4\"", "[[replay]]"), ("[faults]\ncam0 = 5", "faults.cam0"),
            ("[faults]\ncam0 = [{ at = 1, fault = \"explode\" }]", "faults.cam0[0].fault"),
        ])
        func `what makes no sense is named at the start`(_ text: String, _ name: String) async throws {
            let folder = try TemporaryDirectory()
            try File.replace("\(folder.path)/wrong.toml", with: Array(text.utf8), mode: 0o600)
            let daemon = try RunningProgram(
                "camerabusd", ["--config", "\(folder.path)/wrong.toml", "--runtime-dir", "\(folder.path)/bus"],
                environment: CurrentProcess.environment(), scratch: folder)
            let result = try await daemon.end()
            #expect(result.status == 1 && result.standardError.contains(name), "\(result)")
        }

        @Test func `faults of the configuration begin with the camera, and events tell of it`() async throws {
            let bus = try await BusHarness(
                virtual: nil,
                configuration: """
                    [devices]
                    hardware = false
                    virtual = 1
                    [faults]
                    cam0 = [{ at = 3000, fault = "replug" }, { at = 500, fault = "unplug" }]
                    """)
            let client = try RawClient(path: bus.directory.commandSocket)
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == false }
            let script = try client.call("fault.list", ["device": "cam0"])["script"]
            #expect(script?["steps"]?.array?.compactMap { $0["at"]?.integer } == [500, 3000])
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == true }
            try client.call("fault.inject", ["device": "cam0", "fault": "unplug", "milliseconds": 3000])
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == false }
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == true }
            try await bus.stop()
        }

        @Test func `the command line has cameras fail, at once and by a script`() async throws {
            let bus = try await BusHarness(virtual: 1)
            func fault(_ arguments: String..., input: String? = nil) async throws -> ProgramResult {
                try await bus.run("camerabus", ["fault", "cam0"] + arguments, input: input.map { Array($0.utf8) })
            }
            let unplugged = try await fault("unplug")
            #expect(unplugged.status == 0 && unplugged.standardOutput == "")
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == false }
            #expect(try await fault("none").status == 0)
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == true }
            #expect(try await fault("drift", "--ppm", "-200").status == 0)
            let wrong = try await fault("rate", "--percent", "5000")
            #expect(wrong.status == 1 && wrong.standardError.hasPrefix("invalidParams: "))

            #expect(try await fault("--list").standardError == "There is no script.\n")
            let steps = #"[{"at": 3600000, "fault": "stall", "milliseconds": 5}, {"at": 0, "fault": "none"}]"#
            #expect(try await fault("--script", "-", input: steps).status == 0)
            let list = try await fault("--list").standardOutput.split(separator: "\n")
            #expect(list.count == 3)
            #expect(list[2].split(separator: " ") == ["3600000", "stall", "waiting"])
            #expect(try await fault("--cancel").standardError == "")
            #expect(try await fault("--cancel").standardError == "No step was waiting.\n")
            #expect(try await fault("--script", "-", input: "{}").status == 2)
            try await bus.stop()
        }

        @Test func `a source is its process's alone`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let made = try client.call("source.create", ["name": "mine", "format": Self.format])
            let path = try #require(made["path"]?.string)
            #expect(path.hasPrefix(bus.directory.media + "/") && access(path, F_OK) == 0)
            #expect(try client.call("device.get", ["device": "mine"])["device"]?["connected"] == true)
            let program = """
                import socket, sys
                s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20)
                try: print(s.recv(4096).decode())
                except ConnectionResetError: print("unauthorized")
                """
            #expect(try await bus.run(Programs.python, ["-c", program, path]).standardOutput.contains("unauthorized"))
            // Its answer may have been lost.
            #expect(try client.call("source.create", ["name": "mine", "format": Self.format]) == made)
            // Another source of that name, by anybody.
            let other: JSONValue = ["name": "mine", "format": Self.format, "frameRate": 5]
            #expect(try client.refusal("source.create", other)?.reason == .deviceBusy)
            let stranger = try await bus.run(
                "camerabus",
                [
                    "call", "source.create",
                    #"{"name":"mine","format":{"pixelFormat":"GREY","width":64,"height":48}}"#,
                ])
            #expect(stranger.status == 1 && stranger.standardError.contains("deviceBusy"), "\(stranger)")
            for number in 0..<15 {
                try client.call("source.create", ["name": .string("more \(number)"), "format": Self.format])
            }
            let refusal = try client.refusal("source.create", ["name": "too many", "format": Self.format])
            #expect(refusal?.reason == .limitExceeded && refusal?.data["limit"] == "sourcesPerUser")
            try client.call("source.delete", ["device": "mine"])
            #expect(try isGone(client, "mine"))
            // Its worker ends by itself.
            try await eventually { access(path, F_OK) != 0 }
            try await bus.stop()
        }

        @Test func `a Swift program's frames are a device`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try await bus.connect()
            let source = try await client.createSource("A filter", pixelFormat: "GREY", width: 64, height: 48)
            #expect(source.device == "a-filter" && source.frameBytes == 3072)
            let reader = try FrameReader(bus, source.device, "native")
            try await bus.wait(for: "state/device/a-filter/") { $0?["isStreaming"] == true }
            let pixels = (0..<3072).map { UInt8(truncatingIfNeeded: $0) }
            let time = MonotonicClock.now()
            #expect(try pixels.withUnsafeBytes { try source.send($0, taken: time) })
            let frame = try reader.next()
            #expect(frame.payload.withUnsafeBytes { Array($0) } == pixels)
            #expect(frame.header["timestamp"]?["monotonic"]?.integer == time)
            #expect(throws: ClientError.self) { try pixels[1...].withUnsafeBytes { try source.send($0) } }
            try await client.deleteSource(source.device)
            #expect(source.dropped == 0)
            try await bus.stop()
        }

        /// It stands for a camera, whose clock is a timer.
        private static let writer = """
            import signal
            from camerabus import Client
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
            with Client(name="writer") as client:
                source = client.create_source("theirs", 64, 48, "gray", fps=50)
                print(source.device, flush=True)
                for number in range(1_000_000):
                    source.send(bytes([number % 256]) * 3072)
                    signal.sigwait({signal.SIGALRM})
            """

        @Test func `a source whose process leaves the bus while it is made is cancelled`() async throws {
            let bus = try await BusHarness(virtual: 0)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.start("source.create", ["name": "made", "format": Self.format])
            try client.start("bus.leave")
            let replies = try (1...2).map { _ in try client.reply() }.sorted { "\($0.id)" < "\($1.id)" }
            guard case .failure(let error) = replies[0].result else { throw TestingError("it was made") }
            #expect(error.reason == .cancelled, "\(error)")
            #expect(try isGone(client, "made"))
            try await bus.stop()
        }

        @Test func `a source ends with its process, and outlives the bus`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let running = try bus.start(
                Programs.python, ["-c", Self.writer], environment: ["PYTHONPATH": Programs.pythonPath])
            try await bus.wait(for: "state/device/theirs/") { $0?["connected"] == true }
            let reader = try FrameReader(bus, "theirs", "native")
            let frame = try reader.next()
            #expect(frame.header["format"] == "GREY" && frame.payload.count == 3072)

            // Its worker.
            let worker = try #require(try bus.workerPID("theirs"))
            kill(worker, SIGKILL)
            let stream = frame.header["stream"]
            while try reader.next().header["stream"] == stream {}
            // The coordinator: the frames go on.
            let before = try reader.next()
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            #expect(try bus.devices().contains("theirs"))
            let after = try reader.next()
            #expect(after.header["stream"] == before.header["stream"])
            #expect(try bus.workerPID("theirs") != nil)

            running.process.send(SIGKILL)
            try await bus.wait(for: "state/device/theirs/") { $0 == nil }
            try await bus.stop()
        }

        @Test func `a source is only made where that can be written, and deleted in any case`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("source.create", ["name": "first", "format": Self.format])
            // The place where a new file is written is taken.
            let place = bus.directory.sourcesFile + ".new"
            mkdir(place, 0o700)
            let wish: JSONValue = ["name": "second", "format": Self.format]
            #expect(try client.refusal("source.create", wish)?.reason == .internalError)
            #expect(try isGone(client, "second"))
            #expect(try client.call("source.delete", ["device": "first"])["kept"] == false)
            #expect(try isGone(client, "first"))
            rmdir(place)
            // It is tried again.
            try await eventually {
                let file = try File.read(bus.directory.sourcesFile, limit: 1 << 16)
                return !String(decoding: file, as: UTF8.self).contains("first")
            }
            #expect(try client.call("source.create", wish)["device"] == "second")
            #expect(try client.call("source.delete", ["device": "second"]) == [:])
            try await bus.stop()
        }

        @Test func `a process that does not come back to the next bus loses its sources`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let script = """
                import json, signal, sys
                import zmq
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
                context = zmq.Context()
                socket = context.socket(zmq.DEALER)
                socket.connect(f"ipc://{sys.argv[1]}")
                params = {"name": "theirs", "format": {"pixelFormat": "GREY", "width": 64, "height": 48}}
                request = {"jsonrpc": "2.0", "id": 1, "method": "source.create", "params": params}
                socket.send_multipart([b"", json.dumps(request).encode()])
                print(json.loads(socket.recv_multipart()[-1])["result"]["device"], flush=True)
                signal.sigwait({signal.SIGUSR1})
                context.destroy(linger=0)
                print("gone", flush=True)
                signal.sigwait({signal.SIGUSR1})
                """
            let running = try bus.start(Programs.python, ["-c", script, bus.directory.commandSocket])
            try await eventually { running.standardOutput == "theirs\n" }
            try await bus.killCoordinator()
            running.process.send(SIGUSR1)
            try await eventually { running.standardOutput == "theirs\ngone\n" }
            try await bus.startCoordinator()
            #expect(try bus.devices().contains("theirs"))
            try await bus.wait(for: "state/device/theirs/") { $0 == nil }
            #expect(!running.process.hasEnded)
            try await bus.stop()
        }

        @Test func `a source that somebody renames goes on, and is deleted by its process all the same`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let running = try bus.start(
                Programs.python, ["-c", Self.writer], environment: ["PYTHONPATH": Programs.pythonPath])
            try await bus.wait(for: "state/device/theirs/") { $0?["connected"] == true }
            _ = try FrameReader(bus, "theirs", "native").next()
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("device.rename", ["device": "theirs", "name": "filter"])
            let frame = try FrameReader(bus, "filter", "native").next()
            #expect(frame.header["format"] == "GREY" && frame.payload.count == 3072)
            running.process.send(SIGKILL)
            try await bus.wait(for: "state/device/filter/") { $0 == nil }

            let maker = try await bus.connect()
            let source = try await maker.createSource("mine", pixelFormat: "GREY", width: 64, height: 48)
            try client.call("device.rename", ["device": "mine", "name": "another"])
            try await maker.deleteSource(source)
            try await bus.wait(for: "state/device/another/") { $0 == nil }
            let program = """
                import camerabus
                with camerabus.Client() as client, client.create_source("own", 64, 48, "gray") as source:
                    client.call("device.rename", {"device": "own", "name": "third"})
                    assert "third" in [device.id for device in client.devices()]
                    source.close()
                    assert "third" not in [device.id for device in client.devices()]
                """
            let result = try await bus.run(
                Programs.python, ["-c", program], environment: ["PYTHONPATH": Programs.pythonPath])
            #expect(result.ending == .exited(0), "\(result.standardError)")
            try await bus.stop()
        }

        @Test func `sources of processes that ended without the bus are not taken up again`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let running = try bus.start(
                Programs.python, ["-c", Self.writer], environment: ["PYTHONPATH": Programs.pythonPath])
            let theirs = try await bus.wait(for: "state/device/theirs/") { $0?["connected"] == true }
            let worker = try ProcessDescriptor(pid: Int32(try #require(theirs?["worker"]?["pid"]?.integer)))
            try await bus.killCoordinator()
            running.process.send(SIGKILL)
            _ = try await running.end()
            try await bus.startCoordinator()
            #expect(try bus.devices() == ["cam0"])
            // It is ended when it says hello.
            try await eventually { worker.hasEnded }
            try await bus.stop()
        }
    }
}
