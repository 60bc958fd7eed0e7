import JSON
import NIOHTTP1
import Testing

@testable import Gateway

extension WebRequest {
    /// - Parameter lines: the headers, each as `Name: value`.
    init(_ target: String, _ lines: [String] = [], method: HTTPMethod = .GET) throws(Refusal) {
        var headers = HTTPHeaders()
        for line in lines {
            let parts = line.split(separator: ": ", maxSplits: 1, omittingEmptySubsequences: false)
            headers.add(name: String(parts[0]), value: String(parts[1]))
        }
        try self.init(HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: headers))
    }
}

/// Heads of requests, as browsers, tools and others send them.
@Suite struct WebRequestTests {
    private func status(_ target: String, _ lines: [String] = []) -> Int? {
        do throws(WebRequest.Refusal) {
            _ = try WebRequest(target, lines)
            return nil
        } catch {
            return error.status
        }
    }

    @Test func `a head is read as it is meant`() throws {
        let request = try WebRequest(
            "/camera/cam%30.jpg?width=320&name=a+b%26c",
            ["Host: localhost:7380", "Cookie: a=1; camerabus=xyz", "Connection: keep-alive", "Accept: a", "accept: b"])
        #expect(request.method == "GET" && request.path == ["camera", "cam0.jpg"])
        #expect(request.query == ["width": "320", "name": "a b&c"])
        #expect(request["host"] == "localhost:7380" && request.cookie("camerabus") == "xyz")
        #expect(request.cookie("b") == nil && request.says("connection", "keep-alive") && request["accept"] == "a, b")
        let root = try WebRequest("/")
        #expect(root.path.isEmpty && root.keepsAlive)
        #expect(try !WebRequest("/", ["Connection: close"]).keepsAlive)
        // What follows such a wish is not read as requests.
        #expect(try !WebRequest("/", ["Connection: Upgrade", "Upgrade: h2c"]).keepsAlive)
    }

    @Test(arguments: [
        "/../etc/passwd", "/page/../../x", "/page/%2e%2e/x", "/page/..%2f..%2fetc", "/page/a%00b", "/page/%ff",
        "/page/%2",
        "/page/./x", "page", "http://elsewhere/", "*",
    ])
    func `a path that leads somewhere else is none`(target: String) { #expect(status(target) == 400) }

    @Test(arguments: ["Host", "Origin", "Authorization"])
    func `what can be taken in two ways is refused`(header: String) {
        #expect(status("/", ["\(header): a", "\(header.lowercased()): b"]) == 400)
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
