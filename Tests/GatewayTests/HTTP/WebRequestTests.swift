import JSON
import Testing

@testable import Gateway

/// Heads of requests, as browsers, tools and others send them.
@Suite struct WebRequestTests {
    private func parse(_ text: String) throws(WebRequest.Refusal) -> WebRequest {
        try WebRequest(parsing: text.utf8)
    }

    private func status(_ text: String) -> Int? {
        do throws(WebRequest.Refusal) {
            _ = try parse(text)
            return nil
        } catch {
            return error.status
        }
    }

    @Test func `a head is read as it is meant`() throws {
        let request = try parse(
            "GET /camera/cam%30.jpg?width=320&name=a+b%26c HTTP/1.1\r\nHost: localhost:7380\r\nCookie: a=1; "
                + "camerabus=xyz\r\n"
                + "Connection: keep-alive, Upgrade\r\n\r\n")
        #expect(request.method == "GET" && request.path == ["camera", "cam0.jpg"])
        #expect(request.query == ["width": "320", "name": "a b&c"])
        #expect(request["host"] == "localhost:7380" && request.cookie("camerabus") == "xyz")
        #expect(request.cookie("b") == nil && request.says("connection", "upgrade") && request.keepsAlive)
        #expect(try parse("GET / HTTP/1.1\r\n\r\n").path.isEmpty)
        #expect(try !parse("GET / HTTP/1.0\r\n\r\n").keepsAlive)
        #expect(try !parse("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").keepsAlive)
    }

    @Test(arguments: [
        "/../etc/passwd", "/page/../../x", "/page/%2e%2e/x", "/page/..%2f..%2fetc", "/page/a%00b", "/page/%ff",
        "/page/%2",
        "/page/./x", "page", "http://elsewhere/", "*",
    ])
    func `a path that leads somewhere else is none`(target: String) {
        #expect(status("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n") == 400)
    }

    @Test(arguments: [
        ("GET /\r\n\r\n", 400), ("GET / HTTP/2.0\r\n\r\n", 505), ("G T / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400), ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nA: \u{1}\r\n\r\n", 400),
    ])
    func `what can be taken in two ways is refused`(head: String, expected: Int) {
        #expect(status(head) == expected)
    }

    @Test func `there are so many headers at most, and bodies of known length`() throws {
        let many = (0...64).map { "A\($0): b\r\n" }.joined()
        #expect(status("GET / HTTP/1.1\r\n\(many)\r\n") == 431)
        func body(_ line: String) -> Result<Int, WebRequest.Refusal> {
            Result { () throws(WebRequest.Refusal) in
                try parse("POST /login HTTP/1.1\r\n\(line)\r\n\r\n").bodyBytes(maximum: 100)
            }
        }
        #expect((try? body("A: b").get()) == 0 && (try? body("Content-Length: 100").get()) == 100)
        for line in [
            "Content-Length: 101", "Content-Length: -1", "Content-Length: 99999999999999999999",
            "Transfer-Encoding: chunked",
        ] {
            #expect((try? body(line).get()) == nil)
        }
    }

    @Test func `a head ends with its empty line, wherever it is cut`() {
        let head = Array("GET / HTTP/1.1\r\nA: b\r\n\r\n".utf8)
        for count in 0..<head.count { #expect(WebRequest.end(in: head.prefix(count)) == nil) }
        for start in 0..<head.count { #expect(WebRequest.end(in: head + [1, 2], from: start) == head.count) }
    }

    @Test(
        arguments: [
            (nil, ByteRange.all), ("bytes=0-9", .part(0..<10)), ("bytes=5-", .part(5..<100)),
            ("bytes=-10", .part(90..<100)),
            ("bytes=-200", .part(0..<100)), ("bytes=90-1000", .part(90..<100)), ("bytes=100-", .none),
            ("bytes=-0", .none),
            ("bytes=9-5", .all), ("bytes=0-1,3-4", .all), ("bytes=a-b", .all), ("lines=1-2", .all), ("bytes=-", .all),
            ("bytes=99999999999999999999-", .all),
        ] as [(String?, ByteRange)])
    func `a part of a file is the part that is there`(header: String?, expected: ByteRange) {
        #expect(ByteRange(header, of: 100) == expected)
    }

    @Test func `a file of an entry is found by what stands behind the last slash, whatever that is followed by`() {
        let entry: JSONValue = ["path": "/l/\u{301}a.mp4", "sideCar": "\u{301}b", "cover": "/l/c.jpg"]
        func place(_ name: String) -> [String]? {
            LibraryFile.place(named: name, of: entry).map { [$0.member, $0.path] }
        }
        #expect(place("\u{301}a.mp4") == ["path", "/l/\u{301}a.mp4"])
        #expect(place("c.jpg") == ["cover", "/l/c.jpg"])
        #expect(place("\u{301}b") == nil && place("l") == nil)
    }
}
