import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

/// `camerabus tokens`: files only, no bus. That a gateway lets them in is a test of processes.
@Suite(.timeLimit(.minutes(5))) struct TokensCommandTests {
    private let scratch: TemporaryDirectory
    private var file: String { "\(scratch.path)/web-tokens" }

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ arguments: String...) async throws -> ProgramResult {
        let environment = ["PATH": "/usr/bin:/bin", "CAMERABUS_TOKENS": file]
        return try await RunningProgram(
            "camerabus", ["tokens"] + arguments, environment: environment, scratch: scratch
        ).end()
    }

    private func text() throws -> String { String(decoding: try File.read(file, limit: 10_000), as: UTF8.self) }

    @Test func `a token is made, listed without itself, changed and revoked`() async throws {
        let made = try await run("new", "Ada", "--role", "control")
        let token = String(made.standardOutput.prefix { $0 != "\n" })
        #expect(made.status == 0 && GuestList.Credential.token.isWellFormed(token), "\(made)")
        // What is to be written into gateway.toml for it.
        #expect(made.standardError.contains("tokens = \"\(file)\""), "\(made)")
        #expect(try text() == "control \(token) Ada\n")
        #expect(File.isSecret(file), "others may read it")
        let other = try await run("new", "Grace", "--json")
        let json = try JSONValue(parsing: other.standardOutput)
        #expect(json["name"] == "Grace" && json["role"] == "view" && json["token"]?.string != token, "\(other)")
        #expect(other.standardError == "", "it is there already")

        let listed = try await run()
        #expect(listed.standardOutput.contains("Ada") && !listed.standardOutput.contains(token))
        let all = try JSONValue(parsing: try await run("list", "--json").standardOutput)
        #expect(all["tokens"] == [["name": "Ada", "role": "control"], ["name": "Grace", "role": "view"]])
        #expect(try await run("role", "Ada", "view").status == 0)
        #expect(try text().hasPrefix("view \(token) Ada\n"))
        let unknown = try await run("revoke", "Eve")
        #expect(unknown.status == 1 && unknown.standardError.contains("There are: Ada, Grace."), "\(unknown)")
        let twice = try await run("new", "Ada")
        #expect(twice.status == 1 && twice.standardOutput == "", "\(twice)")
        #expect(try await run("revoke", "Ada").status == 0)
        #expect(try await run("revoke", "Grace").status == 0)
        #expect(try text() == "")
    }

    @Test func `mode, comments and a file that is wrong stay, and no token is told`() async throws {
        try File.replace(file, with: Array("# mine\n".utf8), mode: 0o600)
        #expect(try await run("new", "Ada").status == 0)
        var status = stat()
        #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try text().hasPrefix("# mine\nview "))
        let wrong = "view 0123456789abcdef+ Ada\n"
        try File.replace(file, with: Array(wrong.utf8), mode: 0o600)
        let refused = try await run("revoke", "Ada")
        #expect(refused.status == 1 && refused.standardError.contains("line 1"), "\(refused)")
        #expect(!refused.standardError.contains("0123456789abcdef"))
        #expect(try text() == wrong)
    }
}
