import BusProtocol
import JSON
import Testing

@testable import CaptureCore

private let second: Int64 = 1_000_000_000

@Suite struct LivePhotoWindowTests {
    @Test func itIsCentredOnThePhoto() {
        let window = LivePhotoWindow(moment: 100 * second)
        #expect(window.duration == 3 * second && window.photoDisplayTime == second * 3 / 2)
        #expect(window.contains(window.start) && window.contains(window.end) && !window.isOver(at: window.end))
        #expect(window.isOver(at: window.end + 1))
    }

    @Test func itNeverLosesThePhotoItself() {
        var window = LivePhotoWindow(moment: 100 * second, notBefore: 101 * second)
        #expect(window.start == window.moment)
        window.end(at: 99 * second)
        #expect(window.end == window.moment && window.duration == 0 && window.contains(window.moment))
        // It only ever gets shorter.
        window.end(at: 105 * second)
        window.begin(at: 90 * second)
        #expect(window.duration == 0)
    }

    @Test(arguments: [Int64.min, .max]) func timesThatCanNotBeAreNoCrash(moment: Int64) {
        _ = LivePhotoWindow(moment: moment, notBefore: 0)
    }
}

@Suite struct LivePhotoRunTests {
    @Test func severalOverlap() throws {
        var run = LivePhotoRun()
        let first = try run.begin("a", moment: 10 * second, oldest: 7 * second)
        let later = try run.begin("b", moment: 11 * second, oldest: 7 * second)
        #expect(first.duration == 3 * second && later.start == 9 * second + second / 2)
        #expect(run.windows == ["a": first, "b": later])
        run.finish("a")
        #expect(run.windows == ["b": later])
        #expect(throws: BusError.self) { try run.begin("b", moment: 12 * second, oldest: nil) }
        for id in ["c", "d", "e"] { _ = try run.begin(id, moment: 12 * second, oldest: nil) }
        let error = #expect(throws: BusError.self) { try run.begin("f", moment: 12 * second, oldest: nil) }
        #expect(error?.reason == .limitExceeded && error?.data["limit"] == "livePhotos")
    }

    @Test func whatIsNotHeldYetIsNotInIt() throws {
        var run = LivePhotoRun()
        let window = try run.begin("a", moment: 10 * second, oldest: 9 * second)
        #expect(window.photoDisplayTime == second && window.duration == 5 * second / 2)
    }

    @Test func suspendedItTrimsAndForgets() throws {
        var run = LivePhotoRun()
        _ = try run.begin("a", moment: 10 * second, oldest: 0)
        run.setSuspended(true, at: 10 * second + second / 2)
        #expect(run.windows["a"]?.duration == 2 * second)
        let error = #expect(throws: BusError.self) { try run.begin("b", moment: 11 * second, oldest: 0) }
        #expect(error?.reason == .invalidParams)
        #expect(run.past(from: 0, to: 11 * second) == 0)
        // Its picture was taken before, whenever word of it comes.
        #expect(try run.begin("e", moment: 10 * second, oldest: 0).duration == 2 * second)
        run.setSuspended(false, at: 12 * second)
        // Said again it is nothing new.
        run.setSuspended(false, at: 12 * second + second / 2)
        #expect(run.past(from: 0, to: 13 * second) == second && run.past(from: 0, to: 11 * second) == 0)
        #expect(run.past(from: 0, to: 20 * second) == second * 3 / 2 && run.past(from: nil, to: nil) == 0)
        #expect(try run.begin("c", moment: 13 * second, oldest: 0).photoDisplayTime == second)
        #expect(try run.begin("d", moment: 20 * second, oldest: 0).photoDisplayTime == second * 3 / 2)
    }

    @Test func aReconfigurationEndsThemWithWhatTheyHave() throws {
        var run = LivePhotoRun()
        _ = try run.begin("a", moment: 10 * second, oldest: 0)
        run.restart(at: 10 * second + second / 10)
        #expect(run.windows["a"]?.duration == second * 16 / 10)
        #expect(try run.begin("b", moment: 11 * second, oldest: 0).photoDisplayTime == second * 9 / 10)
    }
}

@Suite struct MotionTrimmingTests {
    private let window = LivePhotoWindow(moment: 10 * second)

    /// 30 pictures a second from 8.5 s to 11.5 s; the amount by the time in hundredths of a second.
    private func log(_ amount: (Int64) -> Double) -> MotionTrimming {
        var trimming = MotionTrimming()
        for number in Int64(0)...90 {
            let time = window.start + number * second / 30
            trimming.add(amount(time / (second / 100)), at: time)
        }
        return trimming
    }

    @Test func whatIsStillIsWhole() {
        let trimming = log { _ in 1 }
        #expect(trimming.start(of: window) == nil && trimming.end(of: window) == nil)
        let none = MotionTrimming()
        #expect(none.start(of: window) == nil && none.end(of: window) == nil)
    }

    @Test func aCameraThatIsLiftedAndPutAwayIsCutOff() throws {
        let trimming = log { $0 < 930 || $0 > 1080 ? 40 : 2 }
        let start = try #require(trimming.start(of: window))
        let end = try #require(trimming.end(of: window))
        #expect(start > 9 * second && start <= 9 * second + second * 3 / 10)
        #expect(end >= 10 * second + second * 7 / 10 && end <= 10 * second + second * 8 / 10)
    }

    @Test func oneFlashIsNoMovement() {
        let trimming = log { (950..<954).contains($0) || (1050..<1056).contains($0) ? 200 : 1 }
        #expect(trimming.start(of: window) == nil && trimming.end(of: window) == nil)
    }

    @Test func whoFilmsWhatMovesIsNotCut() {
        // As much around the photo as anywhere.
        let trimming = log { _ in 30 }
        #expect(trimming.start(of: window) == nil && trimming.end(of: window) == nil)
    }

    @Test func itHoldsNoMoreThanItMay() {
        var trimming = MotionTrimming()
        for number in Int64(0)..<5000 { trimming.add(number > 4500 ? 1 : 100, at: number * second / 100) }
        trimming.add(.nan, at: 100 * second)
        trimming.add(50, at: 0)
        #expect(trimming.end(of: LivePhotoWindow(moment: 48 * second)) == nil)
    }
}

@Suite struct SceneMonitorTests {
    private final class Watch {
        private(set) var monitor: SceneMonitor

        init(_ settings: SceneMonitor.Settings) { monitor = SceneMonitor(settings) }

        /// - Returns: how often a verdict turned.
        func see(_ luma: Double, _ times: Int, exposure: Int64? = nil) -> Int {
            (0..<times).count { _ in monitor.see(SceneMonitor.Sight(luma: luma, exposureDuration: exposure)) }
        }

        var isFlashScene: Bool { monitor.isFlashScene }
        var isStabilizationScene: Bool { monitor.isStabilizationScene }
    }

    @Test func aDarkSceneIsOneForAFlash() {
        let monitor = Watch(.init(flash: .auto))
        #expect(!monitor.isFlashScene && monitor.see(30, 2) == 0 && !monitor.isFlashScene)
        #expect(monitor.see(30, 1) == 1 && monitor.isFlashScene)
        // In between it stays as it is.
        #expect(monitor.see(70, 20) == 0 && monitor.isFlashScene)
        #expect(monitor.see(80, 2) == 0 && monitor.see(70, 1) == 0 && monitor.see(80, 2) == 0)
        #expect(monitor.see(80, 1) == 1 && !monitor.isFlashScene && !monitor.isStabilizationScene)
    }

    @Test func onlyWhatIsLookedForIsTold() {
        let off = Watch(.init())
        #expect(
            off.see(1, 9) == 0 && !off.isFlashScene && !off.isStabilizationScene && !off.monitor.settings.isMonitored)
        let on = Watch(.init(flash: .on))
        #expect(on.see(200, 9) == 0 && on.isFlashScene && !on.monitor.settings.isMonitored)
    }

    @Test func longExposuresWantASteadyPicture() {
        let monitor = Watch(.init(stabilization: true))
        #expect(monitor.see(120, 3, exposure: 40_000_000) == 1 && monitor.isStabilizationScene)
        #expect(monitor.see(120, 9, exposure: 30_000_000) == 0 && monitor.isStabilizationScene)
        #expect(monitor.see(20, 3, exposure: 10_000_000) == 1 && !monitor.isStabilizationScene)
        #expect(monitor.see(80, 3) == 1 && monitor.see(.nan, 3) == 0 && monitor.isStabilizationScene)
        #expect(monitor.see(110, 3) == 1 && !monitor.isStabilizationScene)
    }
}

@Suite struct LivePhotoOutputTests {
    private func session(_ preset: SessionPreset, _ actions: JSONValue...) throws -> CaptureSession {
        let owner = LockHolder(uid: 1000, gid: 1000, pid: 42, startTime: 7, name: "probe")
        var session = CaptureSession(id: "5e55", owner: owner, since: 1, preset: preset)
        let surroundings = CaptureSession.Surroundings(known: ["front", "back"]) { Self.device($0) }
        var parsed: [(action: SessionAction, path: String)] = []
        for action in actions { parsed.append((try SessionAction.parse(action, path: "a"), "a")) }
        try session.configure(parsed, in: surroundings)
        return session
    }

    private static func device(_ id: String) -> SessionDevice? {
        SessionDevice(id: id, position: .unspecified, formats: id == "new" ? nil : SampleDevice.formats)
    }

    @Test func whatIsInTheWayIsTold() throws {
        let whole = try session(.photo, ["addInput": "back"], ["addOutput": "photo"], ["addOutput": "videoData"])
        #expect(whole.livePhotoObstacle(Self.device) == nil)
        let others: [(CaptureSession, String)] = [
            (try session(.photo, ["addInput": "back"]), "no photo output"),
            (try session(.high, ["addInput": "back"], ["addOutput": "photo"]), "preset 'high'"),
            (try session(.photo, ["addInput": "back"], ["addOutput": "photo"], ["addOutput": "movie"]), "movie output"),
            (try session(.photo, ["addOutput": "photo"]), "has none"),
            (try session(.photo, ["addInput": "back"], ["addInput": "front"], ["addOutput": "photo"]), "has 2"),
        ]
        for (session, why) in others {
            #expect(session.livePhotoObstacle(Self.device)?.contains(why) == true, "\(why)")
        }
    }

    @Test func itIsEnabledBeforeItIsUsed() throws {
        var output = LivePhotoOutput()
        let suspended = #expect(throws: BusError.self) {
            try output.set(.init(isSuspended: true), obstacle: nil, path: "setOutput")
        }
        #expect(suspended?.data["path"] == "setOutput.livePhotoCaptureSuspended")
        let refused = #expect(throws: BusError.self) {
            try output.set(.init(isEnabled: true), obstacle: "so and so", path: "setOutput")
        }
        #expect(refused?.data["why"] == "can't be true: so and so" && !output.isEnabled)
        let both = try output.set(.init(isEnabled: true, isSuspended: true), obstacle: nil, path: "")
        #expect(both == .reconfiguration && output.isEnabled && output.isSuspended && output.isAutoTrimming)
        let on = try output.set(.init(isSuspended: false), obstacle: nil, path: "")
        let again = try output.set(.init(isSuspended: false), obstacle: nil, path: "")
        #expect(on == .suspension(false) && again == .nothing)
        let untrimmed = try output.set(.init(isAutoTrimming: false), obstacle: nil, path: "")
        #expect(untrimmed == .reconfiguration && !output.isAutoTrimming)
    }

    @Test func whatCannotBeAnyMoreIsOff() throws {
        var output = LivePhotoOutput()
        let trimmed = try output.set(.init(isAutoTrimming: false), obstacle: "a movie output", path: "")
        let settled = output.settle(obstacle: "a movie output")
        #expect(trimmed == .nothing && settled == .nothing)
        _ = try output.set(.init(isEnabled: true, isSuspended: true), obstacle: nil, path: "")
        let still = output.settle(obstacle: nil)
        let ended = output.settle(obstacle: "a movie output")
        #expect(still == .nothing && ended == .reconfiguration && !output.isEnabled && !output.isSuspended)
        // It doesn't come back by itself, and keeps how it trims.
        let later = output.settle(obstacle: nil)
        #expect(later == .nothing && !output.isEnabled && !output.isAutoTrimming)
    }
}
