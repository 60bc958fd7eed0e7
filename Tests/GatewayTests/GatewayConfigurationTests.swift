import BusProtocol
import LinuxIO
import Testing

@testable import Gateway

/// `gateway.toml`
@Suite struct GatewayConfigurationTests {
    @Test func `without the section nothing listens`() throws {
        let configuration = try GatewayConfiguration(toml: "[gateway]\nlog_level = \"debug\"\n")
        #expect(configuration.tcp == nil && configuration.logLevel == "debug")
    }

    @Test func `all of it is read`() throws {
        let text = """
            [tcp]
            listen = "tcp://10.0.0.1:7000"
            keys = "/tmp/keys"
            server_key = "/tmp/server.key"
            connections = 3
            connections_per_address = 2
            requests_per_second = 7
            reply_bytes = 8388608
            raw = false
            """
        let tcp = try #require(try GatewayConfiguration(toml: text).tcp)
        #expect(tcp.listen.description == "tcp://10.0.0.1:7000" && tcp.keysPath == "/tmp/keys")
        #expect(tcp.serverKeyPath == "/tmp/server.key" && tcp.connections == 3 && tcp.connectionsPerAddress == 2)
        #expect(tcp.requestsPerSecond == 7 && tcp.replyBytes == 8 << 20 && !tcp.allowsRaw)
    }

    @Test(arguments: [
        "[tcp]\n", "[tcp]\nlisten = \"rig\"\n", "[tcp]\nlisten = \"tcp://*:7350\"\nkeys = \"keys\"\n",
        "[tcp]\nlisten = \"tcp://*:7350\"\nconections = 1\n",
        "[tcp]\nlisten = \"tcp://*:7350\"\nreply_bytes = 8388607\n",
        "[gateway]\nlog_level = \"loud\"\n", "x", "[web]\nlisten = \"127.0.0.999:80\"", "[web]\nlisten = \"[zz]:80\"",
        "[web]\nlisten = \"[fe80::1%eth0]:80\"\ntokens = \"/t\"",
        "[tcp]\nlisten = \"tcp://10.0.0.999:7350\"", "[tcp]\nlisten = \"tcp://[zz]:7350\"",
    ])
    func `what is wrong is told`(_ text: String) {
        #expect(throws: (any Error).self) { try GatewayConfiguration(toml: text) }
    }

    @Test(arguments: [
        ("[web]\nlisten = \"none\"", 1), ("[web]\nhosts = [\"rig\"]", 1), ("", 0),
        ("[web]\nhosts = [\"rig\"]\nrole = \"view\"", 0),
        ("[tcp]\nlisten = \"tcp://rig:7350\"\n[web]\nlisten = \"none\"", 0),
        ("[web]\nhosts = [\"rig\"]\ntokens = \"/t\"", 0), ("[tcp]\nlisten = \"tcp://[fe80::1%eth0]:7350\"", 0),
    ])
    func `what can serve nobody is told`(text: String, warnings: Int) throws {
        #expect(try GatewayConfiguration(toml: text).warnings.count == warnings)
    }

    /// Every key stands in the file that is installed, with its default.
    @Test func `the commented file is the defaults`() throws {
        let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let bytes = try File.read("\(root)/deploy/gateway.toml", limit: 1 << 16)
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        #expect(try GatewayConfiguration(toml: lines.joined(separator: "\n")) == GatewayConfiguration())
        // With their marks taken away, the lines that are keys and sections.
        let bare = lines.map { $0.hasPrefix("# ") ? $0.dropFirst(2) : $0 }.filter { line in
            line.hasPrefix("[") || line.split(separator: " ").dropFirst().first == "="
        }
        var expected = GatewayConfiguration()
        expected.tcp = try GatewayConfiguration(toml: "[tcp]\nlisten = \"tcp://*:7350\"").tcp
        expected.tcp?.serverKeyPath = "/var/lib/camerabus-gateway/server.key"
        expected.web = GatewayConfiguration.Web()
        // Where keys are written that have no default, those have the file's examples.
        expected.web?.tokensPath = "/etc/camerabus/web-tokens"
        expected.web?.hosts = ["cameras.example.org"]
        expected.web?.origins = ["https://desk.example.org"]
        expected.web?.letsAllHereIn = true
        #expect(try GatewayConfiguration(toml: bare.joined(separator: "\n")) == expected)
    }
}
