import Testing

@testable import Worker

@Suite("The life of a device")
struct DeviceLifecycleTests {
    private static let second: Int64 = 1_000_000_000
    private var life = DeviceLifecycle(idleTime: 2 * Self.second)

    @Test("is opened once at the start, and closed after the idle time")
    mutating func probe() {
        #expect(life.begin(at: 0) == [.open])
        #expect(life.opened(at: 5) == [.wake(at: 5 + 2 * Self.second)])
        #expect(life.wake(at: 5 + 2 * Self.second) == [.close])
        #expect(life.closed(at: 3 * Self.second) == [])
        #expect(life.phase == .closed)
    }

    @Test("streams while frames are wanted, and stays open for the idle time afterwards")
    mutating func frames() {
        closed()
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 10) == [.open])
        #expect(life.opened(at: 11) == [.start])
        #expect(life.started(at: 12) == [])
        #expect(life.demand(isLocked: false, wantsFrames: false, at: 13) == [.stop])
        #expect(life.stopped(at: 14) == [.wake(at: 14 + 2 * Self.second)])
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 15) == [.start])
    }

    @Test("a lock alone keeps it open and does not make it stream")
    mutating func locked() {
        closed()
        #expect(life.demand(isLocked: true, wantsFrames: false, at: 10) == [.open])
        #expect(life.opened(at: 11) == [])
        #expect(life.wake(at: 100 * Self.second) == [])
        #expect(
            life.demand(isLocked: false, wantsFrames: false, at: 100 * Self.second) == [.wake(at: 102 * Self.second)])
    }

    @Test("a change of mind while it opens counts when it has opened")
    mutating func changeOfMind() {
        closed()
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 10) == [.open])
        #expect(life.demand(isLocked: false, wantsFrames: false, at: 11) == [])
        #expect(life.opened(at: 12) == [.wake(at: 12 + 2 * Self.second)])
    }

    @Test("pictures of another size are had at once, but not all the time")
    mutating func changed() {
        streaming(from: 10)
        for count in 1...9 {
            let now = 20 + Int64(count)
            #expect(life.changed(at: now) == [.stop])
            #expect(life.changed(at: now) == [])
            #expect(life.stopped(at: now) == [.close])
            guard count < 9 else {
                #expect(life.closed(at: now) == [.wake(at: now + Self.second)])
                break
            }
            #expect(life.closed(at: now) == [.open])
            #expect(life.opened(at: now) == [.start])
            #expect(life.started(at: now) == [])
        }
    }

    @Test("a device that is plugged in again is opened at once, whatever has failed before, also when nobody wants it")
    mutating func plugged() {
        closed()
        #expect(life.plugged(at: 10) == [.open])
        #expect(life.opened(at: 11) == [.wake(at: 11 + 2 * Self.second)])
        #expect(life.demand(isLocked: true, wantsFrames: false, at: 12) == [])
        // What is open is of the device that has gone.
        #expect(life.plugged(at: 13) == [.close])
        #expect(life.closed(at: 14) == [.open])
        #expect(life.openFailed(at: 15) == [.open])
        #expect(life.openFailed(at: 16) == [.wake(at: 16 + Self.second)])
        #expect(life.plugged(at: 17) == [.open])
        // The opening under way may have begun before the device was back.
        #expect(life.openFailed(at: 18) == [.open])
        #expect(life.plugged(at: 19) == [])
        #expect(life.openFailed(at: 20) == [.open])
        #expect(life.openFailed(at: 21) == [.wake(at: 21 + Self.second)])
    }

    @Test("a stream of a device that was plugged in again meanwhile starts anew")
    mutating func pluggedWhileStreaming() {
        closed()
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 10) == [.open])
        #expect(life.opened(at: 11) == [.start])
        #expect(life.started(at: 12) == [])
        #expect(life.plugged(at: 13) == [.stop])
        #expect(life.stopped(at: 14) == [.close])
        #expect(life.closed(at: 15) == [.open])
        #expect(life.opened(at: 16) == [.start])
    }

    @Test("a failed opening is tried again at once, then after 1, 2, 4, 8, 10, 10 seconds, as long as it is wanted")
    mutating func backOff() {
        closed()
        var now: Int64 = 10
        #expect(life.demand(isLocked: false, wantsFrames: true, at: now) == [.open])
        #expect(life.openFailed(at: now) == [.open])
        for delay: Int64 in [1, 2, 4, 8, 10, 10] {
            #expect(life.openFailed(at: now) == [.wake(at: now + delay * Self.second)])
            #expect(life.wake(at: now + 1) == [.wake(at: now + delay * Self.second)])
            now += delay * Self.second
            #expect(life.wake(at: now) == [.open])
        }
        #expect(life.openFailed(at: now) == [.wake(at: now + 10 * Self.second)])
        #expect(life.demand(isLocked: false, wantsFrames: false, at: now) == [])
    }

    @Test("a device that was never opened is tried again though nobody asks")
    mutating func probeAgain() {
        #expect(life.begin(at: 0) == [.open])
        #expect(life.openFailed(at: 0) == [.open])
        #expect(life.openFailed(at: 0) == [.wake(at: Self.second)])
        #expect(life.wake(at: Self.second) == [.open])
    }

    @Test("a lost stream is stopped, the device closed and opened anew: at once, and later if it is lost again soon")
    mutating func lost() {
        streaming(from: 10)
        #expect(life.lost(at: 20) == [.stop])
        #expect(life.stopped(at: 21) == [.close])
        #expect(life.closed(at: 22) == [.open])
        #expect(life.opened(at: 2 * Self.second) == [.start])
        #expect(life.started(at: 2 * Self.second) == [])
        life.firstFrame(at: 2 * Self.second)
        #expect(life.lost(at: 3 * Self.second) == [.stop])
        #expect(life.stopped(at: 3 * Self.second) == [.close])
        #expect(life.closed(at: 3 * Self.second) == [.wake(at: 4 * Self.second)])
        #expect(life.wake(at: 4 * Self.second) == [.open])
        #expect(life.opened(at: 5 * Self.second) == [.start])
        #expect(life.started(at: 5 * Self.second) == [])
        life.firstFrame(at: 5 * Self.second)
        #expect(life.lost(at: 15 * Self.second) == [.stop])
        #expect(life.stopped(at: 15 * Self.second) == [.close])
        #expect(life.closed(at: 15 * Self.second) == [.open])
    }

    @Test("a device in use by another program stays open and is asked to start again")
    mutating func busyAtStart() {
        closed()
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 10) == [.open])
        #expect(life.opened(at: 11) == [.start])
        #expect(life.startFailed(reopen: false, isInUse: true, at: 12) == [.wake(at: 12 + Self.second)])
        #expect(life.wake(at: 12 + Self.second) == [.start])
        #expect(life.startFailed(reopen: true, at: 2 * Self.second) == [.close])
    }

    @Test("a start that failed for another reason is tried again at once")
    mutating func failedStart() {
        closed()
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 10) == [.open])
        #expect(life.opened(at: 11) == [.start])
        #expect(life.startFailed(reopen: false, at: 12) == [.start])
        #expect(life.startFailed(reopen: false, at: 13) == [.wake(at: 13 + Self.second)])
    }

    @Test("a source that changes leaves the idle time as it is, and makes a start that failed be tried again at once")
    mutating func restartWithoutStream() {
        #expect(life.begin(at: 0) == [.open])
        #expect(life.opened(at: 5) == [.wake(at: 5 + 2 * Self.second)])
        #expect(life.restart(at: 10) == [.wake(at: 5 + 2 * Self.second)])
        #expect(life.demand(isLocked: false, wantsFrames: true, at: 11) == [.start])
        #expect(life.startFailed(reopen: false, at: 12) == [.start])
        #expect(life.startFailed(reopen: false, at: 13) == [.wake(at: 13 + Self.second)])
        #expect(life.restart(at: 14) == [.start])
    }

    @Test("a loss that is told of a closed device leaves the retry as it is")
    mutating func lostWhileClosed() {
        closed()
        #expect(life.demand(isLocked: true, wantsFrames: false, at: 10) == [.open])
        #expect(life.openFailed(at: 10) == [.open])
        #expect(life.openFailed(at: 10) == [.wake(at: 10 + Self.second)])
        #expect(life.lost(at: 11) == [.wake(at: 10 + Self.second)])
    }

    @Test("an order opens a closed device, and does not wait for a retry that is due later")
    mutating func hold() {
        closed()
        #expect(life.hold(.open, at: 10) == [.open])
        #expect(life.opened(at: 11) == [.granted])
        #expect(life.release(at: 12) == [.wake(at: 12 + 2 * Self.second)])
        #expect(life.wake(at: 12 + 2 * Self.second) == [.close])
        #expect(life.closed(at: 13) == [])
        #expect(life.demand(isLocked: true, wantsFrames: false, at: 20) == [.open])
        #expect(life.openFailed(at: 20) == [.open])
        #expect(life.openFailed(at: 21) == [.wake(at: 21 + Self.second)])
        #expect(life.hold(.open, at: 22) == [.open])
        #expect(life.openFailed(at: 23) == [.refused, .wake(at: 23 + 2 * Self.second)])
    }

    @Test("an order that needs a stopped stream gets one, and the stream starts again after it")
    mutating func quiet() {
        streaming(from: 10)
        #expect(life.hold(.open, at: 20) == [.granted])
        #expect(life.release(at: 21) == [])
        #expect(life.hold(.quiet, at: 22) == [.stop])
        #expect(life.stopped(at: 23) == [.granted])
        #expect(life.wake(at: 24) == [])
        #expect(life.release(at: 25) == [.start])
    }

    @Test("an order whose device is lost under it keeps it from being closed until it is done")
    mutating func lostUnderOrder() {
        streaming(from: 10)
        #expect(life.hold(.open, at: 20) == [.granted])
        #expect(life.lost(at: 21) == [.stop])
        #expect(life.stopped(at: 22) == [])
        #expect(life.release(at: 23) == [.close])
    }

    @Test("the end stops, closes, and refuses who still waits")
    mutating func end() {
        streaming(from: 10)
        #expect(life.end(at: 20) == [.stop])
        #expect(life.hold(.quiet, at: 21) == [])
        #expect(life.stopped(at: 22) == [.refused, .close])
        #expect(life.closed(at: 23) == [.ended])
        #expect(life.demand(isLocked: true, wantsFrames: true, at: 24) == [.ended])
    }

    private mutating func closed() {
        _ = life.begin(at: 0)
        _ = life.opened(at: 0)
        _ = life.wake(at: 2 * Self.second)
        #expect(life.closed(at: 0) == [])
    }

    private mutating func streaming(from now: Int64) {
        closed()
        _ = life.demand(isLocked: false, wantsFrames: true, at: now)
        _ = life.opened(at: now)
        #expect(life.started(at: now) == [])
        #expect(life.phase == .streaming)
    }
}
