import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// Microphones of sessions.
@Suite struct SessionSoundTests {
    private let owner = LockHolder(uid: 1000, gid: 1000, pid: 7, startTime: 70, name: "me")

    private static let microphone = SessionMicrophone(
        formats: [
            MicrophoneFormat(
                id: "a0", sampleFormat: .s16, channels: 1...2, rates: [16000, 44100, 48000], rateRange: nil,
                periodFrames: 1...4800),
            MicrophoneFormat(
                id: "a1", sampleFormat: .s24in32, channels: 2...2, rates: [48000], rateRange: nil,
                periodFrames: 1...4800),
        ],
        dataSources: [
            SoundDataSource(id: "front", name: "Front", orientation: .front),
            SoundDataSource(id: "rear", name: "Rear", orientation: .back),
        ], current: SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2, periodFrames: 480))

    private let surroundings = CaptureSession.Surroundings(known: ["back", "front", "mic", "new", "dead"]) { id in
        switch id {
        case "back": SessionDevice(id: id, position: .back, formats: SampleDevice.formats)
        case "front": SessionDevice(id: id, position: .front, formats: SampleDevice.formats)
        case "mic":
            SessionDevice(id: id, mediaType: .audio, position: .unspecified, formats: [], sound: Self.microphone)
        case "new": SessionDevice(id: id, mediaType: .audio, position: .unspecified, formats: nil)
        case "dead":
            SessionDevice(
                id: id, mediaType: .audio, position: .unspecified, formats: [],
                sound: SessionMicrophone(formats: [], dataSources: [], current: Self.microphone.current))
        default: nil
        }
    }

    private func session(_ actions: JSONValue..., id: String = "5e55") throws -> CaptureSession {
        var session = CaptureSession(id: id, owner: owner, since: 1)
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

    @Test func `a microphone is joined with what takes sound, a camera with what takes pictures`() throws {
        let session = try session(
            ["addOutput": "videoData"], ["addOutput": "audioData"], ["addOutput": "movie"], ["addOutput": "photo"],
            ["addInput": "back"], ["addInput": ["device": "mic", "activeFormat": ["rate": 44100]]])
        let pairs = session.connections.map { "\($0.input) \($0.output)" }
        #expect(pairs == ["back videoData", "mic audioData", "back movie", "mic movie", "back photo"])
        #expect(session.preset == .high, "a microphone's format is no picture's")
        #expect(session.camera?.device == "back")
        #expect(session.inputs.map(\.mediaType) == [.video, .audio])
    }

    @Test func `what a microphone can't have is refused when it is asked for`() throws {
        let session = try session(
            ["addInput": "back"], ["addInput": "mic"], ["addOutput": "movie"], ["addOutput": "audioData"])
        let cases: [(JSONValue, BusError.Reason)] = [
            (["addInput": "mic"], .cannotAddInput), (["addInput": "dead"], .cannotAddInput),
            (["setInput": ["device": "mic", "frameRate": 30]], .invalidParams),
            (["setInput": ["device": "mic", "activeFormat": ["rate": 12345]]], .formatUnsupported),
            (["setInput": ["device": "mic", "activeFormat": "a7"]], .formatUnsupported),
            (["setInput": ["device": "mic", "activeFormat": ["width": 640, "height": 480]]], .formatUnsupported),
            (["setInput": ["device": "mic", "preferredDataSource": "left"]], .invalidParams),
            (["setInput": ["device": "back", "preferredDataSource": "front"]], .invalidParams),
            (["setOutput": ["output": "audioData", "width": 100]], .invalidParams),
            (["setOutput": ["output": "audioData", "format": "jpeg"]], .invalidParams),
            (["setOutput": ["output": "audioData", "format": "native", "rate": 8000]], .invalidParams),
            (["setOutput": ["output": "audioData", "rate": 1000]], .invalidParams),
            (["addOutput": ["type": "videoData", "format": "s16"]], .invalidParams),
            (["addOutput": ["type": "videoData", "rate": 8000]], .invalidParams),
            (["connection": ["input": "mic", "videoOrientation": "portrait"]], .invalidParams),
        ]
        for (action, reason) in cases {
            var changed = session
            do {
                try configure(&changed, [action])
                Issue.record("\(action)")
            } catch let error as BusError {
                #expect(error.reason == reason, "\(action): \(error.message)")
            }
        }
        var turned = session
        try configure(&turned, [["connection": ["output": "movie", "videoOrientation": "portrait"]]])
        #expect(turned.connections.filter { $0.videoOrientation == .portrait }.map(\.input) == ["back"])
        var plain = session
        try configure(&plain, [["addInput": "new"], ["preset": "640x480"]])
        #expect(plain.inputs.last?.mediaType == .audio)
    }

    @Test func `a preset leaves a microphone's format as it is`() throws {
        var session = try session(
            ["addInput": ["device": "mic", "activeFormat": ["rate": 44100]]], ["addInput": "back"],
            ["setInput": ["device": "back", "activeFormat": "f2"]])
        #expect(session.preset == .inputPriority)
        try configure(&session, [["preset": "640x480"]])
        #expect(session.input("mic")?.activeFormat != nil && session.input("back")?.activeFormat == nil)
    }

    @Test func `it is written and read as it is`() throws {
        let session = try session(
            ["addInput": ["device": "mic", "activeFormat": ["rate": 44100], "preferredDataSource": "rear"]],
            ["addInput": "back"], ["addOutput": ["type": "audioData", "format": "f32", "rate": 16000, "channels": 1]],
            ["addOutput": "movie"])
        #expect(CaptureSession(keptJSON: session.keptJSON) == session)
        // Written by a version that had cameras only.
        var old = try self.session(["addInput": "back"], ["addOutput": "videoData"]).keptJSON.object ?? [:]
        old["inputs"] = [["device": "back", "activeFormat": .null, "frameRate": .null]]
        #expect(CaptureSession(keptJSON: .object(old))?.inputs.first?.mediaType == .video)
    }

    @Test func `a switch of cameras leaves the microphone where it is`() throws {
        let session = try session(
            ["addOutput": "movie"], ["addOutput": "audioData"], ["addInput": "back"], ["addInput": "mic"],
            ["connection": ["output": "movie", "videoOrientation": "portrait"]],
            ["connection": ["output": "audioData", "enabled": false]])
        let (front, dropped) = try session.switched(to: "front", in: surroundings)
        #expect(dropped.isEmpty && front.inputs.map(\.device) == ["front", "mic"])
        #expect(front.connections.map { "\($0.input) \($0.output)" } == ["front movie", "mic movie", "mic audioData"])
        #expect(front.connections[0].videoOrientation == .portrait && !front.connections[2].isEnabled)
        #expect(throws: BusError.self) { try session.switched(to: "mic", in: surroundings) }
    }

    @Test func `auto listens on the side to which the camera looks`() {
        let sources = Self.microphone.dataSources
        #expect(DataSourcePreference.auto.source(of: sources, camera: .front)?.id == "front")
        #expect(DataSourcePreference.auto.source(of: sources, camera: .back)?.id == "rear")
        #expect(DataSourcePreference.auto.source(of: sources, camera: .external) == nil)
        #expect(DataSourcePreference.auto.source(of: sources, camera: nil) == nil)
        #expect(DataSourcePreference.auto.source(of: [], camera: .front) == nil)
        #expect(DataSourcePreference.source("rear").source(of: sources, camera: .front)?.id == "rear")
    }

    // MARK: Who gets what

    private func demand(
        _ id: String, priority: Int = 0, since: Instant = 1, _ format: SoundFormatRequest? = nil, source: String? = nil
    ) -> SoundDemand {
        SoundDemand(
            CaptureParty(.session, id: id), priority: priority, since: since, format: format.map(FormatRequest.sound),
            dataSource: source)
    }

    private func decide(_ demands: SoundDemand..., others: [SoundDemand] = []) -> SoundDecision {
        SoundDecision(device: "mic", Self.microphone, demands: demands, others: others)
    }

    @Test func `it stays as it is while nobody wants another format`() {
        let decision = decide(demand("a"), demand("b"))
        #expect(decision.format == Self.microphone.current && decision.wish == nil && decision.dataSource == nil)
        #expect(decision.explanation == ["mic gives s16, 48000 Hz, 2 channels."])
    }

    @Test func `the higher priority sets it, of equal ones the older session, and others get it made`() {
        let decision = decide(
            demand("young", since: 3, .init(rate: 16000)), demand("old", since: 2, .init(rate: 44100, channels: 1)),
            demand("quiet", since: 1))
        #expect(decision.format.rate == 44100 && decision.format.channels == 1)
        #expect(
            decision.explanation == [
                "mic gives s16, 44100 Hz, 1 channel, as old wants.",
                "young wants s16, 16000 Hz, 2 channels, and gets a conversion.",
            ])
        let higher = decide(
            demand("young", priority: 5, since: 3, .init(rate: 16000), source: "rear"),
            demand("old", since: 2, .init(rate: 44100), source: "front"))
        #expect(higher.format.rate == 16000 && higher.dataSource == "rear")
    }

    @Test func `who may not set it takes it as it is`() {
        let decision = decide(others: [demand("other", .init(rate: 16000), source: "rear")])
        #expect(decision.format == Self.microphone.current && decision.dataSource == nil)
        #expect(decision.explanation.count == 2)
    }

    @Test func `an output names the sound in full, so that it stays the same whatever others want`() throws {
        let session = try session(
            ["addInput": "mic"], ["addOutput": "audioData"],
            ["addOutput": ["type": "audioData", "format": "f32", "rate": 16000, "channels": 1]],
            ["addOutput": ["type": "audioData", "format": "native", "id": "raw"]], ["addOutput": "movie"])
        let got = session.soundDeliveries(of: "mic", Self.microphone)
        #expect(got.map { $0.rendition?.description } == ["s16:48000x2", "f32:16000x1", "native", nil])
        #expect(got[1].json(refused: nil)["topic"] == "audio/mic/f32:16000x1/")
        #expect(got[1].json(refused: nil)["rate"] == 16000)
        #expect(got[3].json(refused: nil)["topic"] == .null && got[3].json(refused: nil)["mediaType"] == "audio")
        var other = Self.microphone
        other.current = SoundFormat(sampleFormat: .s16, rate: 16000, channels: 1, periodFrames: 160)
        let later = session.soundDeliveries(of: "mic", other, since: Self.microphone.current)
        #expect(later.map { $0.rendition?.description } == ["s16:48000x2", "f32:16000x1", "native", nil])
        #expect(later[2].rate == 16000, "native is as it is")
        // It has its own rate also while the device has another.
        var wished = session
        try configure(&wished, [["setInput": ["device": "mic", "activeFormat": ["sampleFormat": "s24in32"]]]])
        #expect(wished.soundDeliveries(of: "mic", Self.microphone)[0].rendition?.description == "f32:48000x2")
        try configure(&wished, [["connection": ["output": "audioData", "enabled": false]]])
        #expect(wished.soundDeliveries(of: "mic", Self.microphone)[0].rendition == nil)
    }

    @Test(arguments: [
        ([], ["videoData", "audioData", "movie", "photo", "preview"], []),
        (["back"], ["audioData"], ["audioData"]), (["mic"], ["videoData", "photo", "preview"], ["videoData"]),
        (["back", "mic"], [], []),
    ])
    func `outputs without an input of their kind`(_ inputs: [String], _ unserved: [String], _ refused: [String]) throws
    {
        let outputs = ["videoData", "audioData", "movie", "photo", "preview"]
        let added: [JSONValue] = inputs.map { ["addInput": .string($0)] }
        let wanted: [JSONValue] = outputs.map { ["addOutput": .string($0)] }
        var session = CaptureSession(id: "5e55", owner: owner, since: 1)
        try configure(&session, added + wanted)
        #expect(session.unservedOutputs.map(\.output.id) == unserved)
        for output in session.unservedOutputs {
            let missing: [SessionOutput.Kind: String] = [.movie: "input", .audioData: "microphone"]
            let kind = missing[output.output.kind] ?? "camera"
            #expect(output.why == "the session has no \(kind); add one with addInput")
            #expect(output.json["device"] == .null && output.json["why"]?.string == "It gets nothing: \(output.why).")
        }
        var known = surroundings
        known.pixelFormat = { _, _ in nil }
        var made = CaptureSession(id: "5e55", owner: owner, since: 1)
        let both: [(action: SessionAction, path: String)] = try (wanted + added).map {
            (try SessionAction.parse($0, path: ""), "")
        }
        guard let first = refused.first else { return try made.configure(both, in: known) }
        let error = #expect(throws: BusError.self) { try made.configure(both, in: known) }
        #expect(error?.reason == .cannotAddOutput && error?.message.contains("\(first) output can't be added") == true)
    }

    @Test func `a worker's words become a microphone`() throws {
        let identity = DeviceIdentity(
            uniqueID: "m", localizedName: "M", mediaType: .audio, type: .external, position: .unspecified,
            driver: "virtual", bus: "")
        let description = MicrophoneDescription(
            identity: identity, formats: Self.microphone.formats, controls: [],
            dataSources: Self.microphone.dataSources)
        let read = SessionMicrophone(
            description: description.json, activeFormat: Self.microphone.current.json(id: "a0"))
        #expect(read == Self.microphone)
        #expect(SessionMicrophone(description: nil, activeFormat: .null) == nil)
        #expect(SessionMicrophone(description: description.json, activeFormat: .null) == nil)
    }
}
