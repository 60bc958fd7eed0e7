import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// Live photos as a session's clients ask for them, and what turns them off.
@Suite struct LivePhotoSessionTests {
    private static var surroundings: CaptureSession.Surroundings {
        CaptureSession.Surroundings(known: ["front", "back"]) { id in
            SessionDevice(id: id, position: .unspecified, formats: SampleDevice.formats)
        }
    }

    private func session(_ preset: SessionPreset = .photo, _ output: JSONValue = "photo") throws -> CaptureSession {
        let owner = LockHolder(uid: 1000, gid: 1000, pid: 42, startTime: 7, name: "probe")
        var session = CaptureSession(id: "5e55", owner: owner, since: 1, preset: preset)
        try configure(&session, ["addInput": "back"], ["addOutput": output])
        return session
    }

    private func configure(_ session: inout CaptureSession, _ actions: JSONValue...) throws {
        var parsed: [(action: SessionAction, path: String)] = []
        for (index, action) in actions.enumerated() {
            parsed.append((try SessionAction.parse(action, path: "actions[\(index)]"), "actions[\(index)]"))
        }
        try session.configure(parsed, in: Self.surroundings)
    }

    private func set(_ members: [String: JSONValue]) -> JSONValue {
        ["setOutput": .object(members.merging(["output": "photo"]) { $1 })]
    }

    private func live(_ session: CaptureSession) -> LivePhotoOutput? { session.photoOutput?.livePhoto }

    @Test func theyAreAskedForWithTheOutputOrLater() throws {
        var session = try session(.photo, ["type": "photo", "livePhotoCaptureEnabled": true])
        #expect(live(session) == LivePhotoOutput(isEnabled: true))
        try configure(
            &session, set(["livePhotoCaptureSuspended": true, "livePhotoAutoTrimmingEnabled": false]))
        #expect(live(session) == LivePhotoOutput(isEnabled: true, isSuspended: true, isAutoTrimming: false))
        try configure(
            &session, set(["livePhotoCaptureSuspended": .null, "livePhotoAutoTrimmingEnabled": .null]))
        #expect(live(session) == LivePhotoOutput(isEnabled: true))
        let json = try #require(session.members["outputs"]?[0])
        #expect(json["livePhotoCaptureEnabled"] == true && json["livePhotoCaptureSuspended"] == false)
        #expect(json["livePhotoAutoTrimmingEnabled"] == true)
        try configure(&session, set(["livePhotoCaptureEnabled": .null]))
        #expect(live(session) == LivePhotoOutput())
    }

    @Test func theNextCoordinatorGoesOnWithThem() throws {
        let session = try session(
            .photo, ["type": "photo", "livePhotoCaptureEnabled": true, "livePhotoAutoTrimmingEnabled": false])
        #expect(
            CaptureSession(keptJSON: try JSONValue(parsing: session.keptJSON.description))?.outputs == session.outputs)
        let others = try #require(try self.session(.photo, "preview").members["outputs"]?[0])
        #expect(others["livePhotoCaptureEnabled"] == nil)
    }

    @Test func whatIsAskedForIsJudgedWithAllThatIsAskedFor() throws {
        var session = try session(.high)
        // The preset comes behind it.
        try configure(&session, set(["livePhotoCaptureEnabled": true]), ["preset": "photo"])
        #expect(live(session)?.isEnabled == true)
        let error = #expect(throws: BusError.self) {
            try configure(&session, ["addOutput": "movie"], set(["livePhotoCaptureEnabled": true]))
        }
        #expect(
            error?.reason == .invalidParams && error?.data["path"] == "actions[1].setOutput.livePhotoCaptureEnabled")
        #expect(session.outputs.count == 1 && live(session)?.isEnabled == true)
    }

    @Test(
        arguments: [
            ["addOutput": "movie"], ["preset": "high"], ["addInput": "front"], ["removeInput": "back"],
            ["connection": ["output": "photo", "enabled": false]],
        ] as [JSONValue])
    func whatIsInTheWayTurnsThemOff(action: JSONValue) throws {
        var session = try session(.photo, ["type": "photo", "livePhotoCaptureEnabled": true])
        try configure(&session, set(["livePhotoCaptureSuspended": true]))
        try configure(&session, action)
        #expect(live(session) == LivePhotoOutput())
        #expect(session.livePhotoObstacle(Self.surroundings.device) != nil)
    }

    @Test func aPictureForProgramsIsNotInTheWay() throws {
        var session = try session(.photo, ["type": "photo", "livePhotoCaptureEnabled": true])
        try configure(&session, ["addOutput": "videoData"], ["addOutput": "preview"], ["preset": "1280x720"])
        #expect(live(session)?.isEnabled == true)
    }

    @Test(
        arguments: [
            (["addOutput": ["type": "preview", "livePhotoCaptureEnabled": true]], "actions[0].addOutput"),
            (["addOutput": ["type": "movie", "livePhotoCaptureSuspended": true]], "actions[0].addOutput"),
            (
                ["setOutput": ["output": "photo", "livePhotoCaptureSuspended": true]],
                "actions[0].setOutput.livePhotoCaptureSuspended"
            ),
            (
                ["setOutput": ["output": "photo", "livePhotoCaptureEnabled": 1]],
                "actions[0].setOutput.livePhotoCaptureEnabled"
            ),
        ] as [(JSONValue, String)])
    func whatCannotBeIsRefused(action: JSONValue, path: String) throws {
        var session = try session()
        let error = #expect(throws: BusError.self) { try configure(&session, action) }
        #expect(error?.reason == .invalidParams && error?.data["path"] == .string(path), "\(error?.message ?? "")")
    }

    @Test func anotherCameraKeepsThemWhereItCan() throws {
        let session = try session(.photo, ["type": "photo", "livePhotoCaptureEnabled": true])
        let (other, dropped) = try session.switched(to: "front", in: Self.surroundings)
        #expect(live(other)?.isEnabled == true && dropped.isEmpty)
    }
}
