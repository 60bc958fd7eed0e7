import CaptureCore
import Testing

@Suite struct LibraryNamesTests {
    @Test(
        arguments: [
            (0, "1970-01-01"), (-1, "1969-12-31"), (951_782_400, "2000-02-29"), (1_782_864_000, "2026-07-01"),
            (1_795_333_303, "2026-11-22"), (4_107_542_399, "2100-02-28"), (4_107_542_400, "2100-03-01"),
        ] as [(Int64, String)])
    func dayIsTheCalendars(_ seconds: Int64, _ day: String) {
        #expect(LibraryNames.day(seconds * 1_000_000_000) == day)
    }

    @Test func automaticNamesSayWhatAndWhen() {
        let time: Int64 = 1_795_333_303_999_999_999
        #expect(
            LibraryNames.automatic("front", id: "1a2b3c4d", madeAt: time, ending: "mp4") == "front-074143-1a2b3c4d.mp4")
        #expect(LibraryNames.path("/srv/library", "a.mp4", madeAt: time) == "/srv/library/2026-11-22/a.mp4")
    }

    @Test func aNameIsNoPath() {
        for name in ["", ".", "..", ".hidden", "a/b", "/etc/passwd", "a\0b", "a\nb", "\u{9B}31m", String(repeating: "ä", count: 101)] {
            #expect(LibraryNames.objection(to: name) != nil, "\(name)")
        }
        for name in ["walk.mp4", "Küche 3.mov", "a..b", "-", String(repeating: "a", count: 200)] {
            #expect(LibraryNames.objection(to: name) == nil, "\(name)")
        }
    }

    @Test func partsAndSideCarsLieBesideTheFile() {
        #expect(LibraryNames.part(2, of: "/a.b/walk.mp4") == "/a.b/walk-2.mp4")
        #expect(LibraryNames.part(3, of: "/a.b/walk") == "/a.b/walk-3")
        #expect(LibraryNames.sideCar(of: "/a/walk.long.mkv") == "/a/walk.long.frames.jsonl")
    }

    @Test func whatIsInsideIsBelowTheFolder() {
        #expect(LibraryNames.isInside("/srv/library/day/a.mp4", "/srv/library"))
        #expect(LibraryNames.isInside("/srv//library/a.mp4", "/srv/library/"))
        for path in ["/srv/library", "/srv/library2/a", "/srv/library/../a", "/srv/library/./a", "/other"] {
            #expect(!LibraryNames.isInside(path, "/srv/library"), "\(path)")
        }
    }
}
