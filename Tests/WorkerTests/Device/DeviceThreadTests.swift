import BusServer
import LinuxIO
import Synchronization
import Testing

@testable import Worker

@Suite("The device thread", .timeLimit(.minutes(5)))
struct DeviceThreadTests {
    private final class Gate: Sendable {
        let opened = Semaphore()
        let order = Mutex<[Int]>([])
    }

    @Test("does one thing after the other, away from the loop, and answers on it")
    func order() throws {
        let loop = try Loop()
        let thread = try DeviceThread(loop, device: Gate(), clock: CallClock())
        var answers: [Int] = []
        for number in 0..<5 {
            thread.perform { gate in
                gate.order.withLock { $0.append(number) }
            } then: { (_: Result<Void, Never>) in
                answers.append(number)
                if number == 4 { loop.stop() }
            }
        }
        try loop.run()
        #expect(answers == [0, 1, 2, 3, 4])
        #expect(!thread.isAtWork)
        thread.end()
    }

    @Test("a call that takes long is told, and one that hangs is given up")
    func hang() throws {
        let loop = try Loop()
        let clock = CallClock()
        let gate = Gate()
        let thread = try DeviceThread(loop, device: gate, clock: clock, busyTime: 20_000_000, hangTime: 2_000_000_000)
        var told: [Int64?] = []
        var hasHung = false
        thread.onBusy = { told.append(thread.busySince) }
        thread.onHang = {
            hasHung = true
            gate.opened.signal()
        }
        let start = MonotonicClock.now()
        thread.perform { gate in
            clock.measure { gate.opened.wait() }
        } then: { (_: Result<Void, Never>) in
            loop.stop()
        }
        try loop.run()
        #expect(hasHung)
        #expect(told.count == 2)
        #expect(try #require(told.first ?? nil) >= start)
        #expect(told.last == .some(nil))
        thread.end()
    }

    @Test("much work of short calls is no hang")
    func shortCalls() throws {
        let loop = try Loop()
        let clock = CallClock()
        let thread = try DeviceThread(loop, device: Gate(), clock: clock, busyTime: 200_000_000, hangTime: 400_000_000)
        thread.onHang = { Issue.record("taken for a hang") }
        let end = MonotonicClock.now() + 600_000_000
        thread.perform { _ in
            while MonotonicClock.now() < end { clock.measure {} }
        } then: { (_: Result<Void, Never>) in
            loop.stop()
        }
        try loop.run()
        thread.end()
    }
}
