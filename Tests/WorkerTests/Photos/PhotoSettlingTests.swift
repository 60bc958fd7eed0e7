import CaptureCore
import Testing

@testable import Worker

@Suite("Settling for a photo")
struct PhotoSettlingTests {
    private let frame: Int64 = 33_333_333

    private func settling(isTold: Bool = false, isAdjusting: Bool = false, isSet: Bool = false) -> PhotoSettling {
        PhotoSettling(since: 1000, frame: frame, isTold: isTold, isAdjusting: isAdjusting, isSet: isSet)
    }

    /// The frame in which it came to an end, from 0, and how.
    private func run(_ settling: PhotoSettling, _ lumas: [Double?]) -> (Int, PhotoSettling.Verdict)? {
        var settling = settling
        for (index, luma) in lumas.enumerated() {
            let measured = settling.measured(luma)
            if measured != .waiting { return (index, measured) }
            let verdict = settling.took(exposedFrom: 1000 + Int64(index) * frame)
            if verdict != .waiting { return (index, verdict) }
        }
        return nil
    }

    @Test("a picture that is as bright three times has its exposure; a dark one is looked at longer")
    func steady() throws {
        #expect(try #require(run(settling(), [20, 60, 90, 101, 102, 101, 102])) == (5, .settled))
        #expect(try #require(run(settling(), [0, 0, 0, 0, 60, 100, 120, 121, 121])) == (8, .settled))
        #expect(try #require(run(settling(), Array(repeating: 3, count: 20))) == (8, .settled))
    }

    @Test("what was set shows some frames later")
    func delay() throws {
        #expect(try #require(run(settling(isSet: true), [80, 80, 80, 80, 120, 120, 120])) == (6, .settled))
    }

    @Test("one that finds nothing, and one that can't be measured, has its frames and is late")
    func late() throws {
        let restless = (0..<200).map { $0 % 2 == 0 ? 50.0 : 150 }
        #expect(try #require(run(settling(), restless)) == (89, .late))
        #expect(try #require(run(settling(), Array(repeating: nil, count: 200))) == (89, .late))
        let slow = PhotoSettling(
            since: 1000, frame: 2_000_000_000, isTold: true, isAdjusting: true, isSet: false)
        #expect(try #require(run(slow, Array(repeating: nil, count: 200))) == (11, .late))
    }

    @Test("so long is waited as settling has frames, however long each lasts")
    func patience() {
        for frame: Int64 in [16_666_667, 33_333_333, 1_000_000_000, 5_000_000_000] {
            var settling = PhotoSettling(since: 0, frame: frame, isTold: false, isAdjusting: false, isSet: true)
            var frames: Int64 = 1
            while settling.took(exposedFrom: frames * frame) == .waiting { frames += 1 }
            #expect(WorkerOrder.settling(PhotoSettings(), frame: frame) > frames * frame / 1_000_000)
        }
        // Longer exposures than a frame make frames as long, of which there are fifteen for each step.
        let (frame, second): (Int64, Int64) = (33_333_333, 1_000_000_000)
        let long = PhotoSettings(bracket: .exposureDuration([5 * second, 1_000_000]))
        let bright = PhotoSettings(bracket: .exposureBias([0, 4]))
        #expect(WorkerOrder.settling(long, frame: frame) > 15 * 5000)
        #expect(WorkerOrder.settling(bright, frame: second) > 15 * 16_000)
        #expect(WorkerOrder.preparing(long, frame: frame) > 2 * WorkerOrder.settling(long, frame: frame))
        #expect(WorkerOrder.taking(long, frame: frame) > 2 * WorkerOrder.settling(long, frame: frame))
        // Who is ready waits for whoever gets ready longest.
        for settings in [PhotoSettings(), long, bright] {
            #expect(WorkerOrder.preparing(settings, frame: 60 * second) <= WorkerOrder.photoPatience)
        }
        #expect(WorkerOrder.settling(bright, frame: .max) > 0)
    }

    @Test("a camera that says so is believed, but for frames that were exposed before")
    func told() {
        var settling = settling(isTold: true, isAdjusting: true)
        #expect(settling.took(exposedFrom: 2000) == .waiting)
        settling.told(isAdjusting: false, at: 3000)
        #expect(settling.took(exposedFrom: 2999) == .waiting)
        #expect(settling.took(exposedFrom: 3000) == .settled)
        var still = self.settling(isTold: true)
        #expect(still.took(exposedFrom: 999) == .waiting)
        #expect(still.took(exposedFrom: 1000) == .settled)
    }

    @Test("the nearest frame, each after it, and one at each interval")
    func shots() {
        var nearest = PhotoShots(1, interval: 0, frame: 100, at: 1000, now: 0)
        #expect(!nearest.wants(exposedFrom: 949) && nearest.wants(exposedFrom: 950))
        #expect(nearest.take(exposedFrom: 950) == 0 && nearest.isOver && !nearest.wants(exposedFrom: 1050))
        var burst = PhotoShots(3, interval: 250, frame: 100, at: nil, now: 500)
        var taken: [Int64] = []
        for time in stride(from: Int64(400), to: 2000, by: 100) where burst.wants(exposedFrom: time) {
            #expect(burst.take(exposedFrom: time) == taken.count)
            taken.append(time)
        }
        #expect(taken == [500, 700, 1000])
    }

    @Test("what comes later than asked is told by how much")
    func lateShots() {
        func delays(interval: Int64, _ times: [Int64]) -> [Int64?] {
            var shots = PhotoShots(times.count, interval: interval, frame: 100, at: nil, now: 0)
            return times.map { time in
                _ = shots.take(exposedFrom: time)
                return shots.late
            }
        }
        #expect(delays(interval: 0, [100, 200, 310, 500, 600, 1000]) == [nil, nil, nil, 90, nil, 300])
        #expect(delays(interval: 0, [100, 251]) == [nil, 51])
        #expect(delays(interval: 250, [100, 300, 600, 900, 1100]) == [nil, nil, nil, nil, nil])
        #expect(delays(interval: 250, [100, 500, 701]) == [nil, 150, 101])
    }
}
