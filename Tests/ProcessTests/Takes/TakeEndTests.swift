import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

extension ProcessTests.Takes {
    @Test func `a take whose librarian dies when it has finished it is finished, and one that was not is as it was`()
        async throws
    {
        let mortal = "\(home.path)/mortal"
        let librarian = Programs.path("camerabus-librarian")
        let script = """
            #!/bin/sh
            case "\(Programs.privateArguments)" in
            *silent.mp4*) "\(librarian)" "$@" > /dev/null; kill -9 $$;;
            *dead.mp4*) kill -9 $$;;
            esac
            exec "\(librarian)" "$@"

            """
        try File.replace(mortal, with: Array(script.utf8), mode: 0o700)
        let bus = try await bus(arguments: ["--librarian", mortal])
        let client = try RawClient(path: bus.directory.commandSocket)
        let take = try id(client.call("take.create", ["device": "cam0", "name": "belt"]))
        let segment = try await segment(bus, client, take)
        let dead = try client.refusal("take.finish", ["take": take, "name": "dead.mp4"])
        #expect(dead?.reason == .internalError)
        #expect(try client.call("take.get", ["take": take])["take"]?["state"] == "paused")
        #expect(try exists(segment["path"]))
        let movie = try client.call("take.finish", ["take": take, "name": "silent.mp4"], within: 30)
        #expect(movie["path"]?.string?.hasSuffix("/silent.mp4") == true && movie["encoded"] == false)
        #expect(try exists(movie["path"]) && exists(movie["cover"]) && !exists(segment["path"]))
        #expect(try client.call("take.list")["takes"] == [])
        #expect(try client.call("library.get", ["id": take])["entry"]?["state"] == "finished")
        try await bus.stop()
    }

    @Test func `a take that was being thrown away when the bus died is thrown away by the next`() async throws {
        let (slow, hold) = ("\(home.path)/slow", "\(home.path)/hold")
        let gate = try Gate("\(home.path)/gate")
        let script = """
            #!/bin/sh
            case "\(Programs.privateArguments)" in *delete*) [ -e "\(hold)" ] && { \(gate.waiting); exit 1; };; esac
            exec "\(Programs.path("camerabus-librarian"))" "$@"

            """
        try File.replace(slow, with: Array(script.utf8), mode: 0o700)
        try File.replace(hold, with: [], mode: 0o600)
        defer { File.remove(hold) }
        let bus = try await bus(arguments: ["--librarian", slow])
        var client = try RawClient(path: bus.directory.commandSocket)
        let take = try id(client.call("take.create", ["device": "cam0"]))
        let segment = try await segment(bus, client, take)
        try client.start("take.discard", ["take": take])
        let known = "\(home.path)/takes.json"
        try await eventually {
            try String(decoding: File.read(known, limit: 1 << 20), as: UTF8.self).contains("discarded")
        }
        try await bus.killCoordinator()
        File.remove(hold)
        try gate.open()
        try await bus.startCoordinator()
        client = try RawClient(path: bus.directory.commandSocket)
        #expect(try client.refusal("take.get", ["take": take])?.reason == .takeNotFound)
        try await eventually { try client.call("take.list")["takes"] == [] && !exists(segment["path"]) }
        #expect(try client.call("library.list")["entries"] == [])
        try await bus.stop()
    }

    @Test func `a segment does not begin when its session went while that was written down`() async throws {
        let bus = try await bus()
        let client = try RawClient(path: bus.directory.commandSocket)
        for _ in 0..<4 {
            let session = try #require(
                client.call("session.create", ["preset": "640x480", "inputs": ["cam0"], "outputs": ["movie"]])[
                    "session"])
            let take = try id(client.call("take.create", ["session": session]))
            try client.call("session.start", ["session": session])
            try client.start("take.record", ["take": take])
            try client.start("session.delete", ["session": session])
            let answers = try [client.reply().result, client.reply().result]
            let refusals = answers.compactMap { if case .failure(let error) = $0 { error.reason } else { nil } }
            #expect(refusals.allSatisfy { $0 == .cancelled }, "\(answers)")
            // Nothing goes on, whichever was first.
            try await bus.wait(for: "state/take/\(take.string ?? "")/") { $0?["state"] == "paused" }
            #expect(try client.call("movie.list")["movies"] == [])
            try client.call("take.discard", ["take": take])
        }
        try await bus.stop()
    }
}
