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
        #expect(made.status == 0 && RemoteCredential.token.isWellFormed(token), "\(made)")
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
        #expect(unknown.status == 1 && unknown.standardError.contains("Known: Ada, Grace."), "\(unknown)")
        let twice = try await run("new", "Ada")
        #expect(twice.status == 1 && twice.standardOutput == "", "\(twice)")
        #expect(try await run("revoke", "Ada").status == 0)
        #expect(try await run("revoke", "Grace").status == 0)
        #expect(try text() == "")
    }

    private func mode() throws -> UInt32 {
        var status = stat()
        try #require(stat(file, &status) == 0)
        return UInt32(status.st_mode & 0o777)
    }

    @Test func `mode and comments stay`() async throws {
        try File.replace(file, with: Array("# mine\n".utf8), mode: 0o600)
        #expect(try await run("new", "Ada").status == 0)
        #expect(try mode() == 0o600)
        #expect(try text().hasPrefix("# mine\nview "))
    }

    @Test func `a line that is wrong hinders nobody else, and no token is told`() async throws {
        let wrong = "view 0123456789abcdef+ Eve\n"
        try File.replace(file, with: Array("\(wrong)view 0123456789abcdef Ada\n".utf8), mode: 0o600)
        let revoked = try await run("revoke", "Ada")
        #expect(revoked.status == 0 && revoked.standardError.contains("line 1"), "\(revoked)")
        #expect(!revoked.standardError.contains("0123456789abcdef"))
        #expect(try text() == wrong)
    }

    @Test func `a file that others may read gets no token, nor a link`() async throws {
        try File.replace(file, with: [], mode: 0o644)
        let open = try await run("new", "Ada")
        #expect(open.status == 1 && open.standardOutput == "" && open.standardError.contains("chmod 640"), "\(open)")
        #expect(try text() == "")
        let listed = try await run()
        #expect(listed.status == 0 && listed.standardError.contains("chmod 640"), "\(listed)")
        chmod(file, 0o600)
        rename(file, "\(file).real")
        symlink("\(file).real", file)
        let link = try await run("new", "Ada")
        #expect(link.status == 1 && link.standardError.contains("Name the file itself"), "\(link)")
    }

    @Test func `of two of one name neither counts, and a folder that is not there is told`() async throws {
        try File.replace(
            file, with: Array("view 0123456789abcdef Ada\nview fedcba9876543210 Ada\n".utf8), mode: 0o600)
        let role = try await run("role", "Ada", "control")
        #expect(role.status == 1 && role.standardError.contains("line 2 has the same name"), "\(role)")
        #expect(role.standardError.contains("remove it with 'revoke'"), "\(role)")
        #expect(try await run("revoke", "Ada").status == 0)
        #expect(try text() == "")
        let nowhere = try await run("new", "Ada", "--file", "\(scratch.path)/nowhere/tokens")
        #expect(nowhere.status == 1 && nowhere.standardError.contains("There is no folder"), "\(nowhere)")
    }

    @Test func `a token that could not be printed is none`() async throws {
        let full = try await RunningProgram(
            "sh", ["-c", "exec camerabus tokens new Ada >/dev/full"],
            environment: ["PATH": "\(Programs.directory):/usr/bin:/bin", "CAMERABUS_TOKENS": file],
            scratch: scratch
        ).end()
        #expect(full.status == 1, "\(full)")
        #expect(try text() == "")
    }
}
