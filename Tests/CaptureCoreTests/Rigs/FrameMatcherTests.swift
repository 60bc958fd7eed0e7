import CaptureCore
import Testing

@Suite("Frames of several devices, matched by their time")
struct FrameMatcherTests {
    private typealias Matcher = FrameMatcher<String>
    private static let millisecond: Int64 = 1_000_000

    /// Says what went out: a set as its frames' names, `-` where one is missing; a late frame as `name>set`.
    private static func told(_ outputs: [Matcher.Output]) -> [String] {
        outputs.map { output in
            switch output {
            case .set(let set): set.frames.map { $0?.content ?? "-" }.joined(separator: " ")
            case .late(let late): "\(late.frame.content)>\(late.set)"
            }
        }
    }

    private static func give(
        _ matcher: inout Matcher, _ name: String, _ device: Int, _ milliseconds: Int64, at now: Int64? = nil
    ) -> [String] {
        told(
            matcher.receive(
                .init(name, time: milliseconds * millisecond), of: device,
                at: (now ?? milliseconds) * millisecond))
    }

    @Test("a set goes out as soon as nothing nearer can come")
    func nearest() {
        var matcher = Matcher(devices: 2)
        #expect(Self.give(&matcher, "b0", 1, 95) == [])
        // One after the lead might be nearer than 5 ms.
        #expect(Self.give(&matcher, "a0", 0, 100) == [])
        #expect(Self.give(&matcher, "b1", 1, 128) == ["a0 b0"])
        // As far after the lead as the best one before: nothing that comes later is nearer.
        #expect(Self.give(&matcher, "a1", 0, 133) == [])
        #expect(Self.give(&matcher, "b2", 1, 161) == ["a1 b1"])
        #expect(matcher.dropped == [0, 0])
    }

    @Test("the spread is that of the frames that are there")
    func spread() throws {
        var matcher = FrameMatcher<Int>(devices: 4, options: .init(tolerance: 10 * Self.millisecond))
        for (device, offset) in [(1, -4), (2, 7)] {
            _ = matcher.receive(.init(device, time: (100 + Int64(offset)) * Self.millisecond), of: device, at: 0)
        }
        _ = matcher.setAbsent(3, at: 0)
        _ = matcher.receive(.init(0, time: 100 * Self.millisecond), of: 0, at: 0)
        let outputs = matcher.receive(.init(1, time: 130 * Self.millisecond), of: 1, at: 0)
        guard case .set(let set)? = outputs.first else {
            Issue.record("no set")
            return
        }
        #expect(set.spread == 11 * Self.millisecond)
        #expect(set.frames.map { $0?.content } == [0, 1, 2, nil])
        #expect(set.tolerance == 10 * Self.millisecond)
    }

    @Test("of a faster camera the nearest frames are taken, and the others are counted")
    func faster() {
        var matcher = Matcher(devices: 2)
        var sets: [String] = []
        for number in 0..<20 {
            let time = Int64(number) * 10
            if number % 4 == 0 { sets += Self.give(&matcher, "a\(number)", 0, time) }
            sets += Self.give(&matcher, "b\(number)", 1, time + 1, at: time)
        }
        #expect(sets.prefix(4) == ["a0 b0", "a4 b4", "a8 b8", "a12 b12"])
        #expect(matcher.dropped[1] >= 9)
        #expect(matcher.late == [0, 0])
    }

    @Test("what comes after its set goes out by itself, once")
    func late() {
        var matcher = Matcher(devices: 3)
        #expect(Self.give(&matcher, "a0", 0, 100) == [])
        #expect(Self.give(&matcher, "b0", 1, 101) == [])
        #expect(Self.give(&matcher, "b1", 1, 134) == [])
        #expect(matcher.nextDeadline == 100 * Self.millisecond + 66_666_666)
        #expect(Self.told(matcher.advance(to: 166 * Self.millisecond)) == [])
        #expect(Self.told(matcher.advance(to: 167 * Self.millisecond)) == ["a0 b0 -"])
        #expect(Self.give(&matcher, "c0", 2, 103, at: 180) == ["c0>0"])
        // The place is taken.
        #expect(Self.give(&matcher, "c1", 2, 105, at: 181) == [])
        #expect(matcher.late == [0, 0, 1])
        #expect(matcher.dropped == [0, 0, 1])
    }

    @Test("a camera that is known to be away holds nobody up")
    func absent() {
        var matcher = Matcher(devices: 2)
        #expect(Self.told(matcher.setAbsent(1, at: 0)) == [])
        #expect(Self.give(&matcher, "a0", 0, 100) == ["a0 -"])
        #expect(Self.give(&matcher, "a1", 0, 133) == ["a1 -"])
        // It is back.
        #expect(Self.give(&matcher, "b2", 1, 165) == [])
        #expect(Self.give(&matcher, "a2", 0, 166) == [])
        #expect(Self.give(&matcher, "b3", 1, 198) == ["a2 b2"])
    }

    @Test("while the lead is away nothing piles up, and its first frame finds the others'")
    func absentLead() {
        var matcher = Matcher(devices: 3)
        #expect(Self.give(&matcher, "a", 0, 5) == [])
        // What waits still waits.
        #expect(Self.told(matcher.setAbsent(0, at: 5 * Self.millisecond)) == [])
        #expect(Self.give(&matcher, "b", 1, 6) == [])
        #expect(Self.told(matcher.advance(to: 200 * Self.millisecond)) == ["a b -"])
        for number in 6..<30 {
            #expect(Self.give(&matcher, "b\(number)", 1, 33 * Int64(number)) == [])
            #expect(Self.give(&matcher, "c\(number)", 2, 33 * Int64(number) + 1) == [])
            #expect(matcher.held <= 6)
        }
        #expect(matcher.dropped[1] == 24 - 3 && matcher.dropped[2] == 24 - 3)
        var sets = Self.give(&matcher, "a29", 0, 33 * 29 + 2)
        sets += Self.give(&matcher, "b30", 1, 33 * 30) + Self.give(&matcher, "c30", 2, 33 * 30)
        #expect(sets == ["a29 b29 c29"])
        // Nothing is held of those that are away with it.
        for device in 0..<3 { _ = matcher.setAbsent(device, at: 33 * 31 * Self.millisecond) }
        #expect(matcher.held == 0)
    }

    @Test("a lead that loses a frame shifts nobody, however wide the tolerance")
    func leadLoss() {
        var matcher = Matcher(devices: 2, options: .init(tolerance: 1000 * Self.millisecond))
        var sets: [String] = []
        for number in 0..<12 {
            let time = Int64(number) * 33
            if number != 5 { sets += Self.give(&matcher, "a\(number)", 0, time + 1) }
            if number != 8 { sets += Self.give(&matcher, "b\(number)", 1, time + 11) }
        }
        for set in sets {
            let numbers = set.split(separator: " ").map { $0.dropFirst() }
            #expect(numbers[1] == numbers[0] || set == "a8 -", "\(set)")
        }
        #expect(sets.count >= 9)
    }

    @Test("frames that were lost on the way widen nothing")
    func interval() {
        var matcher = FrameMatcher<Int>(devices: 1)
        var time: Int64 = 0
        for step in [4, 4, 1, 3, 1, 1, 2, 4, 4, 4] as [Int64] {
            time += step * 20 * Self.millisecond
            _ = matcher.receive(.init(0, time: time, step: step), of: 0, at: time)
            #expect(matcher.interval <= 33_333_333)
        }
        #expect(matcher.interval == 20 * Self.millisecond)
        // A camera that leaves some out itself says nothing of that.
        for number in 1...20 {
            time += (number % 3 == 0 ? 3 : 1) * 20 * Self.millisecond
            _ = matcher.receive(.init(0, time: time), of: 0, at: time)
        }
        #expect(matcher.interval == 20 * Self.millisecond)
        // One that is slower is slower.
        for _ in 1...9 {
            time += 200 * Self.millisecond
            _ = matcher.receive(.init(0, time: time), of: 0, at: time)
        }
        #expect(matcher.interval == 200 * Self.millisecond)
    }

    @Test("a stream that begins anew may have other times")
    func restart() {
        var matcher = Matcher(devices: 2)
        _ = Self.give(&matcher, "a0", 0, 1000)
        #expect(Self.give(&matcher, "a1", 0, 900) == [])
        #expect(matcher.dropped[0] == 1)
        matcher.restart(0)
        matcher.restart(1)
        #expect(matcher.held == 0)
        _ = Self.give(&matcher, "b0", 1, 501)
        #expect(Self.give(&matcher, "a2", 0, 500) == ["a2 b0"])
    }

    @Test("the matcher's memory is bounded in frames and in bytes")
    func bounds() {
        var matcher = Matcher(devices: 3)
        matcher.options.capacity = 4
        matcher.options.patience = .max
        for number in 1..<100 {
            _ = Self.give(&matcher, "b", 1, Int64(number) * 1000)
            #expect(matcher.held <= 4)
        }
        #expect(matcher.dropped[1] == 95)
        for number in 1..<100 {
            _ = Self.give(&matcher, "a", 0, 200_000 + Int64(number))
            #expect(matcher.held <= 8)
        }
        var heavy = Matcher(devices: 2)
        heavy.options.maximumBytes = 1000
        heavy.options.patience = .max
        var sets = 0
        for number in 1..<10 {
            sets += heavy.receive(.init("a", time: Int64(number) * 1000, bytes: 300), of: 0, at: 0).count
        }
        #expect(heavy.held <= 3)
        #expect(sets >= 6)
    }

    @Test("no time and no tolerance is too wild", arguments: [Int64.min, -1, .max, 1 << 60, (1 << 60) - 1])
    func wild(time: Int64) {
        for tolerance in [nil, Int64.min, .max] {
            var matcher = Matcher(devices: 2, options: .init(tolerance: tolerance, patience: tolerance))
            for device in [1, 0, 1, 0, 7, -1] {
                _ = matcher.receive(.init("x", time: time, bytes: 1), of: device, at: 0)
                _ = matcher.receive(.init("x", time: 5, bytes: 1), of: device, at: 0)
            }
            _ = matcher.advance(to: .max)
            #expect(matcher.held <= 4)
        }
    }
}
