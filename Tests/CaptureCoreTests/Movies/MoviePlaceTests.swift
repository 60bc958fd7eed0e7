import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite struct MoviePlaceTests {
    private let place = MoviePlace(library: "/var/lib/library/", roots: ["/srv/movies"])

    private func target(
        name: String? = nil, path: String? = nil, _ fileType: MovieFileType? = nil, isOwn: Bool = false
    ) throws -> MoviePlace.Target {
        try place.target(
            name: name, path: path, fileType: fileType, day: "2026-11-22", newName: "cam0-083000-5e0c", isOwn: isOwn)
    }

    private func refusal(
        name: String? = nil, path: String? = nil, _ fileType: MovieFileType? = nil, isOwn: Bool = false
    ) throws -> BusError {
        try #require(throws: BusError.self) { try target(name: name, path: path, fileType, isOwn: isOwn) }
    }

    @Test func `a name is a file in the library's folder of the day`() throws {
        #expect(try target(name: "belt.mp4").path == "/var/lib/library/2026-11-22/belt.mp4")
        #expect(try target(name: "belt.mp4").root == "/var/lib/library")
        #expect(try target().path == "/var/lib/library/2026-11-22/cam0-083000-5e0c.mp4")
        #expect(try target(name: "Förderband 1").path.hasSuffix("/Förderband 1.mp4"))
    }

    @Test(
        "the kind of file is what its name ends in, else what is asked for, else MP4",
        arguments: [
            ("belt.MKV", nil, MovieFileType.mkv, "belt.MKV"), ("belt", nil, .mp4, "belt.mp4"),
            ("belt.1", .mov, .mov, "belt.1.mov"), ("belt.mov", .mov, .mov, "belt.mov"),
        ] as [(String, MovieFileType?, MovieFileType, String)])
    func ending(_ name: String, _ wanted: MovieFileType?, _ given: MovieFileType, _ file: String) throws {
        let target = try target(name: name, wanted)
        #expect(target.fileType == given)
        #expect(target.path == "/var/lib/library/2026-11-22/\(file)")
    }

    @Test func `a name that ends otherwise than what is asked for is refused`() throws {
        #expect(try refusal(name: "belt.mov", .mp4).data["path"] == "fileType")
    }

    @Test("a name that another kind of media has is refused", arguments: ["x.wav", "belt.AVI", "a.b.jpg"])
    func foreign(_ name: String) throws {
        for type in [nil, MovieFileType.mkv] {
            let error = try refusal(name: name, type)
            #expect(error.data["path"] == "name" && error.message.contains(".mp4, .mov or .mkv"))
        }
        #expect(try refusal(path: "/srv/movies/\(name)").data["path"] == "path")
        #expect(
            try refusal(path: "/etc/\(name)").reason == .invalidParams, "before it is said that it may not be there")
        #expect(try target(name: "belt-3.wave").path.hasSuffix("/belt-3.wave.mp4"))
    }

    @Test(
        "what leads out of the folder, or hides, is no name",
        arguments: [
            "../belt.mp4", "a/b.mp4", ".belt.mp4", "..", "a\u{0}b", "a\nb", "a/\u{301}b.mp4", ".\u{301}b.mp4",
            String(repeating: "x", count: 201),
        ])
    func noName(_ name: String) throws { #expect(try refusal(name: name).data["path"] == "name") }

    @Test(
        "a path in an allowed folder is taken",
        arguments: [
            ("/srv/movies/a.mp4", "/srv/movies/a.mp4"), ("/srv//movies/./day/a.mp4", "/srv/movies/day/a.mp4"),
            ("/var/lib/library/a.mkv", "/var/lib/library/a.mkv"),
        ])
    func path(_ path: String, _ taken: String) throws {
        #expect(try target(path: path).path == taken)
        #expect(try target(path: path).root != nil)
    }

    @Test(
        "a path elsewhere is for the bus's own user alone",
        arguments: ["/etc/a.mp4", "/srv/moviesX/a.mp4", "/srv/movies.mp4", "/var/lib/a.mp4"])
    func elsewhere(_ path: String) throws {
        let error = try refusal(path: path)
        #expect(error.reason == .pathNotAllowed)
        #expect(error.data["roots"] == ["/var/lib/library", "/srv/movies"])
        #expect(try target(path: path, isOwn: true).path == path)
        #expect(try target(path: path, isOwn: true).root == nil)
    }

    @Test(
        "what is no file's absolute path is none, whoever asks",
        arguments: [
            "a.mp4", "/srv/movies/../../etc/a.mp4", "/srv/movies/", "/", "", "/srv/movies/a\u{1b}.mp4",
            // With the mark behind it, a '/' is no character of its own.
            "/srv/movies/../\u{301}a.mp4", "/srv/movies/../\u{301}d/a.mp4", "/srv/movies/..\u{200d}/a.mp4",
        ])
    func noPath(_ path: String) throws {
        #expect(try refusal(path: path, isOwn: true).data["path"] == "path")
    }

    @Test func `without a library a path is needed`() throws {
        let place = MoviePlace(library: nil, roots: [])
        let error = try #require(throws: BusError.self) {
            try place.target(name: "a.mp4", path: nil, fileType: nil, day: "d", newName: "n", isOwn: true)
        }
        #expect(error.data["path"] == "path")
        let refused = try #require(throws: BusError.self) {
            try place.target(name: nil, path: "/a.mp4", fileType: nil, day: "d", newName: "n", isOwn: false)
        }
        #expect(refused.data["roots"] == [])
    }

    @Test func `files that belong together have names beside one another`() throws {
        #expect(MoviePlace.marked("/a.b/belt.mp4", "cam0") == "/a.b/belt-cam0.mp4")
        #expect(MoviePlace.marked("/a.b/belt", "cam0") == "/a.b/belt-cam0")
        #expect(MoviePlace.next("/v/belt.mp4", part: 1) == "/v/belt-2.mp4")
        #expect(MoviePlace.next("/v/belt-2.mp4", part: 2) == "/v/belt-3.mp4")
        #expect(MoviePlace.next("/v/belt-2.mp4", part: 1) == "/v/belt-2-2.mp4")
    }
}
