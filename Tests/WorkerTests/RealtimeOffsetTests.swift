import LinuxIO
import Testing

@testable import Worker

@Suite("A frame's time by both clocks") struct RealtimeOffsetTests {
    /// Whether it tells what the clock itself tells.
    private func isRight(_ offset: inout RealtimeOffset) -> Bool {
        let before = MonotonicClock.realtime()
        let told = offset.at(MonotonicClock.now())
        return told >= before && told <= MonotonicClock.realtime()
    }

    @Test("is there for the first frame")
    func first() {
        var offset = RealtimeOffset()
        #expect(isRight(&offset))
    }

    @Test("is that of the frame before, and looked at anew after each")
    func renewed() {
        let now = MonotonicClock.now()
        var offset = RealtimeOffset(nanoseconds: 7, measured: now)
        #expect(offset.at(now + 1_000_000_000) == now + 1_000_000_007)
        let before = MonotonicClock.now()
        let measured = offset.measure()
        #expect(before <= measured && measured <= MonotonicClock.now())
        #expect(isRight(&offset))
    }

    @Test("is looked at again when the frame before was long ago")
    func outdated() {
        var offset = RealtimeOffset(nanoseconds: 7, measured: MonotonicClock.now() - 1_100_000_000)
        #expect(isRight(&offset))
    }
}
