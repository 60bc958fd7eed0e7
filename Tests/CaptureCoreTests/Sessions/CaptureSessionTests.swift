import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct CaptureSessionTests {
    private let owner = LockHolder(uid: 1000, gid: 1000, pid: 7, startTime: 70, name: "me")
    private let surroundings = CaptureSession.Surroundings(known: ["back", "front", "small", "new"]) { id in
        switch id {
        case "back": SessionDevice(id: id, position: .back, formats: SampleDevice.formats)
        case "front": SessionDevice(id: id, position: .front, formats: SampleDevice.formats)
        case "small": SessionDevice(id: id, position: .external, formats: [SampleDevice.formats[0]])
        case "new": SessionDevice(id: id, position: .external, formats: nil)
        default: nil
        }
    }

    private func session(_ actions: JSONValue...) throws -> CaptureSession {
        var session = CaptureSession(id: "5e55", owner: owner, since: 1)
        try configure(&session, actions)
        return session
    }

    private func configure(_ session: inout CaptureSession, _ actions: [JSONValue]) throws {
        var parsed: [(action: SessionAction, path: String)] = []
        for (index, action) in actions.enumerated() {
            let path = "actions[\(index)]"
            parsed.append((try SessionAction.parse(action, path: path), path))
        }
        try session.configure(parsed, in: surroundings)
    }

    private func refusal(_ session: CaptureSession, _ actions: JSONValue...) -> BusError? {
        var session = session
        do { try configure(&session, actions) } catch { return error as? BusError }
        return nil
    }

    @Test func `every input is joined with every output`() throws {
        var session = try session(
            ["addInput": "back"], ["addInput": "small"], ["addOutput": "videoData"], ["addOutput": "preview"],
            ["addOutput": ["type": "videoData", "width": 320]])
        #expect(session.outputs.map(\.id) == ["videoData", "preview", "videoData-2"])
        #expect(session.connections.count == 6)
        #expect(session.connections(of: "preview").allSatisfy { $0.videoMirrored == .auto })
        #expect(session.connections(of: "videoData").allSatisfy { $0.videoMirrored == .off })
        try configure(
            &session,
            [["connection": ["output": "videoData", "videoOrientation": "portrait"]], ["removeInput": "back"]])
        #expect(session.connections.count == 3)
        #expect(session.connections(of: "videoData").map(\.videoOrientation) == [.portrait])
    }

    @Test func `all actions or none`() throws {
        let session = try session(["addInput": "back"], ["addOutput": "photo"])
        var changed = session
        #expect(throws: BusError.self) {
            try configure(&changed, [["preset": "640x480"], ["addOutput": "photo"]])
        }
        #expect(changed == session)
    }

    @Test func `what can't be added says why`() throws {
        let session = try session(["addInput": "back"], ["addOutput": "photo"], ["addOutput": "movie"])
        let cases: [(JSONValue, BusError.Reason, String?)] = [
            (["addInput": "back"], .cannotAddInput, "it is already an input of this session"),
            (["addInput": "none"], .deviceNotFound, nil),
            (["addOutput": "photo"], .cannotAddOutput, "a session has at most one photo output"),
            (["addOutput": "movie"], .cannotAddOutput, "a session has at most one movie output"),
            (["addOutput": "metadata"], .cannotAddOutput, "this bus does not detect metadata in pictures"),
            (["removeInput": "front"], .invalidParams, "'front' is not an input of this session"),
            (
                ["setOutput": ["output": "photo", "width": 100]], .invalidParams,
                "a photo output has only the options preRoll, photoSettingsForSceneMonitoring, "
                    + "livePhotoCaptureEnabled, livePhotoCaptureSuspended and livePhotoAutoTrimmingEnabled"
            ),
            (
                ["addOutput": ["type": "videoData", "format": "nv12", "width": 3]], .invalidParams,
                "nv12 needs an even width and height"
            ),
            (
                ["addOutput": ["type": "preview", "format": "bgr", "quality": 3]], .invalidParams,
                "quality is for jpeg only"
            ),
            (["setInput": ["device": "back", "activeFormat": ["width": 5, "height": 5]]], .formatUnsupported, nil),
            (["addInput": ["device": "front", "activeFormat": "f1", "frameRate": 30]], .frameRateUnsupported, nil),
        ]
        for (action, reason, why) in cases {
            let error = try #require(refusal(session, action), "\(action)")
            #expect(error.reason == reason, "\(action): \(error.message)")
            if let why { #expect(error.data["why"]?.string == why) }
        }
        #expect(refusal(session, ["addInput": "new"]) == nil)
    }

    @Test func `there are limits`() throws {
        var many = CaptureSession(id: "5e55", owner: owner, since: 1)
        try configure(&many, Array(repeating: ["addOutput": "videoData"], count: CaptureSession.maximumOutputs))
        #expect(refusal(many, ["addOutput": "preview"])?.reason == .cannotAddOutput)
        #expect(refusal(many, ["priority": 1001])?.reason == .invalidParams)
    }

    @Test func `a format of one's own ends the preset, and a preset ends it`() throws {
        var session = try session(
            ["addInput": "back"], ["setInput": ["device": "back", "activeFormat": "f2", "frameRate": 60]])
        #expect(session.preset == .inputPriority)
        guard
            case .format(let selection, let id, let rates)? = session.demand(on: "back", formats: SampleDevice.formats)?
                .wish
        else { throw Wrong() }
        #expect(selection == FormatSelection(pixelFormat: .motionJPEG, dimensions: Dimensions(width: 640, height: 480)))
        #expect(id == "f2" && rates == FrameDurationBounds(constant: duration(1, 60)))
        try configure(&session, [["preset": "inputPriority"]])
        #expect(session.inputs[0].activeFormat != nil)
        var high = session
        high.preset = .high
        high.inputs[0].activeFormat = nil
        high.inputs[0].frameRate = nil
        // Whatever the preset: one that is set resets both.
        try? configure(&session, [["preset": "high"]])
        if session.preset == .high { #expect(session == high) }
    }

    @Test func `what an output gets is turned, mirrored, made smaller, and never larger`() throws {
        let session = try session(
            ["addInput": "front"], ["addOutput": "preview"], ["addOutput": ["type": "videoData", "height": 240]],
            ["addOutput": ["type": "videoData", "width": 5000, "height": 2500, "frameRate": 10]],
            ["addOutput": ["type": "videoData", "format": "native", "id": "raw"]], ["addOutput": "photo"],
            ["connection": ["output": "preview", "videoOrientation": "portrait"]])
        var base = Rendition(.native)
        base.rateMillionths = 15_000_000
        let delivery = DemandDelivery(
            rendition: base, dimensions: Dimensions(width: 640, height: 480), frameDuration: duration(1, 15))
        let got = session.deliveries(of: "front", delivery, position: .front)
        #expect(
            got.map { $0.rendition?.description } == [
                "jpeg:480x640@15;rotate=90;mirror", "bgr:320x240@15", "bgr:640x320@10", "native@15", nil,
            ])
        #expect(got[2].why != nil && got[1].why == nil)
        #expect(got[2].frameRate == 10 && got[1].frameRate == 15)
        #expect(got[0].json(refused: nil)["topic"] == "frame/front/jpeg:480x640@15;rotate=90;mirror/")
        // Of pictures that have to be turned to be upright, and perhaps turned again.
        let turned = PictureOrientation(quarters: 3, isMirrored: false)
        #expect(
            session.deliveries(of: "front", delivery, position: .front, orientation: turned).map {
                $0.rendition?.description
            } == ["jpeg:640x480@15;rotate=90;mirror", "bgr:180x240@15", "bgr:480x240@10", "native@15", nil])
        let sizes = session.deliveries(of: "front", delivery, position: .front, orientation: turned).map(\.dimensions)
        #expect(sizes.last == Dimensions(width: 480, height: 640), "what a photo shows")
        let line = DemandDelivery(
            rendition: base, dimensions: Dimensions(width: 1, height: 240), frameDuration: nil, pixelFormat: .rgb24)
        let narrow = session.deliveries(of: "front", line, position: .back)
        #expect(narrow[0].rendition?.description == "jpeg:240x1@15;rotate=90" && narrow[0].obstacle == nil)
        #expect(narrow[1].rendition?.description == "bgr:1x240@15" && narrow[1].obstacle == nil)
        var planar = session
        try configure(&planar, [["addOutput": ["type": "videoData", "format": "nv12", "id": "planar"]]])
        let obstacle = planar.deliveries(of: "front", line, position: .back).last?.obstacle
        #expect(obstacle == "front delivers 1x240, and nv12 needs two pixels on each side; take rgb")
        // Another camera, another mirror.
        #expect(session.deliveries(of: "front", delivery, position: .back)[0].rendition?.isVideoMirrored == false)
    }

    @Test func `only its user and administrators may change it`() throws {
        let session = try session()
        #expect(throws: Never.self) { try session.check(Editor(uid: 1000, isAdmin: false)) }
        #expect(throws: Never.self) { try session.check(Editor(uid: 0, isAdmin: true)) }
        let refusal = #expect(throws: BusError.self) { try session.check(Editor(uid: 1001, isAdmin: false)) }
        #expect(refusal?.reason == .unauthorized && refusal?.data["owner"] == 1000)
        #expect(refusal?.message.contains("(uid 1000); only that user and administrators") == true)
    }

    @Test func `a priority above 0, or above what an administrator has set, needs an administrator`() throws {
        var session = try session()
        func isRefused(_ priority: Int, isAdmin: Bool = false) -> Bool {
            (try? session.check(Editor(uid: 1000, isAdmin: isAdmin), priority: priority)) == nil
        }
        #expect(!isRefused(0) && !isRefused(-1000) && isRefused(1) && !isRefused(1000, isAdmin: true))
        try session.configure([(.priority(5), "priority")], in: surroundings)
        #expect(!isRefused(5) && !isRefused(-5) && isRefused(6))
    }

    @Test func `another camera keeps what it can, and drops what it can't`() throws {
        let session = try session(
            ["addInput": ["device": "back", "activeFormat": "f4", "frameRate": 30]],
            ["addOutput": ["type": "videoData", "width": 1280, "height": 720]],
            ["connection": ["output": "videoData", "videoMirrored": "auto", "videoOrientation": "portrait"]])
        let (front, kept) = try session.switched(to: "front", in: surroundings)
        #expect(kept.isEmpty)
        #expect(front.inputs == [SessionInput(device: "front", activeFormat: .id("f4"), frameRate: .rate(30))])
        #expect(front.connections[0].videoOrientation == .portrait && front.connections[0].input == "front")
        let (same, _) = try session.switched(to: "back", in: surroundings)
        #expect(same == session)
        #expect(throws: BusError.self) { try session.switched(to: "none", in: surroundings) }
    }

    @Test func `what is kept is read again`() throws {
        var session = try session(
            ["addInput": ["device": "back", "activeFormat": ["width": 640, "height": 480], "frameRate": "60/2"]],
            ["addInput": "small"], ["addOutput": ["type": "preview", "width": 320, "quality": 50, "frameRate": 12.5]],
            ["addOutput": "photo"], ["priority": -5], ["connection": ["output": "preview", "enabled": false]])
        session.name = "name"
        session.lockID = "7f3a90c1"
        _ = session.run.start()
        _ = session.run.serve()
        let read = try #require(CaptureSession(keptJSON: try JSONValue(parsing: session.keptJSON.description)))
        var expected = session
        expected.run = SessionRun(isWanted: true, hasStarted: true)
        #expect(read == expected)
        #expect(read.run.state == .starting)
        // Written by a version whose strings were frame durations.
        var old = session.keptJSON.object ?? [:]
        old["inputs"] = [["device": "back", "frameRate": "1001/30000"], ["device": "small"]]
        #expect(CaptureSession(keptJSON: .object(old))?.inputs.first?.frameRate == .duration(duration(1001, 30000)))
        for name in ["id", "owner", "detached", "preset", "priority", "inputs", "outputs", "connections", "wanted"] {
            var damaged = session.keptJSON.object ?? [:]
            damaged[name] = nil
            #expect(CaptureSession(keptJSON: .object(damaged)) == nil, "\(name)")
        }
    }

    @Test func `devices get other names all at once`() throws {
        var session = try session(["addInput": "back"], ["addInput": "front"], ["addOutput": "videoData"])
        let isOther = session.rename(["back": "front", "front": "back"])
        #expect(isOther)
        #expect(session.inputs.map(\.device) == ["front", "back"])
        #expect(session.connections.map(\.input) == ["front", "back"])
        let isSame = !session.rename(["small": "large"])
        #expect(isSame)
    }

    private struct Wrong: Error {}
}

@Suite struct SessionRunTests {
    private let lost = SessionInterruption(.deviceDisconnected, device: "a", cause: "gone")
    private let taken = SessionInterruption(.videoDeviceInUseByAnotherClient, device: "a", cause: "taken")

    private func started() -> SessionRun {
        var run = SessionRun()
        _ = run.start()
        return run
    }

    @Test func `a start and a stop are told once`() {
        var run = SessionRun()
        let (idle, first, second) = (run.stop(), run.start(), run.start())
        #expect(idle == [] && first && !second)
        #expect(run.state == .starting)
        let served = [run.serve(), run.serve()]
        #expect(served == [[.didStartRunning], []])
        let stopped = [run.stop(), run.stop()]
        #expect(stopped == [[.didStopRunning], []])
        #expect(run == SessionRun())
    }

    @Test func `an interruption is remembered over, and told once`() {
        var run = started()
        _ = run.serve()
        let told = [run.interrupt(lost), run.interrupt(lost), run.interrupt(taken)]
        #expect(told == [[.wasInterrupted(lost)], [], [.wasInterrupted(taken)]])
        #expect(run.state == .interrupted && run.interruption == taken)
        let ended = run.serve()
        #expect(ended == [.interruptionEnded])
        #expect(run.interruption == nil)
    }

    @Test func `one that never ran starts when the interruption ends`() {
        var run = started()
        let told = [run.interrupt(lost), run.serve()]
        #expect(told == [[.wasInterrupted(lost)], [.interruptionEnded, .didStartRunning]])
    }

    @Test func `a stop cancels what was wanted`() {
        var run = started()
        _ = run.interrupt(lost)
        let told = [run.stop(), run.serve(), run.interrupt(lost)]
        #expect(told == [[], [], []] && run.state == .stopped)
    }

    @Test func `one that waits for permission does nothing else until it has it`() {
        var run = started()
        let (waits, again) = (run.waitForAuthorization(), run.waitForAuthorization())
        #expect(waits && !again && run.isWanted && !run.isActive && run.state == .waitingForAuthorization)
        let ignored = [run.serve(), run.interrupt(lost)]
        #expect(ignored == [[], []] && run.state == .waitingForAuthorization && run.interruption == nil)
        let (isStartedAgain, goes, goesAgain) = (run.start(), run.authorized(), run.authorized())
        #expect(!isStartedAgain && goes && !goesAgain && run.state == .starting)
        let served = run.serve()
        #expect(served == [.didStartRunning])
        // One that is not wanted has nothing to wait for.
        var idle = SessionRun()
        let idleWaits = idle.waitForAuthorization()
        #expect(!idleWaits && idle == SessionRun())
        // Stopped meanwhile, it has told nothing and tells nothing.
        run = started()
        _ = run.waitForAuthorization()
        let stopped = run.stop()
        #expect(stopped == [] && run == SessionRun())
    }

    @Test func `an error passes, or stops it`() {
        var run = started()
        _ = run.serve()
        let error = BusError(.workerCrashed, "gone")
        let passing = run.fail(error, stops: false)
        #expect(passing == [.runtimeError(error)] && run.state == .starting)
        let back = run.serve()
        #expect(back == [])
        let last = run.fail(error, stops: true)
        #expect(last == [.runtimeError(error), .didStopRunning])
        #expect(!run.isWanted)
    }
}
