import BusProtocol
import Glibc
public import JSON
import LinuxIO

/// Another user than the one that the bus runs as, with a group that may connect to it. Programs are run as that user
/// by setpriv, which needs root.
public struct OtherUser: Sendable {
    public let uid: UInt32
    public let gid: UInt32

    /// Two users that are nobody's, of one group: their numbers need no entry in the user database.
    public static let first = OtherUser(uid: 64_117, gid: group?.gid ?? 65534)
    public static let second = OtherUser(uid: 64_118, gid: group?.gid ?? 65534)

    /// The group that nobody is in, and is there on every machine, by whichever name.
    public static let group: (name: String, gid: UInt32)? = {
        for name in ["nogroup", "nobody"] {
            if let gid = CurrentProcess.groupID(named: name) { return (name, gid) }
        }
        return nil
    }()

    /// Why programs can't be run as another user here; nil: they can.
    public static let obstacle: String? = {
        guard CurrentProcess.uid == 0 else { return "only root can run programs as another user" }
        guard group != nil else { return "there is no group 'nogroup' or 'nobody'" }
        guard let isRun = ends("camerabus", ["--version"]) else { return "there is no setpriv (util-linux)" }
        guard isRun else {
            return "another user can't run \(Programs.path("camerabus")): its folders are closed to others"
        }
        guard ends(python, ["-c", "import zmq"]) == true else { return "another user's \(python) has no pyzmq" }
        return nil
    }()

    private static func ends(_ program: String, _ arguments: [String]) -> Bool? {
        let child = try? ChildProcess(
            program: "setpriv", arguments: first.arguments(program, arguments),
            environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin"], searchesPath: true)
        guard let child else { return nil }
        return waitUntilReadable(child.process.rawValue, by: .usual) && child.reap() == .exited(0)
    }

    /// The Python of the machine: that of somebody's home is closed to others.
    public static let python = "/usr/bin/python3"

    public static var isPossible: Bool { obstacle == nil }

    /// Of the configuration of a bus that these may connect to.
    public static var configuration: String { "[bus]\ngroup = \"\(group?.name ?? "")\"\n" }

    /// What setpriv is to be called with.
    public func arguments(_ program: String, _ arguments: [String]) -> [String] {
        ["--reuid", "\(uid)", "--regid", "\(gid)", "--clear-groups", Programs.path(program)] + arguments
    }
}

extension BusHarness {
    /// Starts a program beside the bus as another user.
    public func start(
        _ program: String, _ arguments: [String], as user: OtherUser, environment: [String: String] = [:]
    ) throws -> RunningProgram {
        try start("setpriv", user.arguments(program, arguments), environment: environment)
    }

    /// Runs a program to its end as another user.
    public func run(
        _ program: String, _ arguments: [String], as user: OtherUser, environment: [String: String] = [:],
        by deadline: Deadline = .usual
    ) async throws -> ProgramResult {
        try await run("setpriv", user.arguments(program, arguments), environment: environment, by: deadline)
    }

    /// Has another user's process make requests, one after the other.
    ///
    /// - Parameter staying: the process stays until the end of the test, with all that is its own.
    /// - Returns: the replies, and the process.
    public func ask(
        as user: OtherUser, _ requests: [(method: String, params: JSONValue)], staying: Bool = false
    ) async throws -> (replies: [JSONValue], program: RunningProgram) {
        let script = """
            import json, signal, sys
            import zmq
            context = zmq.Context()
            socket = context.socket(zmq.DEALER)
            socket.connect(f"ipc://{sys.argv[1]}")
            for number, request in enumerate(json.loads(sys.argv[3])):
                socket.send_multipart([b"", json.dumps({"jsonrpc": "2.0", "id": number, **request}).encode()])
                print(socket.recv_multipart()[-1].decode(), flush=True)
            if sys.argv[2] == "stays":
                signal.pause()
            context.destroy(linger=0)
            """
        let list = JSONValue.array(requests.map { ["method": .string($0.method), "params": $0.params] })
        let arguments = ["-c", script, directory.commandSocket, staying ? "stays" : "goes", list.description]
        let program = try start(OtherUser.python, arguments, as: user)
        func lines() -> [Substring] { program.standardOutput.split(separator: "\n") }
        try await eventually { lines().count >= requests.count || program.process.hasEnded }
        let found = lines()
        guard found.count == requests.count else { throw TestingError("not all is answered: \(program.standardError)") }
        return (try found.map { try JSONValue(parsing: Array($0.utf8)) }, program)
    }
}
