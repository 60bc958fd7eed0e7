import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Permission as a second user meets it.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct Permission
    {
        /// The ways on which pictures and sound leave a worker.
        enum Lane: String, Sendable {
            case frame, buffer, ring
            case audio, level

            static let ofPictures: [Lane] = [.frame, .buffer, .ring]
        }

        static let user = OtherUser.first
        /// What somebody who may looks at meanwhile: so small that the sockets hold what comes while he does something
        /// else.
        static let witnessed = "gray:64x36@20"

        func watch(
            _ bus: BusHarness, _ lane: Lane, as user: OtherUser, _ rendition: String, of device: String = "cam0"
        ) throws -> RunningProgram {
            let arguments = ["-c", Self.watcher, lane.rawValue, bus.directory.path, rendition, device]
            return try bus.start(OtherUser.python, arguments, as: user)
        }

        func lines(_ program: RunningProgram, _ word: String) -> [Substring] {
            program.standardOutput.split(separator: "\n").filter { $0.hasPrefix(word) }
        }

        /// The reader's next frames, so many of them.
        func read(_ reader: FrameReader, _ count: Int, _ body: (FrameReader.Frame) -> Void = { _ in }) throws {
            for _ in 0..<count { body(try reader.next()) }
        }

        func bus() async throws -> BusHarness {
            try await BusHarness(virtual: 1, configuration: OtherUser.configuration)
        }

        func call(_ bus: BusHarness, _ method: String, _ params: JSONValue = [:]) throws -> JSONValue {
            try RawClient(path: bus.directory.commandSocket).call(method, params)
        }

        func isAsked(_ bus: BusHarness, _ user: OtherUser) async throws {
            try await bus.wait(for: "state/authorization/\(user.uid)/") { $0?["asked"] == ["video"] }
        }

        func allow(_ bus: BusHarness, _ user: OtherUser, once: Bool = false) async throws {
            let result = try await bus.run(
                "camerabus", ["allow", "\(user.uid)", "video"] + (once ? ["--once"] : []))
            try #require(result.status == 0, "\(result)")
        }

        func deny(_ bus: BusHarness, _ user: OtherUser) async throws {
            let result = try await bus.run("camerabus", ["deny", "\(user.uid)", "video"])
            try #require(result.status == 0, "\(result)")
        }
    }
}
