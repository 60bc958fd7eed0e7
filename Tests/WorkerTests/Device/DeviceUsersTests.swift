import BusProtocol
import CameraBusTesting
import CaptureCore
import JSON
import LinuxIO
import Testing

@testable import BusServer
@testable import Worker

@Suite("Who uses a device", .serialized, .timeLimit(.minutes(5)))
struct DeviceUsersTests {
    private let bench = TestBench()

    @Test("subscribers are told with what they ask for, and go when they do")
    func subscribers() throws {
        let worker = try WorkerFixture(bench)
        let nobody = try worker.coordinator.order(.who).get()
        #expect(nobody == ["subscribers": [], "foreign": [], "complete": true])
        var reader: Subscriber? = try worker.subscriber(
            "frame/cam0/native/", "frame/cam0/jpeg:9999x9999/", "frame/cam1/native/", "heartbeat/")
        _ = try reader?.next { $0.topic == "frame/cam0/native/" }
        let users = try worker.coordinator.order(.who).get()
        #expect(
            users["subscribers"] == [
                [
                    "uid": JSONValue(CurrentProcess.uid), "pid": JSONValue(CurrentProcess.pid),
                    "name": .string(ProcessTable.name(of: CurrentProcess.pid) ?? ""),
                    "renditions": ["jpeg:9999x9999", "native"],
                ]
            ])
        reader = nil
        let deadline = Deadline.usual
        while try worker.coordinator.order(.who).get()["subscribers"] != [] { try #require(!deadline.hasPassed) }
    }

    @Test("a driver that is slow does not hold the answer up")
    func slowness() throws {
        let worker = try WorkerFixture(bench)
        bench.set { $0.heldControl = "gain" }
        defer { bench.release() }
        let change: JSONValue = ["device": "cam0", "controls": ["gain": 3]]
        _ = try worker.coordinator.order(
            .prepare(transaction: "t", change: change, path: "changes[0]", mode: .exact), fence: 1
        ).get()
        let number = try worker.coordinator.send(.apply(transaction: "t"), fence: 1)
        try bench.wait(forCall: "set gain")
        #expect(try worker.coordinator.order(.who).get()["complete"] == true)
        bench.release()
        // Only what comes after the other answer is still to be seen.
        _ = try worker.coordinator.wait("the change, after that") {
            if case .reply(number, .success) = $0 { true } else { false }
        }
    }

    @Test("a node that this process has open itself is not foreign; another's is")
    func foreign() throws {
        let loop = try Loop()
        let users = try DeviceUsers(loop)
        let own = try FileDescriptor(opening: "/dev/zero", 0)
        let other = try ChildProcess(program: "/bin/sleep", arguments: ["60"], standardInput: own.rawValue)
        defer {
            other.process.send(9)
            _ = other.reap()
        }
        var result: JSONValue?
        #expect(
            users.look(node: "/dev/zero", subscribers: []) {
                result = $0
                loop.stop()
            })
        loop.schedule(afterMilliseconds: 10_000) { loop.stop() }
        try loop.run()
        let pids = result?["foreign"]?.array?.compactMap { $0["pid"]?.integer } ?? []
        #expect(pids.contains(Int64(other.process.pid)) && !pids.contains(Int64(CurrentProcess.pid)))
    }

    @Test("too many who ask are refused, not kept")
    func bounded() throws {
        let loop = try Loop()
        let users = try DeviceUsers(loop)
        var answers = 0
        var taken = 0
        for _ in 0..<100 where users.look(node: nil, subscribers: [], { _ in answers += 1 }) { taken += 1 }
        #expect(taken == 8)
        loop.schedule(afterMilliseconds: 10_000) { loop.stop() }
        func stopWhenAnswered() {
            if answers == taken { return loop.stop() }
            loop.schedule(afterMilliseconds: 5) { stopWhenAnswered() }
        }
        stopWhenAnswered()
        try loop.run()
        #expect(answers == taken)
    }

    @Test("connections of one process are one subscriber, with a bounded number of renditions")
    func merging() {
        let peer = ConnectionGuard.Peer(uid: 5, pid: 7, startTime: 1)
        let topics = (10..<40).map { Array("frame/cam0/jpeg@\($0)/".utf8) }
        let users = DeviceUsers.subscribers(
            [(peer, Set(topics)), (peer, [Array("frame/cam0/bgr/".utf8)]), (peer, [Array("ack/1/".utf8)])],
            device: "cam0")
        #expect(users.count == 1 && users[0].renditions.count == 16 && users[0].renditions.first == "bgr")
    }

    @Test("who is subscribed to references and has the ring that they name is one reader")
    func readers() {
        let (one, other) = (
            ConnectionGuard.Peer(uid: 5, pid: 7, startTime: 1), ConnectionGuard.Peer(uid: 5, pid: 8, startTime: 1)
        )
        let count = DeviceUsers.readers(
            [
                (one, [Array("frame/cam0/bgr/".utf8), Array("buffer/cam0/bgr/".utf8), Array("ack/1/".utf8)]),
                (one, [Array("frame/cam0/bgr/".utf8), Array("frame/cam1/bgr/".utf8), Array("frame/".utf8)]),
                (other, [Array("buffer/cam0/native/".utf8), Array("buffer/cam0/gray/".utf8)]),
            ], readers: [(one, "bgr"), (one, "native"), (other, "native")], device: "cam0")
        // Two by frame/, two rings of the one, two references of the other.
        #expect(count == 6)
    }

    @Test("readers are counted by rendition, however it is spelled, and only of those that are made")
    func renditions() throws {
        let (one, other) = (
            ConnectionGuard.Peer(uid: 5, pid: 7, startTime: 1), ConnectionGuard.Peer(uid: 5, pid: 8, startTime: 1)
        )
        let (native, jpeg) = (Rendition(.native), try Rendition(parsing: "jpeg@10"))
        let counts = DeviceUsers.readers(
            of: [native, jpeg],
            [
                (one, [Array("frame/cam0/jpeg@10/".utf8), Array("buffer/cam0/native/".utf8), Array("ack/1/".utf8)]),
                (other, [Array("frame/cam0/jpeg@10.0;q=80/".utf8), Array("frame/cam0/gray/".utf8)]),
                (other, [Array("frame/cam1/native/".utf8), Array("frame/cam0/nonsense/".utf8)]),
            ], readers: [(one, "native"), (other, "native"), (other, "bgr")], device: "cam0")
        #expect(counts == [native: 2, jpeg: 2])
    }

    @Test("how many want what is told with the state")
    func counts() throws {
        let worker = try WorkerFixture(bench)
        var first: Subscriber? = try worker.subscriber("frame/cam0/native/")
        _ = try first?.next { $0.topic == "frame/cam0/native/" }
        let second = try worker.subscriber("frame/cam0/native/", "frame/cam0/jpeg@10.0;q=80/")
        _ = try second.next { $0.topic == "frame/cam0/native/" }
        try worker.coordinator.waitForStatus("both") {
            $0["subscribers"] == ["native": 2, "jpeg@10": 1]
        }
        first = nil
        try worker.coordinator.waitForStatus("one has left") {
            $0["subscribers"] == ["native": 1, "jpeg@10": 1]
        }
    }
}
