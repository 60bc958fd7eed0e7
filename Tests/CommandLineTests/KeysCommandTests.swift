import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

/// `camerabus keys`: files only, no bus.
@Suite(.timeLimit(.minutes(5))) struct KeysCommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ arguments: String...) async throws -> ProgramResult {
        let environment = ["PATH": "/usr/bin:/bin", "CAMERABUS_KEYS": "\(scratch.path)/keys"]
        return try await RunningProgram(
            "camerabus", ["keys"] + arguments, environment: environment, scratch: scratch
        ).end()
    }

    private func mode(_ path: String) -> UInt32? {
        var status = stat()
        return stat(path, &status) == 0 ? UInt32(status.st_mode & 0o777) : nil
    }

    @Test func `a key is made, added, listed, changed and revoked`() async throws {
        let file = "\(scratch.path)/laptop.key"
        let made = try await run("new", "laptop", "-o", file)
        #expect(made.status == 0, "\(made)")
        let key = String(made.standardOutput.prefix { $0 != "\n" })
        #expect(RemoteCredential.key.isWellFormed(key) && made.standardError.contains("keys add laptop '\(key)'"))
        let found = KeyFile.keys(in: String(decoding: try File.read(file, limit: 1 << 16), as: UTF8.self))
        #expect(found.publicKey == key && found.secretKey.map(RemoteCredential.key.isWellFormed) == true)
        #expect(mode(file) == 0o600)
        // Whoever has it already keeps it.
        #expect(try await run("new", "laptop", "-o", file).status == 1)

        #expect(try await run("add", "laptop", key).status == 0)
        #expect(try await run("add", "desk", file).status == 1)
        let listed = try JSONValue(parsing: try await run("list", "--json").standardOutput)
        #expect(listed["keys"] == [["name": "laptop", "role": "view", "key": .string(key)]])
        #expect(try await run("role", "laptop", "control").status == 0)
        #expect(try await run().standardOutput.contains("control"))
        #expect(try await run("revoke", "desk").standardError.contains("Known: laptop."))
        #expect(try await run("revoke", "laptop").status == 0)
        #expect(try await run("list").standardOutput == "")
    }

    @Test func `a key is added from whatever file it comes in, and a file that is none is told as such`() async throws {
        let made = try await run("new", "laptop", "-o", "\(scratch.path)/laptop.key")
        // What is to be typed gives the role that the guides give.
        #expect(made.standardError.contains("' --role control\n"), "\(made)")
        let key = String(made.standardOutput.prefix { $0 != "\n" })
        for (name, text) in [("bare", made.standardOutput), ("line", "public \(key)\n")] {
            let file = "\(scratch.path)/\(name).pub"
            try File.replace(file, with: Array(text.utf8), mode: 0o600)
            #expect(try await run("add", name, file).status == 0)
            #expect(try await run("server", "--file", file).standardOutput == "\(key)\n")
            #expect(try await run("revoke", name).status == 0)
        }
        let missing = try await run("add", "x", "\(scratch.path)/missing.pub")
        #expect(missing.status == 2 && missing.standardError.contains("No such file or directory"), "\(missing)")
        try File.replace("\(scratch.path)/other", with: Array("x\n".utf8), mode: 0o600)
        let other = try await run("add", "x", "\(scratch.path)/other")
        #expect(other.status == 2 && other.standardError.contains("contains no public key"), "\(other)")
        let server = try await run("server", "--file", "\(scratch.path)/missing.pub")
        #expect(server.status == 1 && server.standardError.contains("at its first start"), "\(server)")
    }

    @Test func `of those who change it at the same time nobody undoes what another did`() async throws {
        let names = (0..<8).map { "machine \($0)" }
        let environment = ["PATH": "/usr/bin:/bin", "CAMERABUS_KEYS": "\(scratch.path)/keys"]
        let programs = try names.enumerated().map { number, name in
            try RunningProgram(
                "camerabus", ["keys", "add", name, String(repeating: "\(number)", count: 40)], environment: environment,
                scratch: scratch)
        }
        for program in programs { #expect(try await program.end().status == 0) }
        let listed = try JSONValue(parsing: try await run("list", "--json").standardOutput)["keys"]?.array
        #expect(listed?.compactMap { $0["name"]?.string }.sorted() == names)
    }

    @Test func `a file that is wrong stays as it is`() async throws {
        try File.replace("\(scratch.path)/keys", with: Array("owner x y\n".utf8), mode: 0o640)
        let result = try await run("add", "laptop", String(repeating: "0", count: 40))
        #expect(result.status == 1 && result.standardError.contains("line 1"), "\(result)")
        #expect(try File.read("\(scratch.path)/keys", limit: 100) == Array("owner x y\n".utf8))
    }

    @Test func `mode and comments stay`() async throws {
        try File.replace("\(scratch.path)/keys", with: Array("# mine\n".utf8), mode: 0o640)
        #expect(try await run("add", "laptop", String(repeating: "0", count: 40), "--role", "admin").status == 0)
        #expect(mode("\(scratch.path)/keys") == 0o640)
        let text = String(decoding: try File.read("\(scratch.path)/keys", limit: 1000), as: UTF8.self)
        #expect(text == "# mine\nadmin \(String(repeating: "0", count: 40)) laptop\n")
    }
}
