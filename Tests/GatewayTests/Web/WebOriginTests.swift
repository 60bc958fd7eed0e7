import BusProtocol
import NIOHTTP1
import Testing

@testable import Gateway

/// Pages of other origins that may use the web side, and those that may not.
@Suite struct WebOriginTests {
    private let busAccess = "Origin: https://desk.example.org"
    private let elsewhere = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"]

    private func access() throws -> WebAuthorization {
        let hosts = HostCheck(
            listen: try #require(WebAddress("127.0.0.1:7380")), hosts: [], origins: ["https://desk.example.org"])
        return WebAuthorization(hosts, localRole: .control, localUsers: nil)
    }

    private func request(_ lines: [String]) throws -> WebRequest {
        try WebRequest("/metrics", ["Host: localhost:7380"] + lines)
    }

    private func isIn(_ lines: [String]) -> Bool { (try? access().check(request(lines))) != nil }

    private func head(_ lines: [String], _ response: WebResponse = WebResponse(200, "ok")) throws -> HTTPResponseHead {
        let asked = try access().marked(try request(lines))
        return response.head(bodyBytes: 3, keepsAlive: true, for: asked.pageOrigin)
    }

    @Test func `a page of a configured origin is let in from another site, by its origin alone`() {
        #expect(isIn([busAccess] + elsewhere))
        #expect(isIn(["Origin: HTTPS://DESK.example.org"] + elsewhere))
        #expect(!isIn(elsewhere))
        for origin in [
            "http://localhost:7380", "https://desk.example.org.evil.org", "http://desk.example.org", "null",
        ] {
            #expect(!isIn(["Origin: \(origin)"] + elsewhere), "\(origin)")
        }
    }

    @Test func `it may read the answers, and no other page may`() throws {
        let answer = try head([busAccess] + elsewhere)
        for (name, value) in [
            ("Access-Control-Allow-Origin", "https://desk.example.org"), ("Vary", "Origin"),
            ("Cross-Origin-Resource-Policy", "cross-origin"),
        ] {
            #expect(answer.headers[name] == [value], "\(name)")
        }
        for lines in [[], elsewhere, ["Origin: http://localhost:7380"], ["Origin: https://evil.org"]] {
            let answer = try head(lines)
            #expect(answer.headers["Cross-Origin-Resource-Policy"] == ["same-origin"])
            #expect(!answer.headers.contains { $0.name.hasPrefix("Access-Control-") })
        }
        #expect(!answer.headers.contains(name: "Access-Control-Allow-Credentials"))
    }

    @Test func `a browser is told that it may show a token`() throws {
        let answer = try head([busAccess] + elsewhere, WebResponse.mayAsk)
        #expect(answer.status == .noContent && !answer.headers.contains(name: "Content-Length"))
        #expect(answer.headers["Access-Control-Allow-Headers"] == ["Authorization, Range"])
    }

    @Test(arguments: [
        ("::ffff:192.0.2.7", "192.0.2.7"), ("192.0.2.7", "192.0.2.7"), ("::1", "::1"), ("2001:db8::7", "2001:db8::7"),
        ("::ffff:0:1", "::ffff:0:1"), ("::ffff:127.0.0.1", "127.0.0.1"),
    ])
    func `an address of IPv4 is the same one by either kind of socket`(address: String, expected: String) {
        #expect(WebAuthorization.plain(address) == expected)
    }

    @Test func `limits count a network of IPv6 as one address`() {
        #expect(WebAuthorization.network("2001:db8::1:2:3:4") == WebAuthorization.network("2001:db8::5"))
        #expect(WebAuthorization.network("2001:db8::5") != WebAuthorization.network("2001:db8:0:1::5"))
        #expect(WebAuthorization.network("192.0.2.7") == "192.0.2.7")
    }

    @Test func `so many answers to invalid tokens of an address wait at a time`() {
        let failedLogins = FailedLoginLimit()
        #expect((0..<FailedLoginLimit.maximum).allSatisfy { _ in failedLogins.enter("192.0.2.1") })
        #expect(!failedLogins.enter("192.0.2.1") && failedLogins.enter("192.0.2.2"))
        failedLogins.leave("192.0.2.1")
        #expect(failedLogins.enter("192.0.2.1") && !failedLogins.enter("192.0.2.1"))
    }
}
