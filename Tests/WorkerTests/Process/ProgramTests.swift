import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing

@Suite("camerabus-worker as a program", .serialized, .timeLimit(.minutes(5)))
struct ProgramTests {
    private func start(_ room: Room, _ arguments: [String] = []) throws -> ChildProcess {
        try ChildProcess(
            program: Programs.path("camerabus-worker"),
            arguments: ["--device", "cam0", "--runtime-dir", room.directory.path, "--log-level", "error"]
                + (arguments.isEmpty ? ["--virtual", "0"] : arguments))
    }

    private func ending(_ child: ChildProcess) throws -> ChildProcess.Ending {
        var item = pollfd(fd: child.process.rawValue, events: Int16(POLLIN), revents: 0)
        guard poll(&item, 1, 20_000) == 1, let ending = child.reap() else {
            child.process.send(SIGKILL)
            throw TimedOut(what: "the end of the worker")
        }
        return ending
    }

    @Test("SIGTERM ends it in order, and no socket is left")
    func terminate() throws {
        let room = try Room()
        let coordinator = try FakeCoordinator(room.directory)
        let child = try start(room)
        _ = try coordinator.wait("hello") { if case .hello = $0 { true } else { false } }
        let subscriber = try Subscriber(room.directory.mediaSocket("cam0"), ["frame/cam0/native/"], highWaterMark: 10)
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
        child.process.send(SIGTERM)
        #expect(try ending(child) == .exited(0))
        #expect(access(room.directory.mediaSocket("cam0"), F_OK) != 0)
    }

    @Test("a second one for the same device ends at once and says so by its status")
    func second() throws {
        let room = try Room()
        let coordinator = try FakeCoordinator(room.directory)
        let first = try start(room)
        _ = try coordinator.wait("hello") { if case .hello = $0 { true } else { false } }
        #expect(try ending(try start(room)) == .exited(75))
        #expect(!first.process.hasEnded)
        first.process.send(SIGTERM)
        #expect(try ending(first) == .exited(0))
    }

    @Test("after a crash the next one takes over the device and its socket")
    func crash() throws {
        let room = try Room()
        let coordinator = try FakeCoordinator(room.directory)
        let first = try start(room)
        _ = try coordinator.wait("hello") { if case .hello = $0 { true } else { false } }
        try coordinator.send(.fault(["fault": "crash"]))
        guard case .signalled = try ending(first) else {
            Issue.record("it did not crash")
            return
        }
        let second = try start(room)
        _ = try coordinator.wait("hello") { if case .hello = $0 { true } else { false } }
        let subscriber = try Subscriber(room.directory.mediaSocket("cam0"), ["frame/cam0/native/"], highWaterMark: 10)
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
        second.process.send(SIGTERM)
        #expect(try ending(second) == .exited(0))
    }

    @Test(
        "options that make no sense are refused with 64",
        arguments: [
            ["--virtual", "-1"], ["--virtual", "0", "--camera", "{}", "--unique-id", "x"],
            ["--camera", "{}", "--unique-id", "x"],
            ["--virtual", "0", "--log-level", "loud"], ["--virtual", "0", "--configuration", "{"],
            ["--virtual", "0", "--group", "no-such-group"],
        ])
    func usage(_ arguments: [String]) throws {
        let room = try Room()
        #expect(try ending(try start(room, arguments)) == .exited(64))
    }

    @Test("arguments that can't be read are refused with 64", arguments: ["99", "0"])
    func unreadable(_ descriptor: String) throws {
        let room = try Room()
        #expect(try ending(try start(room, ["--virtual", "0", "--arguments-at=\(descriptor)"])) == .exited(64))
    }

    @Test("--list prints what there is, also where there are no cameras")
    func list() throws {
        let output = try ProcessOutput(program: Programs.path("camerabus-worker"), arguments: ["--list"])
        var item = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
        while poll(&item, 1, 20_000) == 1, !output.read() {}
        #expect(output.isComplete)
        let list = try output.bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
        #expect(list["cameras"]?.array != nil && list["unreadable"]?.array != nil)
    }
}
