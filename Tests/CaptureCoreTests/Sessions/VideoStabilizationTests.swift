import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// What connections prefer for the steadiness of pictures.
@Suite struct VideoStabilizationTests {
    private let owner = LockHolder(uid: 1000, gid: 1000, pid: 7, startTime: 70, name: "me")

    /// `rich` says it of each of its formats; `driver` and `plain` are as V4L2 has them, with the control and without.
    private let surroundings = CaptureSession.Surroundings(known: ["rich", "driver", "plain", "new"]) { id in
        switch id {
        case "rich":
            var formats = Array(SampleDevice.formats.prefix(2))
            formats[0].traits.supportedVideoStabilizationModes = ["off"]
            formats[1].traits.supportedVideoStabilizationModes = ["off", "standard", "cinematic", "auto"]
            return SessionDevice(id: id, position: .back, formats: formats, stabilizationWords: ["off", "standard"])
        case "driver":
            return SessionDevice(
                id: id, position: .external, formats: SampleDevice.formats, stabilizationWords: ["off", "standard"])
        case "plain": return SessionDevice(id: id, position: .external, formats: SampleDevice.formats)
        case "new": return SessionDevice(id: id, position: .external, formats: nil)
        default: return nil
        }
    }

    private func session(_ actions: JSONValue...) throws -> CaptureSession {
        var session = CaptureSession(id: "5e55", owner: owner, since: 1)
        let parsed = try actions.enumerated().map {
            (action: try SessionAction.parse($1, path: "actions[\($0)]"), path: "actions[\($0)]")
        }
        try session.configure(parsed, in: surroundings)
        return session
    }

    private static func prefer(_ mode: String) -> JSONValue {
        ["connection": ["output": "videoData", "preferredVideoStabilizationMode": .string(mode)]]
    }

    @Test(arguments: [
        ("rich", "1280x720", "cinematic", nil), ("rich", "640x480", "standard", ["off"]),
        ("driver", "640x480", "standard", nil), ("driver", "640x480", "auto", nil),
        ("driver", "640x480", "cinematic", ["off", "standard", "auto"]),
        ("plain", "640x480", "standard", ["off", "auto"]), ("plain", "640x480", "auto", nil),
        ("plain", "640x480", "off", nil), ("new", "640x480", "cinematic", nil),
    ])
    func asTheFormatSays(_ device: String, _ preset: String, _ mode: String, _ supported: [String]?) throws {
        let actions: [JSONValue] = [
            ["addInput": .string(device)], ["addOutput": "videoData"], ["preset": .string(preset)],
        ]
        guard let supported else {
            let session = try session(actions[0], actions[1], actions[2], Self.prefer(mode))
            #expect(session.connections[0].preferredVideoStabilizationMode.rawValue == mode)
            #expect(session.prefersStabilization(of: device) == (mode != "off"))
            return
        }
        let error = #expect(throws: BusError.self) {
            try session(actions[0], actions[1], actions[2], Self.prefer(mode))
        }
        #expect(error?.reason == .controlUnsupported && error?.data["supported"] == JSONValue(supported))
    }

    @Test func aFormatOfItsOwnDecides() throws {
        let of = { (format: String) -> JSONValue in ["addInput": ["device": "rich", "activeFormat": .string(format)]] }
        #expect(throws: Never.self) { try session(of("f1"), ["addOutput": "videoData"], Self.prefer("standard")) }
        #expect(throws: BusError.self) { try session(of("f0"), ["addOutput": "videoData"], Self.prefer("standard")) }
    }

    @Test func aConnectionThatIsOffPrefersNothing() throws {
        let session = try session(
            ["addInput": "driver"], ["addOutput": "videoData"], Self.prefer("standard"),
            ["connection": ["output": "videoData", "enabled": false]])
        #expect(!session.prefersStabilization(of: "driver") && !session.prefersStabilization(of: "plain"))
    }

    @Test func itIsKeptOverASwitchWhereItCanBe() throws {
        let session = try session(
            ["preset": "640x480"], ["addInput": "driver"], ["addOutput": "videoData"], Self.prefer("standard"))
        let (plain, dropped) = try session.switched(to: "plain", in: surroundings)
        #expect(plain.connections[0].preferredVideoStabilizationMode == .off)
        #expect(dropped.map { $0["path"] } == ["videoData.preferredVideoStabilizationMode"])
        #expect(dropped.first?["value"] == "standard")
        let (back, nothing) = try session.switched(to: "driver", in: surroundings)
        #expect(back.connections[0].preferredVideoStabilizationMode == .standard && nothing.isEmpty)
    }

    @Test func itIsKeptAndReadAgain() throws {
        let session = try session(["addInput": "driver"], ["addOutput": "videoData"], Self.prefer("standard"))
        #expect(CaptureSession(keptJSON: session.keptJSON)?.connections == session.connections)
        // What a bus before this one has left.
        let old = try #require(CaptureSession(keptJSON: try Self.without(session.keptJSON)))
        #expect(old.connections[0].preferredVideoStabilizationMode == .off)
    }

    private static func without(_ kept: JSONValue) throws -> JSONValue {
        var members = kept.object ?? [:]
        members["connections"] = .array(
            (kept["connections"]?.array ?? []).map { connection in
                var connection = connection.object ?? [:]
                connection["preferredVideoStabilizationMode"] = nil
                return .object(connection)
            })
        return .object(members)
    }

    @Test func whatIsOnIsTold() throws {
        let session = try session(["addInput": "driver"], ["addOutput": "videoData"])
        let delivery = DemandDelivery(
            rendition: Rendition(.native), dimensions: Dimensions(width: 640, height: 480),
            frameDuration: duration(1, 15))
        let got = session.deliveries(
            of: "driver", delivery, position: .external, stabilization: VideoStabilizationMode(active: "standard"))
        #expect(got[0].json(refused: nil)["activeVideoStabilizationMode"] == "standard")
        #expect(VideoStabilizationMode(active: nil) == .off)
    }
}
