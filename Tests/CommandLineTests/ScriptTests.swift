import CameraBusTesting
import Glibc
import LinuxIO
import Testing

/// `make run` and `make install`, as far as they go without building.
@Suite(.timeLimit(.minutes(5))) struct ScriptTests {
    private let scratch: TemporaryDirectory
    private let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

    init() throws { scratch = try TemporaryDirectory() }

    /// What `deploy/run` prints in a tree with a `camerabusd` that only tells how it is called.
    private func run(_ arguments: [String], _ environment: [String: String]) async throws -> ProgramResult {
        for directory in ["deploy", ".build", ".build/release"] { mkdir("\(scratch.path)/\(directory)", 0o700) }
        let script = try File.read("\(root)/deploy/run", limit: 1 << 20)
        try File.replace("\(scratch.path)/deploy/run", with: script, mode: 0o700)
        let daemon = "#!/bin/sh\nprintf '<%s>' \"$@\"\n"
        try File.replace("\(scratch.path)/.build/release/camerabusd", with: Array(daemon.utf8), mode: 0o700)
        return try await RunningProgram(
            "bash", ["\(scratch.path)/deploy/run"] + arguments,
            environment: environment.merging(["PATH": "/usr/bin:/bin"]) { $1 }, scratch: scratch
        ).end()
    }

    @Test(
        arguments: [
            ([], ["CAMERABUS_RUNTIME_DIR": "/tmp/one"], "/tmp/one"),
            (["--runtime-dir", "/tmp/two"], ["CAMERABUS_RUNTIME_DIR": "/tmp/one"], "/tmp/two"),
            (["--runtime-dir=/tmp/a b'c", "--virtual", "3"], [:], "/tmp/a b'c"),
        ] as [([String], [String: String], String)])
    func `the lines that run prints lead to the bus`(
        arguments: [String], environment: [String: String], directory: String
    ) async throws {
        let result = try await run(arguments, environment)
        #expect(result.status == 0, "\(result)")
        let called = (["--state-dir", "\(directory)/state"] + arguments).map { "<\($0)>" }.joined()
        #expect(result.standardOutput.hasSuffix(called))
        // A shell that takes them finds the directory, the programs and the Python package.
        let lines = result.standardOutput.split(separator: "\n").filter { $0.hasPrefix("    export ") }
        #expect(lines.count == 2)
        let shell = try await RunningProgram(
            "sh",
            ["-c", lines.joined(separator: "\n") + "\necho \"$CAMERABUS_RUNTIME_DIR|${PATH%%:*}|$PYTHONPATH\""],
            environment: ["PATH": "/usr/bin:/bin"], scratch: scratch
        ).end()
        let path = scratch.path
        #expect(shell.standardOutput == "\(directory)|\(path)/.build/release|\(path)/Protocol/python\n", "\(shell)")
    }

    @Test func `a runtime directory that can't be one is refused before anything is promised`() async throws {
        let result = try await run(["--runtime-dir", "here"], [:])
        #expect(result.status == 2 && result.standardOutput == "" && result.standardError.contains("'here'"))
    }

    @Test(arguments: ["install", "install-python", "uninstall"])
    func `an empty prefix is refused`(target: String) async throws {
        let arguments = ["-n", "-C", root, target, "PREFIX=", "DESTDIR=\(scratch.path)/to", "PYTHON=python3"]
        let result = try await RunningProgram(
            "make", arguments, environment: ["PATH": "/usr/bin:/bin"], scratch: scratch
        ).end()
        #expect(result.status == 2 && result.standardError.contains("PREFIX is empty"), "\(result)")
    }
}
