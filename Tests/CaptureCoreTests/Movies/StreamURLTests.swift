import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite struct StreamURLTests {
    @Test(
        "a URL is read as every reader reads it",
        arguments: [
            ("rtsp://media.example/", "rtsp://media.example"),
            ("RTSP://Belt:s3cret@Media.Example:554//live/belt?token=1", "rtsp://media.example/live/belt"),
            ("rtsp://a:8554/x%20y", "rtsp://a:8554/x%20y"),
            ("rtmps://[2001:DB8::1]/live", "rtmps://[2001:db8::1]/live"),
            ("srt://a:9000?streamid=publish:belt&passphrase=secretsecret&mode=caller", "srt://a:9000"),
        ])
    func shown(_ text: String, _ shown: String) throws {
        let url = try #require(StreamURL(text))
        #expect(url.shown == shown)
        #expect(StreamURL(url.text) == url, "\(url.text)")
        #expect(!shown.contains("secret") && !shown.contains("s3cret"))
    }

    @Test func `nothing of it is lost`() {
        #expect(StreamURL("rtsp://u:p@a:1/b/c?d=e&f")?.text == "rtsp://u:p@a:1/b/c?d=e&f")
    }

    @Test(
        "what readers may take differently is none",
        arguments: [
            "", "rtsp:", "rtsp://", "rtsp:///live", "http://a/b", "file:///etc/passwd", "tcp://a:1", "/tmp/a.mp4",
            "rtsp://a/../b", "rtsp://a/./b", "rtsp://a/%2e%2E/b", "rtsp://a/b%2fc", "rtsp://a/b%252fc", "rtsp://a/b\\c",
            "rtsp://a b/c", "rtsp://a/b\nc", "rtsp://a/b#c", "rtsp://a@b@c/d", "rtsp://@a/b", "rtsp://a:0/b",
            "rtsp://a:99999/b", "rtsp://a:/b", "rtsp://a:+1/b", "rtsp://::1/b", "rtsp://[]/b", "rtsp://ä/b",
            "rtsp://a%00/b", "srt://a", "srt://a:1?mode=listener", "srt://a:1?adapter=0.0.0.0", "srt://a:1?mode",
            "srt://a:1?transtype=file", "concat:rtsp://a/b", "rtsp://a/" + String(repeating: "x", count: 1100),
        ])
    func none(_ text: String) { #expect(StreamURL(text) == nil) }

    @Test(
        "a destination is for all that is below it, by whole segments",
        arguments: [
            ("rtsp://media.example/live", true), ("rtsp://u:p@MEDIA.example:554/live/belt/1?x", true),
            ("rtsp://media.example/live/", true), ("rtsp://media.example/lively", false),
            ("rtsp://media.example/", false), ("rtsp://media.example:8554/live", false),
            ("rtsps://media.example/live", false), ("rtsp://media.example.evil/live", false),
            ("rtsp://media.example@evil/live", false), ("rtsp://media.example/LIVE", false),
        ])
    func within(_ text: String, _ isAllowed: Bool) throws {
        let destination = try #require(StreamURL("rtsp://media.example/live"))
        let place = MoviePlace(library: nil, roots: [], destinations: [destination])
        #expect(try #require(StreamURL(text)).isWithin(destination) == isAllowed)
        if isAllowed {
            #expect(try place.stream(text).shown.hasPrefix("rtsp://media.example/live"))
        } else {
            let error = try #require(throws: BusError.self) { try place.stream(text) }
            #expect(error.reason == .pathNotAllowed && error.data["roots"] == ["rtsp://media.example/live"])
            #expect(!error.message.contains("u:p"))
        }
    }

    @Test func `none is allowed unless the configuration says so`() throws {
        let error = try #require(throws: BusError.self) {
            try MoviePlace(library: "/v", roots: ["/"]).stream("rtsp://u:secret@a/b")
        }
        #expect(error.reason == .pathNotAllowed && error.data["roots"] == [] && !error.message.contains("secret"))
    }

    @Test(
        "what is of a file is not of a server",
        arguments: [
            ("path", "/a.mp4"), ("name", "a.mp4"), ("rig", "r"), ("fileType", "mp4"), ("fragmentInterval", 1000),
            ("frameRate", 25), ("maxFileSize", 1000), ("minFreeDiskSpace", 0), ("continueAfterCrash", true),
            ("codec", "raw"), ("codec", "ffv1"),
        ] as [(String, JSONValue)])
    func notOfServer(_ name: String, _ value: JSONValue) throws {
        let error = try #require(throws: BusError.self) { try MovieOptions.checkIsOfStream([name: value], .rtsp) }
        #expect(error.data["path"]?.string == name)
    }

    @Test func `what hears of a movie for a server learns no password`() throws {
        let url = try #require(StreamURL("rtsp://u:secret@a/live/belt"))
        let request = MovieRequest(
            movie: "m1", path: "", url: url, camera: .init(id: "cam0", uniqueID: "v", name: "Camera"), fileType: .mp4,
            owner: LockHolder(uid: 1000, gid: 1000, pid: 42, startTime: 7, name: "probe"))
        #expect(try MovieRequest(json: JSONValue(parsing: request.json.description)) == request)
        var movie = RunningMovie(request)
        #expect(movie.json["url"] == "rtsp://a/live/belt" && movie.json["path"] == .null)
        #expect(movie.started["url"] == "rtsp://a/live/belt" && movie.started["fileType"] == .null)
        _ = movie.finish(movie.crash())
        #expect(!"\(movie.json) \(movie.started) \(movie.place)".contains("secret"))
        #expect(movie.json["end"]?["path"] == .null && movie.json["name"] == "belt")
    }
}
