import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite("Takes, as they are kept")
struct TakeTableTests {
    private static func kept(_ id: String, uid: UInt32 = 1000, made: Int64 = 5) throws -> KeptTake {
        KeptTake(
            try Take(id: id, minDuration: 1000, maxDuration: 9000), name: "belt",
            owner: LockHolder(uid: uid, gid: 100, pid: 42, startTime: 7, name: "probe"), made: made,
            wish: ["device": "cam0", "microphone": .null], exportPreset: .size640x480,
            camera: .init(id: "cam0", uniqueID: "virtual-0", name: "Camera"))
    }

    private static func request() -> MovieRequest {
        MovieRequest(
            movie: "3f9c", path: "/v/belt-1.mp4", camera: .init(id: "cam0", uniqueID: "virtual-0", name: "Camera"),
            microphone: .init(id: "mic0", uniqueID: "virtual-mic-0", name: "Microphone"), fileType: .mp4,
            owner: LockHolder(uid: 1000, gid: 100, pid: 42, startTime: 7, name: "probe"))
    }

    private func again(_ table: TakeTable) throws -> TakeTable {
        try TakeTable(json: try JSONValue(parsing: table.json.description))
    }

    @Test("a take says on disk what it knows, and is read again")
    func roundTrip() throws {
        var table = TakeTable()
        try table.add(Self.kept("b", made: 6))
        try table.add(Self.kept("a"))
        #expect(try again(table) == table && table.takes.map(\.id) == ["a", "b"])
        var progress = MovieProgress(.recording)
        progress.video = ["codec": "h264", "width": 640, "height": 480]
        try table.change("a") { kept throws(BusError) in
            _ = try kept.take.record("one", path: "/v/belt-1.mp4")
            kept.learn(progress)
            _ = kept.take.progressed("one", to: 300)
        }
        let read = try again(table)
        #expect(read == table && read["a"]?.take.current?.id == "one" && read["a"]?.take.state == .recording)
        #expect(read["a"]?.json["segment"] == "one" && read["a"]?.json["total"] == 300)
        try table.change("a") { kept throws(BusError) in
            _ = kept.take.ended("one", duration: 8990, isKept: true, isFull: true)
        }
        #expect(try again(table) == table && again(table)["a"]?.take.remaining == 0)
        try table.change("a") { kept throws(BusError) in kept.isDiscarded = true }
        #expect(try again(table) == table && again(table)["a"]?.isDiscarded == true)
        table.remove("a")
        #expect(try again(table).takes.map(\.id) == ["b"])
    }

    @Test("a change that is refused changes nothing")
    func refusal() throws {
        var table = TakeTable()
        try table.add(Self.kept("a"))
        let before = table
        let refused = #expect(throws: BusError.self) {
            try table.change("a") { kept throws(BusError) in
                kept.nextPart = 9
                _ = try kept.take.pause()
            }
        }
        #expect(refused?.reason == .notRecording && table == before)
        #expect(throws: BusError.self) { try table.take("z") }
    }

    @Test("one user has so many takes, and all have so many")
    func limits() throws {
        var table = TakeTable()
        for number in 0..<TakeTable.maximumOfUser { try table.add(Self.kept("a\(number)")) }
        #expect(throws: BusError.self) { try table.add(Self.kept("b")) }
        for number in TakeTable.maximumOfUser..<TakeTable.maximumTakes {
            try table.add(Self.kept("c\(number)", uid: UInt32(number)))
        }
        let refused = #expect(throws: BusError.self) { try table.add(Self.kept("d", uid: 5)) }
        #expect(refused?.reason == .limitExceeded && refused?.data["maximum"] == 64)
    }

    @Test("a take that can't be right is left out, and a table that can't be is damaged")
    func damage() throws {
        var table = TakeTable()
        try table.add(Self.kept("a"))
        try table.add(Self.kept("b", made: 6))
        func change(_ path: [String], _ value: JSONValue, in json: JSONValue) -> JSONValue {
            guard let name = path.first, var members = json.object else { return value }
            members[name] = change(Array(path.dropFirst()), value, in: members[name] ?? [:])
            return .object(members)
        }
        for (path, value) in [(["version"], 2), (["takes"], 5)] as [([String], JSONValue)] {
            #expect(throws: StoredTableError.self, "\(path)") {
                try TakeTable(json: change(path, value, in: table.json))
            }
        }
        let wrong: [([String], JSONValue)] = [
            (["takes", "a"], 5), (["takes", "a", "owner"], 5), (["takes", "a", "nextPart"], 0),
            (["takes", "a", "nextPart"], 1_000_002),
            (["takes", "a", "take", "state"], "recording"), (["takes", "a", "take", "state"], "finished"),
            (["takes", "a", "take", "segments"], [["id": "x"]]), (["takes", "a", "take", "maxDuration"], 10),
            (["takes", "a", "exportPreset"], "1x1"),
        ]
        for (path, value) in wrong {
            let read = try TakeTable(json: change(path, value, in: table.json))
            #expect(read.takes.map(\.id) == ["b"] && read.leftOut.count == 1, "\(path)")
        }
        let read = try TakeTable(json: change(["takes", "A B"], [:], in: table.json))
        #expect(read.takes.map(\.id) == ["a", "b"] && read.leftOut == ["'A B' is no take's id"])
    }

    @Test("when all numbers were given, no segment is begun, and the take can still be read")
    func numbers() throws {
        var table = TakeTable()
        try table.add(Self.kept("a"))
        try table.change("a") { kept throws(BusError) in
            kept.nextPart = KeptTake.maximumPart
            try kept.record("one", path: "/v/belt-1000000.mp4")
            _ = kept.take.ended("one", duration: 100, isKept: true)
        }
        let read = try again(table)
        #expect(read == table && read["a"]?.take.segments.count == 1)
        let refused = #expect(throws: BusError.self) {
            try table.change("a") { kept throws(BusError) in try kept.record("two", path: "/v/belt.mp4") }
        }
        #expect(refused?.reason == .limitExceeded && refused?.data["limit"] == "segments" && read == table)
    }

    @Test("segments are like the first one")
    func shape() throws {
        var kept = try Self.kept("a")
        var first = Self.request()
        kept.shape(&first)
        #expect(first.take == "a" && first.part == 1 && first.startsWithSound && !first.video.isFitted)
        #expect(first.video.codec == .h264 && first.video.width == nil && first.audio.codec == .aac)
        #expect(first.limits.maxDuration == 9000)
        var progress = MovieProgress(.recording)
        progress.video = ["codec": "h264", "width": 640, "height": 480]
        progress.audio = ["codec": "aac", "rate": 44100, "channels": 1]
        kept.learn(progress)
        progress.video = ["codec": "h264", "width": 1280, "height": 720]
        kept.learn(progress)
        kept.nextPart = 2
        var second = Self.request()
        kept.shape(&second)
        #expect(second.part == 2 && second.video.isFitted && second.video.width == 640 && second.video.height == 480)
        #expect(second.audio.rate == 44100 && second.audio.channels == 1)
        var silent = Self.request()
        silent.microphone = nil
        kept.shape(&silent)
        #expect(!silent.startsWithSound && silent.audio.codec == nil)
    }

    @Test(
        "files end as they do",
        arguments: [("belt", "belt"), ("belt.mp4", "belt"), ("a.MP4", "a"), (".mp4", ".mp4"), ("b.mov", "b.mov")])
    func stems(_ name: String, _ stem: String) { #expect(KeptTake.stem(name) == stem) }
}
