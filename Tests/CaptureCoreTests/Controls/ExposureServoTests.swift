import Glibc
import Testing

@testable import CaptureCore

/// A camera whose pictures get brighter with exposure and gain, by some gamma.
private struct LitCamera {
    /// What a hundred units of time make of the scene: 1 is full.
    var light: Double
    var gamma: Double
    var gainDoublings = 4.0
    var gainRange = 100.0

    func luma(_ setting: ExposureServo.Setting) -> Double {
        let gain = exp2(Double(setting.gain ?? 0) / gainRange * gainDoublings)
        return (255 * pow(light * Double(setting.time) / 100 * gain, 1 / gamma)).rounded().clamped(to: 0...255)
    }
}

extension Double {
    fileprivate func clamped(to range: ClosedRange<Double>) -> Double {
        min(max(self, range.lowerBound), range.upperBound)
    }
}

@Suite struct ExposureServoTests {
    private static func control(_ range: ClosedRange<Int64>, step: Int64 = 1) -> CaptureControl {
        CaptureControl(
            name: "c", title: "c", id: 1, type: .integer, minimum: range.lowerBound, maximum: range.upperBound,
            step: step)
    }

    /// All that is set until it has settled.
    private func run(
        _ servo: inout ExposureServo, _ camera: LitCamera, from start: ExposureServo.Setting
    ) -> [ExposureServo.Setting] {
        var settings = [start]
        for _ in 0..<200 {
            guard let present = settings.last else { break }
            switch servo.take(luma: camera.luma(present), at: present) {
            case .settled: return settings
            case .wait: continue
            case .set(let next): settings.append(next)
            }
        }
        Issue.record("it has not settled: \(settings.suffix(5))")
        return settings
    }

    @Test(arguments: [1.0, 1.4, 2.2, 2.6], [0.002, 0.05, 0.2, 0.6, 1, 8, 40])
    func comesToTheMiddle(_ gamma: Double, _ light: Double) throws {
        let bounds = ExposureServo.Bounds(time: Self.control(1...100_000), gain: nil)
        let camera = LitCamera(light: light, gamma: gamma)
        var servo = ExposureServo(bounds)
        let settings = run(&servo, camera, from: .init(time: 100))
        let luma = camera.luma(try #require(settings.last))
        // Where the times are coarse, no neighbour is better.
        let last = try #require(settings.last)
        let errors = [last.time - 1, last.time, last.time + 1].filter { $0 > 0 }.map {
            abs(log2(camera.luma(.init(time: $0)) / ExposureServo.middle))
        }
        let error = abs(log2(luma / ExposureServo.middle))
        #expect(error <= 0.35 || error <= (errors.min() ?? 0) + 1e-9, "\(settings.map(\.time)) \(luma)")
        #expect(settings.count <= 20)
        // No step is larger than a few doublings, whatever it sees.
        for (before, after) in zip(settings, settings.dropFirst()) {
            #expect(abs(log2(Double(after.time) / Double(before.time))) <= 2)
        }
    }

    @Test func aFrameLeavesNoMoreTime_andThenTheGainGoesUp() throws {
        let bounds = ExposureServo.Bounds(time: Self.control(1...10_000), gain: Self.control(0...100), longest: 333)
        let camera = LitCamera(light: 0.01, gamma: 2.2)
        var servo = ExposureServo(bounds)
        let settings = run(&servo, camera, from: .init(time: 50, gain: 0))
        #expect(settings.allSatisfy { $0.time <= 333 && (0...100).contains($0.gain ?? -1) })
        let last = try #require(settings.last)
        #expect(last.time == 333 && (last.gain ?? 0) > 0)
        // It was not raised while there was time left.
        #expect(settings.filter { $0.time < 333 }.allSatisfy { $0.gain == 0 })
        #expect(abs(log2(camera.luma(last) / ExposureServo.middle)) < 0.35)
        // In the light again: the gain goes first.
        var bright = ExposureServo(bounds)
        let back = run(&bright, LitCamera(light: 1, gamma: 2.2), from: last)
        #expect(back.last?.gain == 0 && (back.last?.time ?? 333) < 100)
        #expect(back.filter { ($0.gain ?? 0) > 0 }.allSatisfy { $0.time == 333 })
    }

    @Test func aShorterBoundIsKeptAtOnce_alsoWhereThePictureIsRight() throws {
        let bounds = ExposureServo.Bounds(
            time: Self.control(1...1000), gain: Self.control(0...100), longest: 40)
        for isSettled in [false, true] {
            var servo = ExposureServo(bounds, isSettled: isSettled)
            let camera = LitCamera(light: 0.5, gamma: 1)
            let settings = run(&servo, camera, from: ExposureServo.Setting(time: 100, gain: 0))
            #expect(settings.dropFirst().first == ExposureServo.Setting(time: 40, gain: 0))
            let last = try #require(settings.last)
            #expect(last.time == 40 && abs(log2(camera.luma(last) / ExposureServo.middle)) <= 0.1, "\(settings)")
        }
        // A driver that keeps the time as it was is not asked for ever.
        var servo = ExposureServo(bounds)
        var asked = 0
        while servo.take(luma: 118, at: ExposureServo.Setting(time: 100, gain: 0)) != .settled, asked < 100 {
            asked += 1
        }
        #expect(asked == 1)
    }

    @Test func whatCannotBeMadeBrighterHasSettled() {
        var servo = ExposureServo(.init(time: Self.control(3...300), gain: Self.control(0...10)))
        #expect(servo.take(luma: 0, at: .init(time: 300, gain: 10)) == .settled)
        var dark = ExposureServo(.init(time: Self.control(3...300), gain: nil))
        #expect(dark.take(luma: 255, at: .init(time: 3)) == .settled)
        #expect(dark.take(luma: .nan, at: .init(time: 3)) == .wait)
    }

    @Test func whatHasSettledIsNotDisturbedByAMoment() {
        var servo = ExposureServo(.init(time: Self.control(1...1000), gain: nil))
        let setting = ExposureServo.Setting(time: 100)
        #expect(servo.take(luma: 118, at: setting) == .settled)
        #expect(servo.take(luma: 100, at: setting) == .settled)
        #expect(servo.take(luma: 20, at: setting) == .wait)
        #expect(servo.take(luma: 118, at: setting) == .settled)
        #expect(servo.take(luma: 20, at: setting) == .wait)
        guard case .set(let next) = servo.take(luma: 20, at: setting) else {
            Issue.record("a darker scene")
            return
        }
        #expect(next.time > 100)
    }

    @Test func aBiasMovesTheTarget() {
        let bounds = ExposureServo.Bounds(time: Self.control(1...1000), gain: nil)
        #expect(ExposureServo(bounds, bias: 1).target > ExposureServo(bounds).target + 20)
        #expect(ExposureServo(bounds, bias: -1).target < ExposureServo(bounds).target - 20)
        #expect((1...255).contains(ExposureServo(bounds, bias: 99).target))
    }

    @Test func neverLeavesTheStepsThatThereAre() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            let low = Int64.random(in: -50...50, using: &generator)
            let high = low + Int64.random(in: 1...5000, using: &generator)
            let step = Int64.random(in: 1...40, using: &generator)
            let gain = Self.control(low...high, step: step)
            let time = Self.control(max(0, low)...max(1, high), step: step)
            let bounds = ExposureServo.Bounds(
                time: time, gain: Bool.random(using: &generator) ? gain : nil,
                longest: Bool.random(using: &generator) ? Int64.random(in: 0...5000, using: &generator) : nil)
            var servo = ExposureServo(bounds)
            var setting = ExposureServo.Setting(time: bounds.time.lowerBound, gain: bounds.gain?.lowerBound)
            for _ in 0..<60 {
                let luma = Double.random(in: 0...255, using: &generator)
                guard case .set(let next) = servo.take(luma: luma, at: setting) else { continue }
                #expect(next != setting)
                #expect(bounds.time.contains(next.time) && (next.time - bounds.time.lowerBound) % step == 0)
                if let gain = bounds.gain, let value = next.gain {
                    #expect(gain.contains(value) && (value - gain.lowerBound) % step == 0)
                }
                setting = next
            }
        }
    }

    @Test func absurdRangesDoNotOverflow() {
        let absurd = CaptureControl(
            name: "c", title: "c", id: 1, type: .integer, minimum: .min, maximum: .max, step: .max)
        var servo = ExposureServo(.init(time: absurd, gain: absurd, longest: .min))
        for luma in [0.0, 255, 1, 254] { _ = servo.take(luma: luma, at: .init(time: .max, gain: .min)) }
    }
}
