import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite struct TakeTests {
    private func refusal(_ take: Take, _ body: (inout Take) throws(BusError) -> Void) -> BusError.Reason? {
        var tried = take
        do throws(BusError) {
            try body(&tried)
            return nil
        } catch {
            #expect(tried == take, "what is refused changes nothing")
            return error.reason
        }
    }

    /// Records a whole segment.
    private func add(_ id: String, _ duration: Int64, to take: inout Take, isFull: Bool = false) throws -> Take.Event? {
        _ = try take.record(id, path: "/\(id).mp4")
        _ = try take.pause()
        return take.ended(id, duration: duration, isKept: true, isFull: isFull)
    }

    @Test func segmentsFollowOneAnother() throws {
        var take = try Take(id: "t", minDuration: 1000, maxDuration: 10_000)
        #expect(take.remaining == 10_000 && take.total == 0)
        let first = try take.record("a", path: "/a.mp4")
        #expect(first == .record(Take.Segment(id: "a", path: "/a.mp4"), maxDuration: 10_000))
        #expect(take.progressed("a", to: 300) && !take.progressed("a", to: 300) && !take.progressed("b", to: 900))
        #expect(take.duration == 300 && take.total == 300 && take.remaining == 9700)
        #expect(
            refusal(take) { (take) throws(BusError) in _ = try take.record("b", path: "/b") } == .recordingInProgress)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.finish() } == .recordingInProgress)
        #expect(try take.pause() == .stop("a"))
        #expect(take.state == .ending)
        #expect(try take.pause() == nil, "it ends already")
        #expect(take.ended("a", duration: 320, isKept: true) == .recordDurationLessMinRecordDuration)
        #expect(take.duration == 0 && take.total == 320 && take.state == .paused)
        #expect(try add("b", 700, to: &take) == nil, "neither too short nor too long")
        #expect(
            try take.record("c", path: "/c.mp4") == .record(Take.Segment(id: "c", path: "/c.mp4"), maxDuration: 8980))
        #expect(take.segments.map(\.id) == ["a", "b"])
    }

    @Test func atItsMostItIsClosedUntilOneIsDeleted() throws {
        var take = try Take(id: "t", maxDuration: 1000)
        #expect(try add("a", 400, to: &take) == nil)
        // The file that was limited to 600 ms has one frame less.
        #expect(try add("b", 567, to: &take, isFull: true) == .recordDurationLargerEqualMaxRecordDuration)
        #expect(take.remaining == 0 && take.total == 967)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.record("c", path: "/c") } == .limitExceeded)
        #expect(try take.delete("a") == .remove(Take.Segment(id: "a", path: "/a.mp4", duration: 400)))
        #expect(take.remaining == 433 && take.segments.map(\.id) == ["b"])
        #expect(try add("c", 433, to: &take) == .recordDurationLargerEqualMaxRecordDuration)
        #expect(try take.finish() == .join(take.segments) && take.segments.map(\.id) == ["b", "c"])
    }

    @Test func whatCameToNothingIsNoSegment() throws {
        var take = try Take(id: "t", minDuration: 500)
        _ = try take.record("a", path: "/a")
        #expect(take.ended("z", duration: 900, isKept: true) == nil, "another movie")
        #expect(take.state == .recording)
        #expect(take.ended("a", duration: 900, isKept: false) == nil)
        #expect(take.segments.isEmpty && take.state == .paused)
        // One that ends by itself was not paused.
        _ = try take.record("b", path: "/b")
        #expect(take.ended("b", duration: 900, isKept: true) == nil)
        #expect(take.segments.count == 1)
    }

    @Test func itIsFinishedOnce() throws {
        var take = try Take(id: "t", minDuration: 5000)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.finish() } == .notRecording)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.pause() } == .notRecording)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.delete("a") } == .invalidParams)
        _ = try add("a", 100, to: &take)
        _ = try take.finish()
        for _ in 0..<2 {
            #expect(
                refusal(take) { (take) throws(BusError) in _ = try take.record("b", path: "/b") }
                    == .recordingInProgress)
            #expect(refusal(take) { (take) throws(BusError) in _ = try take.delete("a") } == .recordingInProgress)
        }
        take.joined(false)
        #expect(take.state == .paused && take.segments.count == 1, "they are still there")
        _ = try take.finish()
        take.joined(true)
        #expect(take.isOver && refusal(take) { (take) throws(BusError) in _ = try take.discard() } == .notRecording)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.delete("a") } == .notRecording)
    }

    @Test func whatIsGivenUpLeavesNothing() throws {
        var take = try Take(id: "t")
        _ = try add("a", 100, to: &take)
        _ = try take.record("b", path: "/b.mp4")
        #expect(try take.discard() == [.cancel("b"), .remove(Take.Segment(id: "a", path: "/a.mp4", duration: 100))])
        #expect(take.isOver && take.total == 0)
        #expect(take.ended("b", duration: 50, isKept: true) == nil && take.segments.isEmpty)
        #expect(refusal(take) { (take) throws(BusError) in _ = try take.record("c", path: "/c") } == .notRecording)
    }

    @Test func limitsAreChecked() {
        for (least, most) in [(-1, nil), (nil, 0), (11, 10)] as [(Int64?, Int64?)] {
            #expect(throws: BusError.self) { try Take(id: "t", minDuration: least, maxDuration: most) }
        }
        #expect(throws: Never.self) { try Take(id: "t", minDuration: 10, maxDuration: 10) }
    }

    /// Whatever is asked for in whatever order, the sums are right, and no file is forgotten.
    @Test(arguments: seeds) func nothingIsForgotten(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var take = try Take(id: "t", minDuration: 300, maxDuration: 2000)
        // The files that there are, by their ids, with their lengths.
        var files: [String: Int64] = [:]
        for step in 0..<400 where !take.isOver {
            switch Int.random(in: 0..<(step > 380 ? 6 : 5), using: &generator) {
            case 0:
                if case .record(let segment, let limit)? = try? take.record("s\(step)", path: "/s\(step)") {
                    #expect(limit == 2000 - take.total && (limit ?? 0) > 0)
                    #expect(take.current == segment)
                }
            case 1: _ = try? take.pause()
            case 2:
                guard let id = take.current?.id else { continue }
                let before = take.total - take.duration
                let length = Int64.random(in: 0...(2000 - before), using: &generator)
                let isKept = Bool.random(using: &generator)
                let event = take.ended(id, duration: length, isKept: isKept)
                let isAdded = isKept && length > 0
                if isAdded { files[id] = length }
                let total = before + (isAdded ? length : 0)
                #expect(take.total == total)
                let expected: Take.Event? =
                    !isAdded
                    ? nil
                    : total < 300
                        ? .recordDurationLessMinRecordDuration
                        : total >= 2000 ? .recordDurationLargerEqualMaxRecordDuration : nil
                #expect(event == expected)
            case 3:
                guard let id = files.keys.sorted().randomElement(using: &generator) else { continue }
                if case .remove(let segment)? = try? take.delete(id) {
                    #expect(segment.id == id && segment.duration == files.removeValue(forKey: id))
                }
            case 4:
                if case .join(let segments)? = try? take.finish() {
                    #expect(Set(segments.map(\.id)) == Set(files.keys))
                    take.joined(false)
                }
            default:
                for case .remove(let segment) in (try? take.discard()) ?? [] { files[segment.id] = nil }
                #expect(files.isEmpty)
            }
            #expect(take.total <= 2000 && take.remaining == 2000 - take.total)
            #expect(take.segments.reduce(0) { $0 + $1.duration } == files.values.reduce(0, +))
        }
    }

    @Test func itIsToldAsItIs() throws {
        var take = try Take(id: "t", maxDuration: 2000)
        _ = try add("a", 500, to: &take)
        _ = try take.record("b", path: "/b.mp4")
        _ = take.progressed("b", to: 40)
        #expect(
            take.json == [
                "id": "t", "state": "recording", "segments": [["id": "a", "path": "/a.mp4", "duration": 500]],
                "duration": 40, "total": 540, "remaining": 1460, "minDuration": .null, "maxDuration": 2000,
            ])
    }
}
