import Testing

@testable import BusClient

/// Which frames are of one time, without a bus.
@Suite struct RealtimeMatcherTests {
    private struct Found: Equatable {
        /// Times by camera.
        var frames: [String: Int64]
        var missing: [String] = []
    }

    private func matched(
        _ names: [String], _ frames: [(name: String, time: Int64)], tolerance: Int64 = 5
    ) throws -> [Found] {
        var matcher = try #require(RealtimeMatcher<Int64>(names, tolerance: tolerance, patience: 1000))
        var found: [Found] = []
        for frame in frames {
            for match in matcher.receive(frame.name, at: frame.time, frame.time) {
                #expect(match.parts.first?.name == names.first && match.parts.first?.offset == 0)
                var times: [String: Int64] = [:]
                for part in match.parts { times[part.name] = part.element }
                found.append(Found(frames: times, missing: match.missing))
            }
        }
        return found
    }

    @Test func `the nearest is taken when no nearer one can come`() throws {
        let found = try matched(["a", "b"], [("b", 8), ("a", 10), ("b", 11), ("a", 20), ("b", 21)])
        #expect(found == [Found(frames: ["a": 10, "b": 11]), Found(frames: ["a": 20, "b": 21])])
    }

    @Test func `a slower camera's frame may be in two sets`() throws {
        let found = try matched(["a", "b"], [("a", 10), ("a", 13), ("b", 12), ("b", 30)])
        #expect(found.first == Found(frames: ["a": 10, "b": 12]))
        #expect(found.last == Found(frames: ["a": 13, "b": 12]))
    }

    @Test func `what is too far away is missing`() throws {
        let found = try matched(["a", "b"], [("a", 10), ("b", 16)])
        #expect(found == [Found(frames: ["a": 10], missing: ["b"])])
    }

    @Test func `a camera that gives nothing is waited for so long`() throws {
        let found = try matched(
            ["a", "b", "c"], [("a", 10), ("b", 10), ("a", 500), ("b", 501), ("a", 1011)])
        #expect(found == [Found(frames: ["a": 10, "b": 10], missing: ["c"])])
    }

    @Test func `a clock that is set back costs a set, and not all that follow`() throws {
        let ahead: Int64 = 1_000_000
        let found = try matched(
            ["a", "b"], [("a", ahead), ("b", ahead), ("a", 100), ("b", 101), ("a", 200), ("b", 201)])
        #expect(
            found == [
                Found(frames: ["a": ahead, "b": ahead]), Found(frames: ["a": 100], missing: ["b"]),
                Found(frames: ["a": 200, "b": 201]),
            ])
    }

    @Test func `times that can't be are no trap, and what waits is bounded`() throws {
        let (least, most) = (Int64.min, Int64.max)
        let found = try matched(["a", "b"], [("a", most), ("b", least), ("b", most), ("a", least), ("x", 0)])
        #expect(found == [Found(frames: ["a": most, "b": most]), Found(frames: ["a": least], missing: ["b"])])
        var frames: [(name: String, time: Int64)] = []
        for time in 0..<100 { frames.append((name: "a", time: Int64(time))) }
        frames.append((name: "b", time: 99))
        let kept = try matched(["a", "b"], frames)
        #expect(kept.count == 32 && kept.last == Found(frames: ["a": 99, "b": 99]))
    }

    @Test(arguments: [[], ["a"], ["a", "a"]] as [[String]])
    func `two cameras are matched at least, each named once`(_ names: [String]) {
        #expect(RealtimeMatcher<Int64>(names, tolerance: 5, patience: 1000) == nil)
    }
}
