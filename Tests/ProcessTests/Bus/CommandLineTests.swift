import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

/// What a newcomer types, with the programs that they have.
@Suite(.serialized, .timeLimit(.minutes(5))) struct Shell {
    @Test func `the cameras are there to be seen`() async throws {
        let bus = try await BusHarness(virtual: 2)
        let devices = try await bus.run("camerabus", ["devices"])
        #expect(devices.status == 0)
        let lines = devices.standardOutput.split(separator: "\n")
        #expect(lines.count == 3 && lines[1].hasPrefix("cam0 ") && lines[2].hasPrefix("cam1 "))
        let formats = try await bus.run("camerabus", ["formats", "cam0"])
        #expect(formats.standardOutput.contains("1280x720") && formats.standardOutput.contains("MJPG"))
        let controls = try await bus.run("camerabus", ["controls", "cam0"])
        #expect(controls.standardOutput.contains("brightness") && controls.standardOutput.contains("    1: 50 Hz"))
        let status = try await bus.run("camerabus", ["status", "--json"])
        let json = try JSONValue(parsing: status.standardOutput)
        #expect(json["devices"]?.array?.count == 2 && json["bus"]?["server"] == "CameraBus")
        // Each prints the answer as the bus gives it.
        for (command, method) in [("formats", "device.formats"), ("controls", "device.controls")] {
            let printed = try await bus.run("camerabus", [command, "cam0", "--json"])
            let answer = try await bus.run("camerabus", ["call", method, "{\"device\": \"cam0\"}", "--json"])
            #expect(
                try JSONValue(parsing: printed.standardOutput)[command]
                    == JSONValue(parsing: answer.standardOutput)[command])
        }
        try await bus.stop()
    }

    @Test func `a command under a lock changes the format`() async throws {
        let bus = try await BusHarness(virtual: 2)
        let script = "camerabus format cam0 1280x720 --fps 15 && camerabus set cam0 brightness=20 && camerabus locks"
        let result = try await bus.run("camerabus", ["lock", "cam0", "--", "sh", "-c", script])
        #expect(result.status == 0, "\(result)")
        #expect(result.standardOutput.hasPrefix("cam0: YUYV 1280x720 at 15 frames/s\nbrightness=20\nDEVICES"))
        #expect(result.standardOutput.contains("camerabus (pid "))
        #expect(try await bus.run("camerabus", ["get", "cam0", "brightness"]).standardOutput == "20\n")
        let shown = try await bus.run("camerabus", ["format", "cam0", "--json"])
        let format = try JSONValue(parsing: shown.standardOutput)
        #expect(format["activeFormat"]?["width"] == 1280 && format["frameDuration"] == "1/15")
        #expect(try await bus.run("camerabus", ["locks"]).standardError == "Nothing is locked.\n")
        try await bus.stop()
    }

    @Test func `format and set work without a lock of one's own, and say what can't be had`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let nearest = ["format", "cam0", "641x480", "--nearest"]
        let dry = try await bus.run("camerabus", nearest + ["--dry-run"])
        #expect(dry.status == 0 && dry.standardOutput.hasPrefix("would be cam0: "))
        #expect(dry.standardError.hasPrefix("adjusted: "))
        #expect(try await bus.run("camerabus", ["format", "cam0"]).standardOutput.contains("1280x720"))
        #expect(try await bus.run("camerabus", nearest).standardOutput.contains("640x480"))
        #expect(try await bus.run("camerabus", ["format", "cam0"]).standardOutput.contains("640x480"))
        let refusals = [
            (["format", "cam0", "641x480"], "formatUnsupported: "),
            (["format", "cam0", "--fps", "31"], "frameRateUnsupported: "),
            (["set", "cam0", "brightness=1000000"], "controlOutOfRange: "),
            (["set", "cam0", "nope=1"], "controlUnsupported: "), (["get", "cam0", "nope"], "controlUnsupported: "),
            (["formats", "cam9"], "deviceNotFound: "),
        ]
        for (arguments, words) in refusals {
            let result = try await bus.run("camerabus", arguments)
            #expect(result.status == 1 && result.standardError.hasPrefix(words), "\(arguments): \(result)")
            #expect(result.standardOutput == "")
        }
        let wrong = [
            ["set", "cam0", "brightness=1.5"], ["set", "cam0", "brightness"], ["set", "cam0", "brightness=on"],
            ["set", "cam0", "horizontal_flip=perhaps"],
        ]
        for arguments in wrong {
            let result = try await bus.run("camerabus", arguments)
            #expect(result.status == 2 && result.standardError.contains("; it takes "), "\(arguments): \(result)")
        }
        #expect(
            try await bus.run("camerabus", ["set", "cam0", "vertical_flip=on"]).standardOutput == "vertical_flip=true\n"
        )
        #expect(try await bus.run("camerabus", ["set", "cam0", "hue=-5"]).standardOutput == "hue=-5\n")
        let mixed = try await bus.run("camerabus", ["format", "cam0", "640X480", "--pixel", "mjpg"])
        #expect(mixed.standardOutput.hasPrefix("cam0: MJPG 640x480 "), "\(mixed)")
        let named = try await bus.run(
            "camerabus", ["set", "cam0", "power_line_frequency=50 Hz", "horizontal_flip=yes"])
        #expect(named.standardOutput == "power_line_frequency=1\nhorizontal_flip=true\n", "\(named)")
        // What get prints, set takes.
        let saved = try await bus.run("camerabus", ["get", "cam0", "--settable"]).standardOutput.split(separator: "\n")
        #expect(saved.contains("power_line_frequency=1") && saved.contains("brightness=0"))
        #expect(try await bus.run("camerabus", ["set", "cam0"] + saved.map(String.init)).status == 0)
        try await bus.stop()
    }

    @Test func `frames become files that Pillow opens, with counters that rise`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let pattern = "\(bus.scratchPath)/f-%02d.jpg"
        let result = try await bus.run(
            "camerabus", ["frames", "cam0", "jpeg:640x360@10", "-n", "5", "-o", pattern])
        #expect(result.status == 0, "\(result)")
        var counters: [UInt32] = []
        var files: [String] = []
        for number in 1...5 {
            files.append("\(bus.scratchPath)/f-0\(number).jpg")
            let bytes = try File.read(files[number - 1], limit: 1 << 20)
            counters.append(try #require(bytes.withUnsafeBytes { PictureCounterReader.read(jpeg: $0) }).counter)
        }
        #expect(zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 })
        let script = """
            import sys
            from PIL import Image
            for path in sys.argv[1:]:
                with Image.open(path) as picture:
                    picture.load()
                    print(picture.format, *picture.size)
            """
        let pillow = try await bus.run(Programs.python, ["-c", script] + files)
        #expect(pillow.standardOutput == String(repeating: "JPEG 640 360\n", count: 5), "\(pillow)")
        try await bus.stop()
    }

    @Test func `frames go through a pipe, and lines tell of them`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let size = 320 * 240
        let piped = try await bus.run(
            "sh", ["-c", "camerabus frames cam0 gray:320x240 -o - | head -c \(3 * size) | wc -c"])
        #expect(piped.standardOutput.split(separator: " ").joined() == "\(3 * size)\n", "\(piped)")
        #expect(piped.standardError == "")
        let lines = try await bus.run("camerabus", ["frames", "cam0", "gray:320x240", "-n", "3", "--json"])
        let headers = try lines.standardOutput.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
        #expect(headers.count == 3 && headers.allSatisfy { $0["bytes"] == JSONValue(size) })
        let tooLarge = try await bus.run("camerabus", ["frames", "cam0", "jpeg:9000x9000"])
        #expect(tooLarge.status == 1 && tooLarge.standardError.hasPrefix("formatUnsupported: "))
        try await bus.stop()
    }

    @Test func `a camera that stalls ends frames with status 4`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let program = try bus.start("camerabus", ["frames", "cam0", "gray:320x240", "--timeout", "3"])
        try await eventually { program.standardOutput.split(separator: "\n").count > 2 }
        let stall = "{\"device\": \"cam0\", \"fault\": \"stall\"}"
        let fault = try await bus.run("camerabus", ["call", "fault.inject", "-"], input: Array(stall.utf8))
        #expect(fault.status == 0, "\(fault)")
        let result = try await program.end()
        #expect(result.status == 4)
        #expect(result.standardError.contains("cam0 has sent nothing for 3 s"), "\(result.standardError)")
        try await bus.stop()
    }

    @Test func `two clients fight for a lock, and the loser knows with whom`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let holder = try bus.start("camerabus", ["lock", "cam0"])
        try await eventually { holder.standardOutput.utf8.count == 33 }
        let token = String(holder.standardOutput.dropLast())
        let loser = try await bus.run("camerabus", ["lock", "cam0", "--", "true"])
        #expect(loser.status == 1)
        #expect(loser.standardError.hasPrefix("deviceBusy: ") && loser.standardError.contains("\(holder.process.pid)"))
        let late = try await bus.run("camerabus", ["lock", "cam0", "--wait", "0.1", "--", "true"])
        #expect(late.status == 4 && late.standardError.hasPrefix("lockTimeout: "))
        #expect(try await bus.run("camerabus", ["set", "cam0", "brightness=1"]).status == 1)
        #expect(try await bus.run("camerabus", ["set", "cam0", "brightness=1", "--lock", token]).status == 0)
        // It waits, and gets it when the holder is killed.
        let waiting = try bus.start("camerabus", ["lock", "cam0", "--wait", "20", "--", "echo", "mine"])
        try await eventually { try bus.metric("lock_waits") == 1 }
        holder.process.send(SIGKILL)
        let result = try await waiting.end()
        #expect(result.status == 0 && result.standardOutput == "mine\n")
        let stale = try await bus.run(
            "camerabus", ["format", "cam0", "640x480"], environment: ["CAMERABUS_LOCK": token])
        #expect(stale.status == 1 && stale.standardError.hasPrefix("lockLost: "), "\(stale)")
        try await bus.stop()
    }

    @Test func `a lock that an administrator takes over ends its holder`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let holder = try bus.start("camerabus", ["lock", "cam0"])
        try await eventually { holder.standardOutput.utf8.count == 33 }
        let taken = try await bus.run("camerabus", ["call", "device.takeOver", "{\"devices\": [\"cam0\"]}"])
        #expect(taken.status == 0, "\(taken)")
        let result = try await holder.end()
        #expect(result.status == 1 && result.standardError.contains("lockLost: "), "\(result)")
        try await bus.stop()
    }

    @Test func `a command whose lock is taken over ends with the lock's status`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let take = "camerabus call device.takeOver '{\"devices\": \"cam0\"}' 2>/dev/null"
        let lost = try await bus.run("camerabus", ["lock", "cam0", "--", "sh", "-c", take])
        #expect(lost.status == 1 && lost.standardError.contains("lockLost: "), "\(lost)")
        #expect(lost.standardError.contains("The command ended with status 0"))
        let failed = try await bus.run("camerabus", ["lock", "cam0", "--", "sh", "-c", take + "; exit 9"])
        #expect(failed.status == 9 && failed.standardError.contains("lockLost: "), "\(failed)")
        let unlock = "camerabus call device.unlock \"{\\\"lock\\\": \\\"$CAMERABUS_LOCK\\\"}\""
        let wanted = try await bus.run("camerabus", ["lock", "cam0", "--", "sh", "-c", unlock])
        #expect(wanted.status == 0 && wanted.standardError == "", "\(wanted)")
        try await bus.stop()
    }

    @Test func `a command whose bus is gone ends with the lock's status`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let script =
            "camerabus call bus.shutdown >/dev/null; while [ -e \(bus.directory.commandSocket) ]; do :; done"
        let gone = try await bus.run("camerabus", ["lock", "cam0", "--timeout", "2", "--", "sh", "-c", script])
        #expect(gone.status == 3 && gone.standardError.contains("The bus does not answer any more."), "\(gone)")
        try await bus.waitForEnd()
        try await bus.stop()
    }

    @Test func `a lock with a lease outlives the program`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let locked = try await bus.run("camerabus", ["lock", "cam0", "--lease", "60"])
        #expect(locked.status == 0 && locked.standardOutput.utf8.count == 33, "\(locked)")
        let token = String(locked.standardOutput.dropLast())
        let under = try await bus.run(
            "camerabus", ["set", "cam0", "brightness=3"], environment: ["CAMERABUS_LOCK": token])
        #expect(under.status == 0, "\(under)")
        #expect(try await bus.run("camerabus", ["set", "cam0", "brightness=4"]).status == 1)
        let unlock = "{\"lock\": \"\(token)\"}"
        #expect(try await bus.run("camerabus", ["call", "device.unlock", unlock]).status == 0)
        let short = try await bus.run("camerabus", ["lock", "cam0", "--lease", "0.3", "--", "sleep", "1"])
        #expect(short.status == 1 && short.standardError.contains("its lease has expired"), "\(short)")
        try await bus.stop()
    }

    @Test func `wrong usage of the coordinator has status 2`() async throws {
        let bus = try await BusHarness(virtual: 0)
        for wrong in [["--nonsense"], ["--virtual", "99"]] {
            let result = try await bus.run("camerabusd", wrong)
            #expect(result.status == 2 && result.standardError.hasPrefix("Error: ") && result.standardOutput == "")
        }
        let help = try await bus.run("camerabusd", ["--help"])
        #expect(help.status == 0 && help.standardOutput.contains("Exit status"))
        try await bus.stop()
    }

    @Test func `watch shows the state and its changes`() async throws {
        let bus = try await BusHarness(virtual: 2)
        let watching = try bus.start("camerabus", ["watch", "state/device/cam1", "--json"])
        try await eventually { !watching.standardOutput.isEmpty }
        #expect(try await bus.run("camerabus", ["set", "cam1", "brightness=33"]).status == 0)
        try await eventually { watching.standardOutput.contains("\"brightness\":33") }
        #expect(!watching.standardOutput.contains("cam0"))
        watching.process.send(SIGINT)
        #expect(try await watching.end().status == 130)
        try await bus.stop()
    }

    @Test func `watch shows what others call themselves, and they steer no terminal`() async throws {
        let bus = try await BusHarness(virtual: 1)
        let client = try RawClient(path: bus.directory.commandSocket)
        let watching = try bus.start("camerabus", ["watch", "state/lock"])
        try client.call("bus.hello", ["client": "bad\u{9B}31m\u{202E}\u{85}\u{1B}[31m\u{2028}name"])
        try client.call("device.lock", ["devices": "cam0"])
        try await eventually { watching.standardOutput.contains("name") }
        #expect(watching.standardOutput.printableLines == watching.standardOutput)
        watching.process.send(SIGINT)
        _ = try await watching.end()
        try await bus.stop()
    }

    @Test func `top shows what is read, and what it costs`() async throws {
        let bus = try await BusHarness(virtual: 2)
        let recorder = try FrameRecorder(bus, "cam0", "jpeg:64x48")
        _ = try await recorder.first(by: .after(seconds: 20)) { $0.isFrame }
        let top = try bus.start("camerabus", ["top", "--interval", "1", "--json"])
        // The first second may be one in which a worker had nothing new to tell.
        try await eventually { top.standardOutput.split(separator: "\n").count >= 3 }
        top.process.send(SIGINT)
        #expect(try await top.end().status == 130)
        let looks = try top.standardOutput.split(separator: "\n").map {
            try JSONValue(parsing: String($0))["devices"] ?? []
        }
        let streaming = looks.map { $0[0] ?? [:] }
        #expect(streaming.contains { ($0["frameRate"]?.double ?? 0) > 0 && ($0["load"]?.double ?? 0) > 0 })
        #expect(streaming.contains { ($0["renditions"]?["jpeg:64x48"]?["frameRate"]?.double ?? 0) > 0 })
        #expect(streaming.last?["id"] == "cam0" && streaming.last?["subscriptions"] == 1)
        #expect(streaming.last?["readers"] == 1)
        #expect((streaming.last?["residentBytes"]?.integer ?? 0) > 1 << 20)
        #expect(looks.allSatisfy { $0[1]?["state"] != "streaming" })
        recorder.stop()
        let table = try await bus.run("camerabus", ["top", "--interval", "1", "-n", "1"])
        #expect(table.status == 0 && table.standardOutput.contains("LEFT OUT"))
        try await bus.stop()
    }

    /// What stands in a table's column, whose words end where its heading does, in the line of that device; nil: there
    /// is none.
    private static func value(_ column: String, of device: String, in table: [Substring]) -> Int? {
        guard let heading = table.first(where: { $0.hasPrefix("ID ") }),
            let line = table.first(where: { $0.hasPrefix("\(device) ") }),
            let end = heading.firstRange(of: column)?.upperBound
        else { return nil }
        let width = heading.distance(from: heading.startIndex, to: end)
        return line.prefix(width).split(separator: " ").last.flatMap { Int($0) }
    }

    @Test func `top tells live what a camera has lost, and what came damaged`() async throws {
        let bus = try await BusHarness(virtual: 2)
        let readers = [try FrameReader(bus, "cam0", "gray:64x48"), try FrameReader(bus, "cam1", "gray:64x48")]
        for reader in readers { _ = try reader.next() }
        let top = try bus.start("camerabus", ["top", "--interval", "1"])
        func looks() -> [[Substring]] {
            top.standardOutput.split(separator: "\n").split { $0.hasPrefix("Bus: ") }.map(Array.init)
        }
        // The last look may be half told.
        func told(_ column: String, _ device: String) -> Int? {
            looks().dropLast().last.flatMap { Self.value(column, of: device, in: $0) }
        }
        try await eventually { told("DAMAGED", "cam0") == 0 && told("LOST", "cam0") != nil }
        let client = try RawClient(path: bus.directory.commandSocket)
        try client.call("fault.inject", ["device": "cam0", "fault": "corrupt", "frames": 5])
        try await eventually { told("DAMAGED", "cam0") == 5 }
        // A worker that is stopped has no room for what its camera gives meanwhile: here until the other one has given
        // two seconds' worth.
        let lost = told("LOST", "cam0") ?? 0
        let worker = try #require(try bus.workerPID("cam0"))
        kill(worker, SIGSTOP)
        defer { kill(worker, SIGCONT) }
        let end = MonotonicClock.now() + 2_000_000_000
        while try readers[1].next().header["timestamp"]?["monotonic"]?.integer ?? 0 < end {}
        kill(worker, SIGCONT)
        try await eventually { told("LOST", "cam0") ?? 0 > lost }
        #expect(told("DAMAGED", "cam0") == 5 && told("DAMAGED", "cam1") == 0)
        top.process.send(SIGINT)
        #expect(try await top.end().status == 130)
        try await bus.stop()
    }

    @Test func `without a bus it says how to start one`() async throws {
        let bus = try await BusHarness(virtual: 0)
        let elsewhere = ["--runtime-dir", "\(bus.directory.path)-not"]
        let result = try await bus.run("camerabus", ["devices"] + elsewhere)
        #expect(result.status == 3 && result.standardError.contains("camerabusd"))
        kill(bus.pid, SIGSTOP)
        let stopped = try await bus.run("camerabus", ["devices", "--timeout", "0.5"])
        kill(bus.pid, SIGCONT)
        #expect(stopped.status == 4, "\(stopped)")
        try await bus.stop()
    }
}
