import CaptureCore
import Testing

/// Whatever cameras and the machine do, the sets keep their promises.
@Suite("Frame sets in random weather")
struct FrameMatcherPropertyTests {
    private struct Name: Hashable {
        var device: Int
        var number: Int
    }

    private struct Arrival {
        var name: Name
        var time: Int64
        var at: Int64
    }

    /// A camera with its own rate, phase, drift and jitter, that loses frames and delivers them late.
    private static func frames(of device: Int, _ random: inout SeededGenerator) -> [Arrival] {
        let interval = Int64([16, 33, 33, 33, 40, 66][random.below(6)]) * 1_000_000
        let drift = Double(random.below(2001) - 1000) / 10_000
        let phase = Int64(random.below(33_000_000))
        let loss = random.pick([0, 0, 5, 30])
        var delay = Int64(random.below(30_000_000))
        var arrivals: [Arrival] = []
        for number in 0..<150 where !random.chance(loss) {
            let real = 1_000_000_000 + phase + Int64(number) * interval
            let time = real + Int64(Double(real - 1_000_000_000) * drift) + Int64(random.below(2_000_000))
            if random.chance(3) { delay = Int64(random.below(400_000_000)) }
            // What one camera gives stays in order.
            let at = max(real + delay + Int64(random.below(3_000_000)), (arrivals.last?.at ?? 0) + 1)
            arrivals.append(Arrival(name: Name(device: device, number: number), time: time, at: at))
        }
        return arrivals
    }

    @Test("no frame twice, none mixed, in order, bounded, and nothing uncounted", arguments: seeds)
    func promises(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20 {
            let devices = 1 + random.below(5)
            let tolerance = random.pick([nil, nil, 5_000_000, 100_000_000] as [Int64?])
            var matcher = FrameMatcher<Name>(devices: devices, options: .init(tolerance: tolerance))
            let arrivals = (0..<devices).flatMap { Self.frames(of: $0, &random) }.sorted { $0.at < $1.at }
            let times = Dictionary(uniqueKeysWithValues: arrivals.map { ($0.name, $0.time) })
            var given: Set<Name> = []
            var sets: [FrameMatcher<Name>.FrameSet] = []

            func check(_ outputs: [FrameMatcher<Name>.Output], at now: Int64) {
                for output in outputs {
                    switch output {
                    case .set(let set):
                        #expect(set.sequence == UInt64(sets.count))
                        #expect(set.time > sets.last?.time ?? 0)
                        #expect(set.frames.count == devices && set.frames[0] != nil)
                        let present = set.frames.compactMap { $0 }
                        for (place, frame) in set.frames.enumerated() {
                            guard let frame else { continue }
                            #expect(frame.content.device == place)
                            #expect(times[frame.content] == frame.time)
                            #expect(abs(frame.time - set.time) <= set.tolerance)
                            #expect(given.insert(frame.content).inserted)
                        }
                        let all = present.map(\.time)
                        #expect(set.spread == (all.max() ?? 0) - (all.min() ?? 0))
                        sets.append(set)
                    case .late(let late):
                        #expect(given.insert(late.frame.content).inserted)
                        #expect(late.set < UInt64(sets.count))
                        guard late.set < UInt64(sets.count) else { continue }
                        let set = sets[Int(late.set)]
                        #expect(set.frames[late.device] == nil && set.time == late.time)
                        #expect(abs(late.frame.time - set.time) <= set.tolerance)
                        // The place is taken now.
                        sets[Int(late.set)].frames[late.device] = late.frame
                    }
                }
            }

            var received = Array(repeating: 0, count: devices)
            for arrival in arrivals {
                if let deadline = matcher.nextDeadline, deadline <= arrival.at {
                    check(matcher.advance(to: deadline), at: deadline)
                }
                if random.chance(1) {
                    let device = random.below(devices)
                    check(matcher.setAbsent(device, at: arrival.at), at: arrival.at)
                }
                received[arrival.name.device] += 1
                let frame = FrameMatcher<Name>.Frame(arrival.name, time: arrival.time, bytes: 100)
                check(matcher.receive(frame, of: arrival.name.device, at: arrival.at), at: arrival.at)
                #expect(matcher.held <= devices * matcher.options.capacity)
                // A lead frame waits for nobody for ever.
                if let deadline = matcher.nextDeadline { #expect(deadline > arrival.at) }
            }
            check(matcher.advance(to: .max), at: .max)
            #expect(matcher.nextDeadline == nil)
            // What came went out, is held, or is counted.
            for device in 0..<devices {
                let gone = given.count { $0.device == device }
                let counted = Int(matcher.dropped[device])
                #expect(gone + counted <= received[device])
                if device == 0 { #expect(gone + counted == received[0]) }
            }
            let total = given.count + matcher.dropped.reduce(0) { $0 + Int($1) } + matcher.held
            #expect(total == received.reduce(0, +))
            #expect(sets.count > 50)
        }
    }

    @Test("cameras in step make whole sets, with the offset that they have")
    func steady() {
        var matcher = FrameMatcher<Name>(devices: 3)
        let offsets: [Int64] = [0, 3_000_000, -7_000_000]
        var whole = 0
        for number in 1...100 {
            for device in [2, 0, 1] {
                let time = Int64(number) * 33_333_333 + offsets[device]
                let frame = FrameMatcher<Name>.Frame(Name(device: device, number: number), time: time)
                for case .set(let set) in matcher.receive(frame, of: device, at: time) {
                    #expect(set.frames.allSatisfy { $0?.content.number == set.frames[0]?.content.number })
                    #expect(set.spread == 10_000_000)
                    whole += 1
                }
            }
        }
        #expect(whole >= 98)
        #expect(matcher.dropped == [0, 0, 0] && matcher.late == [0, 0, 0])
    }

    /// Its clock falls behind by a hundredth: the spread grows to half an interval, and begins anew with the frame
    /// before.
    @Test("a camera whose clock drifts stays in the sets, and none of its frames is in two")
    func drift() {
        var matcher = FrameMatcher<Name>(devices: 2)
        var spreads: [Int64] = []
        var numbers: [Int] = []
        var sets = 0
        for number in 1...600 {
            let time = Int64(number) * 33_333_333
            for (device, stamp) in [(0, time), (1, time - time / 100)] {
                let frame = FrameMatcher<Name>.Frame(Name(device: device, number: number), time: stamp)
                for case .set(let set) in matcher.receive(frame, of: device, at: time) {
                    sets += 1
                    spreads.append(set.spread)
                    if let other = set.frames[1] { numbers.append(other.content.number) }
                }
            }
        }
        #expect(sets >= 590)
        #expect(Set(numbers).count == numbers.count && numbers == numbers.sorted())
        #expect(spreads.allSatisfy { $0 <= 16_666_667 })
        #expect((spreads.max() ?? 0) > 15_000_000)
    }
}
