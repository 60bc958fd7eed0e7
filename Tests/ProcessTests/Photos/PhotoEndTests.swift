import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

/// Photos that are given up, or whose worker, bus or client dies.
extension ProcessTests.Photos {
    private func names(in folder: String) throws -> Set<String> {
        guard let folder = opendir(folder) else { throw TestingError("\(folder) is not there") }
        defer { closedir(folder) }
        var names: Set<String> = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.insert(name) }
        }
        return names
    }

    /// A bus whose workers write down what they are started with.
    private func noting() async throws -> BusHarness {
        let worker = "\(home.path)/worker"
        let script = """
            #!/bin/sh
            tr '\\0' '\\n' </proc/$$/fd/3 >"\(home.path)/options.$$"
            exec "\(Programs.path("camerabus-worker"))" "$@"

            """
        try File.replace(worker, with: Array(script.utf8), mode: 0o700)
        return try await BusHarness(virtual: 1, arguments: ["--state-dir", home.path, "--worker", worker])
    }

    /// The names of the options that a worker was started with.
    private func options(of pid: Int32) -> Set<Substring> {
        let lines = (try? File.read("\(home.path)/options.\(pid)", limit: 1 << 20)) ?? []
        return Set(String(decoding: lines, as: UTF8.self).split(separator: "\n").map { $0.prefix { $0 != "=" } })
    }

    @Test func `a worker that dies between the stages ends the photo, and not the next one`() async throws {
        let bus = try await bus()
        let (client, ears) = (try client(bus), try PhotoEars(bus))
        let burst: [String: JSONValue] = ["burst": 100, "interval": 100]
        try client.start("photo.capture", ["device": "cam0", "settings": settings("burst", burst)])
        try ears.next("willCapturePhoto", of: "burst")
        kill(try worker(bus, "cam0"), SIGKILL)
        guard case .failure(let error) = try client.reply().result else { throw TestingError("it was answered") }
        #expect(error.reason == .workerCrashed)
        let end = try ears.next("didFinishCapture", of: "burst")
        #expect(end["error"]?["data"]?["reason"] == "workerCrashed")
        let next = try client.call("photo.capture", ["device": "cam0"], within: 30)
        let path = try #require(next["photos"]?[0]?["path"]?.string)
        #expect(access(path, F_OK) == 0)
        // What it was storing is whole, or gone.
        let library = try CaptureLibrary("\(home.path)/library")
        let day = try #require(path.split(separator: "/").dropLast().last)
        try await eventually {
            var entries: [LibraryEntry?] = []
            try library.forEachStamp { id, _ in entries.append(try? library.entry(id)) }
            let entered = Set(entries.compactMap { $0?.path.split(separator: "/").last.map(String.init) })
            return try entries.allSatisfy { $0?.state == .finished }
                && names(in: "\(home.path)/library/\(day)") == entered
        }
        try await bus.stop()
    }

    @Test func `a worker that dies while another is not ready yet is named as the reason`() async throws {
        let bus = try await bus(2)
        let client = try client(bus)
        let reader = try FrameReader(bus, "cam0", "native")
        _ = try reader.next()
        try self.client(bus).call("fault.inject", ["device": "cam1", "fault": "stall", "milliseconds": 20_000])
        try client.start("photo.capture", ["devices": ["cam0", "cam1"]])
        // So many frames are enough for the first to be ready.
        for _ in 0..<30 { _ = try reader.next() }
        kill(try worker(bus, "cam0"), SIGKILL)
        guard case .failure(let error) = try client.reply(within: 30).result else {
            throw TestingError("it was answered")
        }
        #expect(error.reason == .workerCrashed && error.data["device"] == "cam0", "\(error)")
        try await bus.stop()
    }

    /// Of cam0, which has been set for a bracket that takes a while.
    private func workerWithinBracket(_ bus: BusHarness, _ client: RawClient) throws -> Int32 {
        let ears = try PhotoEars(bus)
        let steps: [String: JSONValue] = ["bracket": ["exposureBias": .array((0..<16).map { .integer($0 % 2) })]]
        try client.start("photo.capture", ["device": "cam0", "settings": settings("bracket", steps)])
        try ears.next("willCapturePhoto", of: "bracket")
        return try worker(bus, "cam0")
    }

    @Test func `a worker that dies within a bracket leaves the next one what is to be put back`() async throws {
        let bus = try await noting()
        let client = try client(bus)
        let former = try workerWithinBracket(bus, client)
        kill(former, SIGKILL)
        #expect(throws: BusError.self) { try client.reply().result.get() }
        try await eventually {
            guard let pid = try bus.workerPID("cam0"), pid != former else { return false }
            return options(of: pid).contains("--stand-in")
        }
        _ = try client.call("photo.capture", ["device": "cam0"], within: 30)
        // What was put back is not handed on any more.
        let second = try worker(bus, "cam0")
        kill(second, SIGKILL)
        try await eventually {
            guard let pid = try bus.workerPID("cam0"), pid != second else { return false }
            return options(of: pid).contains("--runtime-dir") && !options(of: pid).contains("--stand-in")
        }
        try await bus.stop()
    }

    @Test func `photo settings are reverted after the bus and its worker died`() async throws {
        let bus = try await noting()
        let client = try client(bus)
        let former = try workerWithinBracket(bus, client)
        // It is not to see that the bus is gone.
        kill(former, SIGSTOP)
        try await bus.killCoordinator()
        kill(former, SIGKILL)
        try await bus.startCoordinator()
        try await eventually {
            guard let pid = try bus.workerPID("cam0"), pid != former else { return false }
            return options(of: pid).contains("--stand-in")
        }
        _ = try self.client(bus).call("photo.capture", ["device": "cam0"], within: 30)
        try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
        // What was put back is known as that.
        try await eventually {
            try JSONValue(parsing: File.read(bus.directory.stateFile, limit: 1 << 20))["standIns"] == nil
        }
        try await bus.stop()
    }

    @Test func `a waiting photo is cancelled, also at the end of its client`() async throws {
        let bus = try await bus()
        let (client, ears) = (try client(bus), try PhotoEars(bus))
        let pid = try worker(bus, "cam0")
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        try client.start("photo.capture", ["device": "cam0", "settings": settings("one")], key: "one")
        try client.start("photo.capture", ["device": "cam0", "settings": settings("two")], key: "two")
        let program = try bus.start(
            "camerabus", ["call", "photo.capture", #"{"device":"cam0","settings":{"uniqueID":"three"}}"#])
        try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 2 }
        #expect(try self.client(bus).call("bus.cancel", ["key": "two"])["cancelled"] == true)
        guard case .failure(let error) = try client.reply().result else { throw TestingError("it was answered") }
        #expect(error.reason == .cancelled)
        #expect(PhotoEars.names(try ears.all(of: ["two"])["two"]) == ["didFinishCapture"])
        program.process.send(SIGKILL)
        let end = try ears.next("didFinishCapture", of: "three")
        #expect(end["error"]?["data"]?["reason"] == "cancelled" && end["photos"] == 0)
        kill(pid, SIGCONT)
        #expect(try client.reply(within: 20).result.get()["uniqueID"] == "one")
        try await bus.stop()
    }

    @Test func `a client that dies during a bracket leaves the exposure unchanged`() async throws {
        let bus = try await bus()
        let (client, ears) = (try client(bus), try PhotoEars(bus))
        func exposure() throws -> [JSONValue?] {
            let controls = try client.call("device.get", ["device": "cam0"])["device"]?["controls"]
            return ["exposureMode", "exposureTargetBias"].map { controls?[$0] }
        }
        let before = try exposure()
        let program = try bus.start(
            "camerabus",
            [
                "call", "photo.capture",
                #"{"device":"cam0","settings":{"uniqueID":"bracket","bracket":{"exposureBias":[-2,0,2]}}}"#,
            ])
        try ears.next("willBeginCapture", of: "bracket")
        program.process.send(SIGKILL)
        try ears.next("didFinishCapture", of: "bracket")
        try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
        #expect(try exposure() == before)
        // And is free for whoever comes.
        try client.call("device.set", ["device": "cam0", "controls": ["exposureTargetBias": 0]])
        try await bus.stop()
    }

    @Test func `what is not taken when the bus ends is given up`() async throws {
        let bus = try await bus()
        let client = try client(bus)
        let pid = try worker(bus, "cam0")
        kill(pid, SIGSTOP)
        for id in ["one", "two"] {
            try client.start("photo.capture", ["device": "cam0", "settings": settings(id)])
        }
        try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 1 }
        try self.client(bus).call("bus.shutdown")
        guard case .failure(let error) = try client.reply().result else { throw TestingError("it was answered") }
        #expect(error.reason == .shuttingDown)
        kill(pid, SIGCONT)
        try await bus.waitForEnd()
        try await bus.stop()
    }
}
