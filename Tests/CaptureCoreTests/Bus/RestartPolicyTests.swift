import Testing

@testable import CaptureCore

@Suite struct RestartPolicyTests {
    private let second: Int64 = 1_000_000_000

    @Test func theFirstRestartIsAtOnceAndFurtherOnesWaitLonger() {
        var policy = RestartPolicy()
        var delays: [Int64] = []
        for index in 0..<12 {
            let now = Int64(index) * 100 * second
            delays.append(policy.restart(at: now) - now)
        }
        let milliseconds: [Int64] = [0, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000, 30000]
        #expect(delays == milliseconds.map { $0 * 1_000_000 })
        #expect(policy.failures == 12)
    }

    @Test func aMinuteOfHealthForgivesThePast() {
        var policy = RestartPolicy()
        for _ in 0..<5 { _ = policy.restart(at: 0) }
        policy.started(at: 10 * second)
        #expect(policy.restart(at: 70 * second - 1) > 70 * second - 1)
        policy.started(at: 100 * second)
        #expect(policy.restart(at: 160 * second) == 160 * second)
        // That health counts once.
        #expect(policy.restart(at: 160 * second) == 160 * second + second / 2)
    }

    @Test func theEndOfTimeIsNoTrap() {
        var policy = RestartPolicy()
        for _ in 0..<100 { _ = policy.restart(at: .max) }
        policy.started(at: .min)
        #expect(policy.restart(at: .min) >= .min)
    }
}
