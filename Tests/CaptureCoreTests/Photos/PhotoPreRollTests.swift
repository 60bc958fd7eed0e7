import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct PhotoPreRollTests {
    private func session(_ actions: [JSONValue]) throws -> CaptureSession {
        let owner = LockHolder(uid: 1000, gid: 1000, pid: 42, startTime: 7, name: "probe")
        var session = CaptureSession(id: "5e55", owner: owner, since: 1)
        try configure(&session, actions)
        return session
    }

    private func configure(_ session: inout CaptureSession, _ actions: [JSONValue]) throws {
        let surroundings = CaptureSession.Surroundings(known: ["front", "back"]) { device in
            ["front", "back"].contains(device)
                ? SessionDevice(id: device, position: .unspecified, formats: nil) : nil
        }
        var parsed: [(action: SessionAction, path: String)] = []
        for (index, action) in actions.enumerated() {
            parsed.append((try SessionAction.parse(action, path: "actions[\(index)]"), "actions[\(index)]"))
        }
        try session.configure(parsed, in: surroundings)
    }

    @Test func aPhotoOutputHasItsCamerasPicturesHeld() throws {
        var session = try session([
            ["addInput": "front"], ["addInput": "back"], ["addOutput": ["type": "photo", "preRoll": 2000]],
        ])
        #expect(session.preRoll(of: "front") == 2000 && session.preRoll(of: "back") == 2000)
        #expect(session.preRoll(of: "cam9") == 0)
        #expect(session.outputs[0].json["preRoll"] == 2000)
        try configure(&session, [["connection": ["input": "back", "enabled": false]]])
        #expect(session.preRoll(of: "front") == 2000 && session.preRoll(of: "back") == 0)
        try configure(&session, [["setOutput": ["output": "photo", "preRoll": .null]]])
        #expect(session.preRoll(of: "front") == 0 && session.outputs[0].json["preRoll"] == 0)
    }

    @Test func whatIsHeldSurvivesTheCoordinator() throws {
        let session = try session([["addInput": "front"], ["addOutput": ["type": "photo", "preRoll": 1500]]])
        let kept = CaptureSession(keptJSON: try JSONValue(parsing: session.keptJSON.description))
        #expect(kept?.preRoll(of: "front") == 1500)
        // One before this version.
        var members = session.keptJSON.object ?? [:]
        members["outputs"] = .array(
            (members["outputs"]?.array ?? []).map { output in
                var output = output.object ?? [:]
                output["preRoll"] = nil
                return .object(output)
            })
        #expect(CaptureSession(keptJSON: .object(members))?.preRoll(of: "front") == 0)
    }

    @Test func whoWantsToKnowWhatTheSceneWantsSaysSo() throws {
        let wish: JSONValue = ["flash": "auto", "stabilization": true]
        var session = try session([
            ["addInput": "front"], ["addOutput": ["type": "photo", "photoSettingsForSceneMonitoring": wish]],
        ])
        #expect(session.watchesScene(of: "front") && !session.watchesScene(of: "back"))
        #expect(session.outputs[0].json["photoSettingsForSceneMonitoring"] == wish)
        let kept = CaptureSession(keptJSON: try JSONValue(parsing: session.keptJSON.description))
        #expect(kept?.outputs == session.outputs)
        // What is on or off anyhow needs no look.
        let on: JSONValue = ["output": "photo", "photoSettingsForSceneMonitoring": ["flash": "on"]]
        try configure(&session, [["setOutput": on]])
        #expect(!session.watchesScene(of: "front"))
        let order = WorkerOrder(
            number: 1, fence: nil, action: .session(isRunning: true, preRoll: 0, watchesScene: true))
        #expect(WorkerOrder(json: try JSONValue(parsing: order.json.description)) == order)
    }

    private static let wrong: [(action: JSONValue, path: String)] = [
        (
            ["addOutput": ["type": "photo", "photoSettingsForSceneMonitoring": ["flash": "dim"]]],
            "actions[0].addOutput.photoSettingsForSceneMonitoring.flash"
        ),
        (
            ["addOutput": ["type": "preview", "photoSettingsForSceneMonitoring": ["flash": "on"]]],
            "actions[0].addOutput"
        ),
        (["addOutput": ["type": "photo", "preRoll": 10001]], "actions[0].addOutput.preRoll"),
        (["addOutput": ["type": "photo", "preRoll": -1]], "actions[0].addOutput.preRoll"),
        (["addOutput": ["type": "photo", "preRoll": 0.5]], "actions[0].addOutput.preRoll"),
        (["addOutput": ["type": "movie", "preRoll": 1000]], "actions[0].addOutput"),
        (["addOutput": ["type": "videoData", "preRoll": 1000]], "actions[0].addOutput"),
        (["addOutput": ["type": "photo", "preRoll": 1000, "quality": 90]], "actions[0].addOutput"),
    ]

    @Test(arguments: wrong) func nothingElseIsHeld(action: JSONValue, path: String) {
        let error = #expect(throws: BusError.self) { try session([action]) }
        #expect(error?.reason == .invalidParams && error?.data["path"] == .string(path), "\(error?.message ?? "")")
    }

    @Test func theWorkerIsToldHowMuch() throws {
        for action in [WorkerOrder.Action.session(isRunning: true, preRoll: 2000), .session(isRunning: false)] {
            let order = WorkerOrder(number: 1, fence: nil, action: action)
            #expect(WorkerOrder(json: try JSONValue(parsing: order.json.description)) == order)
        }
        let order = WorkerOrder(json: ["order": 1, "do": "session", "running": true, "preRoll": 1_000_000])
        #expect(order?.action == .session(isRunning: true, preRoll: PhotoPreRoll.longest))
    }

    @Test func itIsToldWhyThereIsNone() {
        let none = BusError.momentNotHeld(device: "cam0", ago: 500_000_000, preRoll: 0, oldest: nil)
        #expect(none.data["ago"]?.double == 500 && none.data["preRoll"] == 0 && none.data["oldest"] == .null)
        let late = BusError.momentNotHeld(device: "cam0", ago: 500_000_000, preRoll: 300, oldest: 310_000_000)
        #expect(late.reason == .momentNotHeld && late.data["oldest"]?.double == 310)
        #expect(late.message.contains("only the last 0.3 s are; ") && late.message.hasSuffix(" a longer preRoll."))
        let longest = BusError.momentNotHeld(
            device: "cam0", ago: 9_900_000_000, preRoll: PhotoPreRoll.longest, oldest: 7_960_000_000)
        #expect(longest.message.hasSuffix("only the last 7.9 s are; ask for a later one."))
    }
}
