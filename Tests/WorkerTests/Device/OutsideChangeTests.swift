import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing

@testable import Worker

/// What others change, with a lock and without one, and what a device tells of it.
extension RestoringTests {
    @Test("the lock takes the kernel's priority, also when the device is opened again, and gives it back")
    func priority() throws {
        let worker = try worker(nil) { $0.idleCloseMilliseconds = 50 }
        try worker.coordinator.waitForStatus("open") { $0["kernelPriority"] == "default" }
        _ = try worker.coordinator.order(.lock, fence: 3).get()
        try worker.coordinator.waitForStatus("ours") { $0["kernelPriority"] == "record" }
        let gone = SourceError(.disconnected, operation: "VIDIOC_DQEVENT", message: "gone")
        bench.set { $0.openFailure = gone }
        bench.told.fail(gone)
        try worker.coordinator.waitForStatus("gone") { $0["error"]?["reason"] == "deviceDisconnected" }
        try worker.coordinator.waitForStatus("closed") { $0["kernelPriority"] == .null }
        bench.told.fail(nil)
        bench.set { $0.openFailure = nil }
        try worker.coordinator.waitForStatus("back") { $0["kernelPriority"] == "record" && $0["error"] == .null }
        _ = try worker.coordinator.order(.unlock, fence: 3).get()
        try worker.coordinator.waitForStatus("everybody's") { $0["kernelPriority"] != "record" }
        #expect(bench.now.priority == .default)
    }

    @Test("changes by others under a lock are reverted, until the worker gives up")
    func underLock() throws {
        bench.set { $0.priorityForLock = .unsupported }
        let worker = try worker(nil)
        try set(worker, ["brightness": 30])
        _ = try worker.coordinator.order(.lock, fence: 3).get()
        try worker.coordinator.waitForStatus("locked") { $0["kernelPriority"] == "unsupported" }
        for value: Int64 in 1...5 {
            bench.set { $0.meddled = ["brightness": .integer(value)] }
            bench.told.tell(
                .control(ControlEvent(id: 0x98_0900, value: .integer(value), time: MonotonicClock.now())))
            #expect(try event(worker, "restored")["controls"]?["brightness"]?["new"] == 30)
        }
        bench.set { $0.meddled = ["brightness": .integer(6)] }
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(6), time: MonotonicClock.now())))
        let status = try worker.coordinator.waitForStatus("given up") { $0["notRestored"] != [] }
        #expect(status["notRestored"]?[0]?["path"] == "controls.brightness")
        #expect(status["controls"]?["brightness"] == 6)
        // For a while only.
        _ = try worker.coordinator.wait("the end of the while", seconds: 20) {
            if case .status(let now) = $0 { now["controls"]?["brightness"] == 30 } else { false }
        }
        bench.set { $0.meddled = ["brightness": .integer(6)] }
        // Whoever takes the lock begins anew.
        _ = try worker.coordinator.order(.unlock, fence: 3).get()
        _ = try worker.coordinator.order(.lock, fence: 4).get()
        try worker.coordinator.waitForStatus("as committed") {
            $0["controls"]?["brightness"] == 30 && $0["notRestored"] == []
        }
    }

    @Test("a control that doesn't keep what is put back is given up as well")
    func stubborn() throws {
        bench.set { $0.priorityForLock = .unsupported }
        let worker = try worker(nil)
        try set(worker, ["brightness": 30])
        _ = try worker.coordinator.order(.lock, fence: 3).get()
        try worker.coordinator.waitForStatus("locked") { $0["kernelPriority"] == "unsupported" }
        bench.set {
            $0.stubborn = ["brightness": .integer(7)]
            $0.meddled = ["brightness": .integer(6)]
        }
        var tries = 0
        _ = try worker.coordinator.wait("given up") { _ in
            tries += 1
            bench.told.tell(
                .control(ControlEvent(id: 0x98_0900, value: .integer(Int64(tries % 20)), time: MonotonicClock.now())))
            let why = (try? worker.coordinator.status["notRestored"]?[0]?["why"]?.string) ?? nil
            return why?.contains("keeps changing it") == true
        }
    }

    @Test("what was refused because of another program is asked for again while it is locked")
    func refusedPriority() throws {
        bench.set { $0.priorityForLock = .refused }
        let worker = try worker(nil)
        _ = try worker.coordinator.order(.lock, fence: 3).get()
        try worker.coordinator.waitForStatus("refused") { $0["kernelPriority"] == "refused" }
        bench.set { $0.priorityForLock = .record }
        try worker.coordinator.waitForStatus("ours") { $0["kernelPriority"] == "record" }
    }

    @Test("the priority is told though nothing can be put back under it")
    func priorityAlone() throws {
        bench.set { $0.stubborn = ["gain": .integer(9)] }
        let worker = try worker(committed([("gain", 5)]))
        try worker.coordinator.waitForStatus("open") { $0["notRestored"] != [] && $0["kernelPriority"] == "default" }
        bench.set { $0.readFailure = SourceError(.failed, operation: "VIDIOC_QUERY_EXT_CTRL", message: "EIO") }
        _ = try worker.coordinator.order(.lock, fence: 3).get()
        try worker.coordinator.waitForStatus("ours") { $0["kernelPriority"] == "record" }
    }

    @Test("a driver that announces events and has none is asked less often, and heard when it has some")
    func emptyWakes() throws {
        let worker = try worker(nil)
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        let fetched = bench.told.fetched
        bench.told.stick(true)
        _ = try worker.coordinator.wait("ten empty wakes") { _ in bench.told.fetched - fetched >= 10 }
        bench.told.stick(false)
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(77), time: MonotonicClock.now())))
        #expect(try event(worker, "external")["controls"]?["brightness"]?["new"] == 77)
    }

    @Test("without a lock what others change stays, and is told with the old value")
    func withoutLock() throws {
        let worker = try worker(nil)
        try set(worker, ["brightness": 30])
        bench.set { $0.meddled = ["brightness": .integer(2)] }
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(2), time: MonotonicClock.now())))
        #expect(try event(worker, "external")["controls"] == ["brightness": ["old": 30, "new": 2]])
        #expect(try worker.coordinator.status["controls"]?["brightness"] == 2)
        // What has to be read is read.
        bench.set { $0.meddled["gain"] = .integer(8) }
        bench.told.tell(.control(ControlEvent(id: 0x98_0913, mustBeRead: true, time: MonotonicClock.now())))
        #expect(try event(worker, "external")["controls"] == ["gain": ["old": 0, "new": 8]])
        // An event from before the last reading is no news; flags are told as such.
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(77), time: 1)))
        bench.set { $0.flags = ["gain": [.inactive]] }
        bench.told.tell(.control(ControlEvent(id: 0x98_0913, flags: [.inactive], time: MonotonicClock.now())))
        let flags = try event(worker, "external")
        #expect(flags["controls"] == [:])
        #expect(flags["described"] == ["gain"])
    }

    @Test("a flood of events is reported ten times per second")
    func flood() throws {
        let worker = try worker(nil)
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        let (begun, fetched) = (MonotonicClock.now(), bench.told.fetched)
        for value: Int64 in 1...3000 {
            bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(value % 100), time: begun + value)))
        }
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(99), time: begun + 5000)))
        var events = 0
        _ = try worker.coordinator.wait("the last value") {
            if case .event(_, let members) = $0 {
                events += 1
                return members["controls"]?["brightness"]?["new"] == 99
            }
            return false
        }
        let tenths = (MonotonicClock.now() - begun) / 100_000_000
        #expect(events <= tenths + 2)
        #expect(bench.told.fetched - fetched <= 3001 + events + 2)
    }

    @Test("values that the camera changes are published twice a second, and delay nothing else")
    func restless() throws {
        bench.set { $0.flags = ["gain": [.inactive]] }
        let worker = try worker(nil)
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        let begun = MonotonicClock.now()
        func move(_ value: Int64) {
            bench.told.tell(.control(ControlEvent(id: 0x98_0913, value: .integer(value), time: MonotonicClock.now())))
        }
        move(1)
        var (events, next) = (0, Int64(2))
        // Each time that it is asked for more it has moved on.
        _ = try worker.coordinator.wait("several values") {
            guard case .event(_, let members) = $0, let new = members["controls"]?["gain"]?["new"] else { return false }
            events += 1
            if events == 4 { return true }
            #expect(new.integer ?? 0 < next)
            for _ in 0..<3 {
                move(next)
                next += 1
            }
            return false
        }
        #expect(MonotonicClock.now() - begun >= 3 * EventPacer.period)
        // What somebody else sets is told at once, with what was held.
        move(next)
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(77), time: MonotonicClock.now())))
        let told = try event(worker, "external")["controls"]
        #expect(told?["brightness"]?["new"] == 77)
    }

    @Test("another program that has the device is named to subscribers and in state")
    func named() throws {
        bench.set {
            var failure = SourceError(.inUse, operation: "VIDIOC_STREAMON", errno: 16, message: "busy")
            failure.holders = [DeviceHolder(pid: 812, uid: 1000, name: "cheese")]
            $0.startFailure = failure
        }
        let worker = try worker(nil)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let refused = try subscriber.next { $0.header["error"] != nil }
        #expect(refused.header["error"]?["reason"] == "deviceInUse")
        #expect(refused.header["error"]?["data"]?["by"] == [["pid": 812, "uid": 1000, "name": "cheese"]])
        let status = try worker.coordinator.waitForStatus("error") { $0["error"] != .null }
        #expect(status["error"]?["message"]?.string?.contains("cheese (pid 812)") == true)
    }

    @Test("a restart of the picture's source restarts the stream")
    func sourceChange() throws {
        let worker = try worker(nil)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try subscriber.next { $0.header["stream"] != nil }.header["stream"]
        bench.told.tell(.sourceChanged(resolution: true))
        _ = try worker.coordinator.wait("the event") {
            if case .event("sourceChanged", let members) = $0 { members["resolution"] == true } else { false }
        }
        _ = try subscriber.next { ($0.header["stream"] ?? before) != before }
        #expect(bench.now.calls.filter { $0 == "open" }.count == 1)
    }

    @Test func `the state has what the frames of the present stream state`() throws {
        let worker = try worker(nil)
        let closed = try worker.coordinator.waitForStatus("what it is set to") { $0["formatDescription"] != .null }
        #expect(closed["formatDescription"]?["yCbCrMatrix"] == "smpte170m" && closed["stream"] == .null)
        #expect(closed["formatDescription"]?["frameDuration"] == "1/100")
        let subscriber = try worker.subscriber("frame/cam0/native/")
        _ = try subscriber.next { $0.header["stream"] != nil }
        bench.set {
            $0.color = ColorDescription(primaries: .bt2020, matrix: .bt2020nc, range: .full)
            $0.meddled = ["brightness": .integer(7)]
        }
        // The device is read, but there is no new stream: its frames are stated to be as they were.
        bench.told.tell(.sourceChanged(resolution: false))
        let read = try worker.coordinator.waitForStatus("what was read") { $0["controls"]?["brightness"] == 7 }
        #expect(read["formatDescription"]?["yCbCrMatrix"] == "smpte170m")
        bench.told.tell(.sourceChanged(resolution: true))
        let status = try worker.coordinator.waitForStatus("other colours") {
            $0["formatDescription"]?["yCbCrMatrix"] == "bt2020nc"
        }
        let header = try subscriber.next { $0.header["yCbCrMatrix"] == "bt2020nc" }.header
        for name in ["colorPrimaries", "colorRange", "orientation", "mirrored", "width", "height", "transferFunction"] {
            #expect(status["formatDescription"]?[name] == header[name], "\(name)")
        }
    }
}
