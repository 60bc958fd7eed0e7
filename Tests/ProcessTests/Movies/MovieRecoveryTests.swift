import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests.Movies {
    @Test func `an end comes to a recorder whom sixty-four other orders wait for`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let client = try RawClient(path: bus.directory.commandSocket)
        // Sixteen replies are kept for each.
        let many = try (0..<8).map { _ in try RawClient(path: bus.directory.commandSocket) }
        let id = try movie(client.call("movie.start", ["device": "cam0", "path": path(bus, "a.mp4")]))
        let recorder = try recorder(client, "cam0")
        kill(recorder, SIGSTOP)
        let params: JSONValue = ["movie": .string(id)]
        for number in 0..<64 { try many[number % 8].start(number % 2 == 0 ? "movie.pause" : "movie.resume", params) }
        // Requests of one client are taken in their order: what this answers is that the others have come, and wait.
        for one in many { try one.call("bus.ping") }
        let refusal = try client.refusal("movie.pause", params)
        #expect(refusal?.reason == .limitExceeded && refusal?.data["limit"] == "ordersPerMovie")
        try client.start("movie.stop", params)
        try await bus.wait(for: "state/movie/\(id)/") { $0?["state"] == "finishing" }
        kill(recorder, SIGCONT)
        let end = try client.reply().result.get()
        #expect(end["reason"] == "stopped" && end["success"] == true && end["kept"] == true)
        // Each of the others has its answer, too.
        for number in 0..<64 { _ = try many[number % 8].reply() }
        #expect(try client.call("movie.list")["movies"] == [])
        try await bus.stop()
    }

    @Test func `a session's movie goes on in the next bus, however long that looks for its camera`() async throws {
        let scratch = try TemporaryDirectory()
        let gate = try Gate("\(scratch.path)/gate")
        let script = """
            #!/bin/sh
            if [ "$1" = --list ]; then \(gate.waiting); echo '{"cameras":[],"unreadable":[]}'; exit; fi
            exec \(Programs.path("camerabus-worker")) "$@"
            """
        try File.replace("\(scratch.path)/worker", with: Array(script.utf8), mode: 0o700)
        try gate.open()
        let bus = try await BusHarness(
            virtual: nil, arguments: ["--virtual", "1", "--worker", "\(scratch.path)/worker"])
        let first = try RawClient(path: bus.directory.commandSocket)
        let session = try #require(
            first.call("session.create", ["preset": "640x480", "inputs": ["cam0"], "outputs": ["movie"]])["session"])
        let running = try first.call("session.start", ["session": session])
        #expect(running["state"]?["state"] == "running")
        let id = try movie(first.call("movie.start", ["session": session, "path": path(bus, "a.mp4")]))
        try await bus.killCoordinator()
        try await bus.startCoordinator(waits: false)
        // It hears of the movie before it knows of any camera.
        try await eventually { bus.log.contains("a movie is taken over") }
        try gate.open()
        let next = try RawClient(path: bus.directory.commandSocket)
        try await eventually { try next.call("device.list")["devices"]?.array?.count == 1 }
        let status = try next.call("movie.status", ["movie": .string(id)])["movie"]
        #expect(status?["state"] == "recording" && status?["session"] == session, "\(status ?? .null)")
        let frames = status?["frames"]?.integer ?? 0
        try await bus.wait(for: "state/movie/\(id)/") { ($0?["frames"]?.integer ?? 0) > frames + 5 }
        // As a session's it ends with it.
        try next.call("session.stop", ["session": session])
        try await eventually { try next.call("movie.list")["movies"] == [] }
        let end = try next.call("movie.status", ["movie": .string(id)])["movie"]?["end"]
        #expect(end?["reason"] == "stopped" && end?["success"] == true && end?["kept"] == true)
        try await bus.stop()
    }

    @Test func `where there is a file already, the part after a crash goes into the next one`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
        try bus.write("precious", to: "a-2.mp4")
        let started = try client.call(
            "movie.start",
            ["device": "cam0", "path": path(bus, "a.mp4"), "fragmentInterval": 100, "continueAfterCrash": true])
        let id = try movie(started)
        try await bus.wait(for: "state/movie/\(id)/") { ($0?["fragments"]?.integer ?? 0) > 1 }
        try bus.recorder(of: id).send(SIGKILL)
        let second = try #require(try ears.next("didFinishRecording", of: id)["next"]?.string)
        let miss = try ears.next("didFinishRecording", of: second)
        #expect(miss["success"] == false && miss["kept"] == false && miss["path"] == path(bus, "a-2.mp4"))
        let third = try #require(miss["next"]?.string)
        try ears.next("didStartRecording", of: third)
        let part = try client.call("movie.status", ["movie": .string(third)])["movie"]
        #expect(part?["path"] == path(bus, "a-3.mp4") && part?["part"] == 3 && part?["take"] == started["take"])
        #expect(try client.call("movie.stop", ["movie": .string(third)])["success"] == true)
        #expect(try File.read("\(bus.scratchPath)/a-2.mp4", limit: 100) == Array("precious".utf8))
        #expect(!exists(bus, "a-2.mp4.frames.jsonl") && exists(bus, "a-3.mp4.frames.jsonl"))
        try await bus.stop()
    }

    @Test func `a start that is refused leaves no file`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let client = try RawClient(path: bus.directory.commandSocket)
        try bus.write("precious", to: "there.mp4")
        for (name, params) in [
            ("there.mp4", [:]), ("raw.mp4", ["codec": "raw"]), ("nowhere/a.mp4", [:]), ("tiny.mp4", ["maxFileSize": 1]),
        ] as [(String, [String: JSONValue])] {
            let own: [String: JSONValue] = ["device": "cam0", "path": path(bus, name)]
            // Why is told, however soon its recorder has ended.
            for _ in 0..<3 {
                let refusal = try client.refusal("movie.start", .object(own.merging(params) { $1 }))
                #expect(
                    refusal.map { $0.reason != .workerCrashed && $0.reason != .internalError } == true,
                    "\(name): \(String(describing: refusal))")
            }
            #expect(exists(bus, name) == (name == "there.mp4") && !exists(bus, "\(name).frames.jsonl"), "\(name)")
        }
        #expect(try File.read("\(bus.scratchPath)/there.mp4", limit: 100) == Array("precious".utf8))
        #expect(try client.call("movie.list")["movies"] == [])
        // And the way is free.
        let id = try movie(client.call("movie.start", ["device": "cam0", "path": path(bus, "raw.mp4")]))
        #expect(try client.call("movie.stop", ["movie": .string(id)])["success"] == true)
        try await bus.stop()
    }
}
