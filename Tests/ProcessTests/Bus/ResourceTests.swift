import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Programs that get too little of what the machine has.
    @Suite(.timeLimit(.minutes(5))) struct Resources {
        private let folder: TemporaryDirectory
        init() throws { folder = try TemporaryDirectory() }

        /// Runs a program under a limit of the shell's `ulimit`.
        private func run(_ limit: String, _ program: String, _ arguments: [String]) async throws -> ProgramResult {
            let running = try RunningProgram(
                "/bin/sh", ["-c", "ulimit \(limit); exec \"$0\" \"$@\"", Programs.path(program)] + arguments,
                environment: CurrentProcess.environment(), scratch: folder)
            return try await running.end()
        }

        @Test(arguments: [24, 40, 64, 511])
        func `a bus with too few descriptors does not start, and says how many it needs`(_ count: Int) async throws {
            let result = try await run("-n \(count)", "camerabusd", ["--runtime-dir", "\(folder.path)/bus"])
            #expect(result.status == 1)
            #expect(result.standardError.contains("may open \(count) files") && result.standardError.contains("512"))
            #expect(result.standardError.split(separator: "\n").count == 1, "\(result.standardError)")
        }

        @Test(arguments: [300, 420, 460])
        func `a recorder with too little address space does not trap, and its end says why`(_ mebibytes: Int)
            async throws
        {
            let script = """
                #!/bin/sh
                ulimit -v \(mebibytes * 1024)
                exec \(Programs.path("camerabus-recorder")) "$@"
                """
            try File.replace("\(folder.path)/recorder", with: Array(script.utf8), mode: 0o700)
            let bus = try await BusHarness(
                virtual: 1, arguments: ["--state-dir", folder.path, "--recorder", "\(folder.path)/recorder"])
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.start("movie.start", ["device": "cam0"])
            guard case .failure(let error) = try client.reply(within: 60).result else {
                throw TestingError("it was started")
            }
            #expect(error.reason != .invalidParams && !bus.log.contains("Fatal error"), "\(error)")
            if error.reason == .workerCrashed { #expect(error.message.contains("status")) }
            try await bus.stop()
        }

        @Test func `so do its gateway and its workers`() async throws {
            let gateway = try await run("-n 64", "camerabus-gateway", ["--runtime-dir", "\(folder.path)/bus"])
            #expect(gateway.status == 78 && gateway.standardError.contains("512"), "\(gateway)")
            mkdir("\(folder.path)/bus", 0o700)
            mkdir("\(folder.path)/bus/internal", 0o700)
            let worker = try await run(
                "-n 64", "camerabus-worker", ["--device=cam0", "--virtual=0", "--runtime-dir=\(folder.path)/bus"])
            #expect(worker.status != 0 && worker.standardError.contains("128"), "\(worker)")
        }
    }
}
