import BusProtocol
import FoundationEssentials
import NIOHTTP1
import Settings
import Testing

@testable import Gateway

/// Who may come in over HTTP, and as whom.
@Suite struct WebAuthorizationTests {
    private let token = "0123456789abcdef"
    private let here = Peer(address: "127.0.0.1", user: 1000)
    private let there = Peer(address: "192.168.1.9", user: nil)

    /// The other end of a connection, and whose it is.
    struct Peer {
        var address: String
        var user: UInt32?
    }

    private func access(
        _ listen: String = "127.0.0.1:7380", local: Request.Principal.Role? = .control,
        users: Set<UInt32>? = nil
    ) throws -> WebAuthorization {
        let hosts = HostCheck(
            listen: try #require(WebAddress(listen)), hosts: ["rig.example.org"], origins: ["https://desk.example.org"])
        let access = WebAuthorization(hosts, localRole: local, localUsers: users)
        access.tokens = WebTokenTable(parsing: "# who\nview \(token) The laptop\n")
        return access
    }

    private func request(_ lines: String...) throws -> WebRequest {
        try WebRequest("/bus", lines)
    }

    private func isIn(_ access: WebAuthorization, _ request: WebRequest) -> Bool { (try? access.check(request)) != nil }

    @Test(arguments: [
        ("localhost", true), ("LOCALHOST:80", true), ("127.0.0.1:7380", true), ("[::1]:7380", true), ("[::1]", true),
        ("192.168.1.5:7380", true), ("rig.example.org", true), ("rig.example.org:443", true),
        ("evil.example.org", false),
        ("localhost.evil.org", false), ("127.0.0.1.evil.org:7380", false), ("", false), ("10.0.0.1", false),
    ])
    func `only names of this server lead to it`(host: String, isOurs: Bool) throws {
        #expect(isIn(try access("192.168.1.5:7380"), try request("Host: \(host)")) == isOurs)
    }

    @Test func `pages of other origins may not use it`() throws {
        let access = try access()
        #expect(isIn(access, try request("Host: localhost:7380", "Origin: http://localhost:7380")))
        #expect(isIn(access, try request("Host: localhost:7380", "Origin: https://desk.example.org")))
        for origin in [
            "http://localhost", "http://localhost:80", "null", "http://evil.org", "http://localhost:7380.evil.org",
        ] {
            #expect(!isIn(access, try request("Host: localhost:7380", "Origin: \(origin)")), "\(origin)")
        }
        #expect(!isIn(access, try request("Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")))
        let elsewhere = ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]
        for (destination, isAllowed) in [(nil, true), ("document", true), ("iframe", false), ("object", false)] {
            let headers = elsewhere + (destination.map { ["Sec-Fetch-Dest: \($0)"] } ?? [])
            #expect(isIn(access, try WebRequest("/bus", headers)) == isAllowed, "\(destination ?? "none")")
        }
        #expect(!isIn(access, try request("Accept: */*")))
    }

    @Test func `what is kept of tokens are no tokens, and another for each`() throws {
        let remoteUsers = WebTokenTable(parsing: "view \(token) The laptop\ncontrol fedcba9876543210 Ada\n").remoteUsers
        #expect(remoteUsers.map(\.name) == ["The laptop", "Ada"] && remoteUsers.map(\.role) == [.view, .control])
        #expect(Set(remoteUsers.map(\.key)).count == 2)
        for remoteUser in remoteUsers {
            var kept = RemoteUserList()
            try kept.add(remoteUser)
            #expect(try RemoteUserList(parsing: kept.text).entries == [remoteUser] && !kept.text.contains(token))
        }
    }

    @Test func `a local user needs no token, and a remote user does`() throws {
        let access = try access()
        let local = try #require(access.visitor(try request("Host: localhost"), from: here))
        #expect(local.principal == Request.Principal(name: "web", role: .control))
        #expect(access.visitor(try request("Host: localhost"), from: there) == nil)
        // A proxy at this machine brings them.
        #expect(access.visitor(try request("Host: rig.example.org"), from: here) == nil)
        #expect(access.visitor(try request("Host: localhost", "X-Forwarded-For: 1.2.3.4"), from: here) == nil)
        let session = try #require(access.login(with: token))
        for line in ["Authorization: Bearer \(token)", "Cookie: camerabus=\(session)"] {
            let visitor = access.visitor(try request("Host: localhost", line), from: there)
            #expect(visitor?.principal == Request.Principal(name: "web/The laptop", role: .view))
        }
        // A cookie shows that somebody logged in, and is not the token.
        #expect(access.visitor(try request("Host: localhost", "Cookie: camerabus=\(token)"), from: there) == nil)
        // One that is wrong is no better than none, also at this machine.
        #expect(access.visitor(try request("Host: localhost", "Authorization: Bearer x"), from: here) == nil)
        #expect(access.visitor(try request("Host: localhost", "Authorization: Basic x"), from: here) == nil)
        #expect(try self.access(local: nil).visitor(try request("Host: localhost"), from: here) == nil)
    }

    @Test func `a session ends with the token, and when the user logs out`() throws {
        let access = try access()
        let (first, second) = (try #require(access.login(with: token)), try #require(access.login(with: token)))
        func isIn(_ session: String) throws -> Bool {
            access.visitor(try request("Host: localhost", "Cookie: camerabus=\(session)"), from: there) != nil
        }
        #expect(first != second && access.login(with: "0123456789abcdee") == nil)
        access.logout(first)
        #expect(try !isIn(first))
        #expect(try isIn(second))
        // The name alone is not enough: it has another token.
        access.tokens = WebTokenTable(parsing: "view 0123456789abcdee The laptop\n")
        #expect(try !isIn(second))
    }

    @Test func `a session does not return with the line of its token, but with a file that can be read again`() throws {
        let access = try access()
        let line = "view \(token) The laptop\n"
        func isIn(_ session: String) throws -> Bool {
            access.visitor(try request("Host: localhost", "Cookie: camerabus=\(session)"), from: there) != nil
        }
        let kept = try #require(access.login(with: token))
        access.suspendTokens()
        #expect(try !isIn(kept) && access.login(with: token) == nil)
        access.tokens = WebTokenTable(parsing: "control \(token) The laptop\n")
        #expect(try isIn(kept))
        // Without the line, also where another one is wrong; with the line twice; and with another token.
        for text in ["", "view short Ada\n", line + line, "view 0123456789abcdee The laptop\n"] {
            let session = try #require(access.login(with: token))
            access.tokens = WebTokenTable(parsing: text)
            access.tokens = WebTokenTable(parsing: line)
            #expect(try !isIn(session) && access.login(with: token) != nil, "\(text)")
        }
        #expect(try !isIn(kept))
    }

    @Test func `sessions have an end, and a token has a number of them`() {
        let sessions = LoginSessions()
        let end = Int64(LoginSessions.seconds) * 1_000_000_000
        let first = sessions.begin(for: "a", at: 0)
        let other = sessions.begin(for: "b", at: 0)
        #expect(sessions.token(of: first, at: end - 1) == "a" && sessions.token(of: first, at: end) == nil)
        for moment in 1...16 { _ = sessions.begin(for: "a", at: Int64(moment)) }
        #expect(sessions.token(of: first, at: 20) == nil && sessions.token(of: other, at: 20) == "b")
    }

    @Test(arguments: [
        ("/camera/cam0.jpg", "GET", true), ("/camera/cam0.mjpg", "GET", true), ("/metrics", "HEAD", true),
        ("/metrics", "POST", false), ("/", "GET", false), ("/bus", "GET", false), ("/library/a/b.jpg", "GET", false),
    ])
    func `programs bring a token as a password for pictures and numbers, and a browser's page does not`(
        target: String, method: String, isTaken: Bool
    ) throws {
        let access = try access()
        func isIn(_ pair: String, _ more: String...) throws -> Bool {
            let password = "Authorization: Basic \(Data(pair.utf8).base64EncodedString())"
            let request = try WebRequest(
                target, ["Host: rig.example.org", password] + more, method: HTTPMethod(rawValue: method))
            return access.visitor(request, from: there) != nil
        }
        #expect(try isIn("The laptop:\(token)") == isTaken)
        for pair in ["Somebody:\(token)", "The laptop:x", ":\(token)", "x"] { #expect(try !isIn(pair), "\(pair)") }
        #expect(try !isIn("The laptop:\(token)", "Sec-Fetch-Mode: no-cors"))
    }

    @Test func `without a word about it, not everybody at this machine may`() throws {
        let access = try access(users: [0, 1000])
        let asked = try request("Host: localhost")
        #expect(access.visitor(asked, from: here)?.role == .control)
        for user in [1001, nil] as [UInt32?] {
            #expect(access.visitor(asked, from: Peer(address: "127.0.0.1", user: user)) == nil)
        }
        for line in ["Via: 1.1 proxy", "X-Forwarded-Proto: https", "X-Real-IP: 1.2.3.4", "Forwarded: for=1.2.3.4"] {
            #expect(access.visitor(try request("Host: localhost", line), from: here) == nil)
        }
        let configured = try GatewayConfiguration(toml: "[web]\nhosts = [\"rig\"]").web
        #expect(configured?.localRole == nil && configured?.letsAllHereIn == false)
        let said = try GatewayConfiguration(toml: "[web]\nhosts = [\"rig\"]\nrole = \"view\"").web
        #expect(said?.localRole == .view && said?.letsAllHereIn == true)
    }

    @Test func `whose a connection of this machine is, is looked up only when that decides`() throws {
        var lookUps = 0
        func isIn(_ access: WebAuthorization, _ lines: String..., from address: String = "127.0.0.1") throws -> Bool {
            access.visitor(try WebRequest("/bus", lines), from: address) {
                lookUps += 1
                return 1000
            } != nil
        }
        let access = try access(users: [1000])
        #expect(try isIn(access, "Host: localhost", "Authorization: Bearer \(token)"))
        #expect(try !isIn(access, "Host: localhost", "Authorization: Bearer x"))
        #expect(try !isIn(access, "Host: localhost", "Cookie: camerabus=x"))
        #expect(try !isIn(access, "Host: localhost", "X-Forwarded-For: 1.2.3.4"))
        #expect(try !isIn(access, "Host: rig.example.org"))
        #expect(try !isIn(access, "Host: localhost", from: "192.0.2.1"))
        #expect(try !isIn(self.access(local: nil, users: [1000]), "Host: localhost"))
        #expect(try isIn(self.access(), "Host: localhost"))
        #expect(lookUps == 0)
        #expect(try isIn(access, "Host: localhost") && lookUps == 1)
    }

    @Test(arguments: [
        ("view short a", [2]), ("view 0123456789abcdef", [2]), ("boss 0123456789abcdef a", [2]),
        ("view 0123456789abcde! a", [2]), ("view 0123456789abcdef web", [2]), ("view 0123456789abcdef web/a", [2]),
        ("view 0123456789abcdef a\nview 0123456789abcdeF a", [2, 3]),
        ("view 0123456789abcdef a\nadmin 0123456789abcdef b", [2, 3]),
    ])
    func `a line that is wrong, or is there twice, lets nobody in, and the others stay`(lines: String, wrong: [Int]) {
        let tokens = WebTokenTable(parsing: "control fedcba9876543210 Ada\n\(lines)\n\n# view 1123456789abcdef Eve\n")
        #expect(tokens.problems.map(\.line) == wrong)
        #expect(tokens.visitors == [WebTokenTable.Visitor(name: "Ada", role: .control)])
        #expect(tokens.visitor(of: "fedcba9876543210")?.name == "Ada" && tokens.visitor(of: "0123456789abcdef") == nil)
    }

    @Test(arguments: [
        ("127.0.0.1:7380", true, true), ("[::1]:80", true, true), ("*:7380", true, false), ("0.0.0.0:1", true, false),
        ("192.168.1.5:65535", true, false), ("localhost:7380", false, false), ("127.0.0.1", false, false),
        ("127.0.0.1:0", false, false), (":80", false, false), ("127.0.0.1:65536", false, false),
    ])
    func `it listens at addresses`(text: String, isOne: Bool, isLoopback: Bool) {
        let address = WebAddress(text)
        #expect((address != nil) == isOne && (address?.isLoopback ?? false) == isLoopback)
    }

    @Test func `the page is there without a configuration, and other machines need tokens`() throws {
        #expect(try GatewayConfiguration(toml: "").web == GatewayConfiguration.Web())
        #expect(GatewayConfiguration().web?.listen.description == "127.0.0.1:7380")
        // Who opens the door to other machines keeps the page, unless that is taken away by its name.
        let tcp = "[tcp]\nlisten = \"tcp://*:7350\"\n"
        #expect(try GatewayConfiguration(toml: tcp).web == GatewayConfiguration.Web())
        #expect(try GatewayConfiguration(toml: "\(tcp)[web]\nlisten = \"none\"").web == nil)
        let both = try GatewayConfiguration(
            toml: "[tcp]\nlisten = \"tcp://*:7350\"\n[web]\nlisten = \"*:80\"\ntokens = \"/etc/t\"\nrole = \"none\"")
        #expect(both.tcp != nil && both.web?.tokensPath == "/etc/t" && both.web?.localRole == nil)
        for text in [
            "listen = \"*:80\"", "listen = \"rig:80\"", "tokens = \"t\"", "role = \"boss\"", "origins = [\"desk\"]",
            "connections = 0", "port = 1",
        ] {
            #expect(throws: SettingsError.self) { try GatewayConfiguration(toml: "[web]\n\(text)") }
        }
    }
}

extension WebAuthorization {
    fileprivate func visitor(_ request: WebRequest, from peer: WebAuthorizationTests.Peer) -> Visitor? {
        visitor(request, from: peer.address) { peer.user }
    }
}
