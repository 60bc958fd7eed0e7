import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// What is published: frame headers, state, events, heartbeats; and the mirror that a client makes of the state.
@Suite struct PublishedVectorTests {
    @Test(arguments: Vectors.cases("frame-headers"))
    func frameHeader(_ vector: VectorCase) throws {
        let frames = vector.frames
        let payload = frames.count > 1 ? frames[1].count : 0
        let result = Result { () throws(BusError) in try read(frames[0], payload: payload) }
        switch result {
        case .success(let header):
            try #require(vector.isValid)
            let expected = try #require(vector.expect["header"])
            #expect(header.json == expected)
        case .failure(let error):
            guard vector.isValid else {
                #expect(error.reason.rawValue == vector.expect["reason"]?.string)
                return
            }
            let expected = try #require(vector.expect["error"], "\(error.message)")
            #expect((error.data["reason"]?.string ?? error.reason.rawValue) == expected["reason"]?.string)
            #expect(error.message == expected["message"]?.string)
            #expect(error.data.filter { $0.key != "reason" } == expected["data"]?.object)
        }
    }

    @Test(arguments: Vectors.cases("frame-sets"))
    func frameSet(_ vector: VectorCase) throws {
        let frames = vector.frames
        let parsed = frames[0].withUnsafeBytes { try? JSONValue(parsing: $0) }
        let result = Result { () throws(BusError) -> FrameSetHeader in
            guard let parsed else { throw BusError(.internalError, "no JSON") }
            let header = try FrameSetHeader(parsed)
            for part in header.parts {
                guard let frame = part.frame else { continue }
                guard let place = part.payload, place + 1 < frames.count, frame.planesFit(in: frames[place + 1].count)
                else { throw BusError(.internalError, "no payload") }
            }
            return header
        }
        switch result {
        case .success(let header):
            try #require(vector.isValid)
            let there = header.parts.filter { $0.frame != nil }.map { ($0.device, JSONValue($0.offset)) }
            let missing = header.parts.compactMap { part in part.missing.map { (part.device, JSONValue.string($0)) } }
            let found: JSONValue = [
                "number": JSONValue(header.number), "late": .bool(header.isLate), "spread": JSONValue(header.spread),
                "frames": .object(Dictionary(uniqueKeysWithValues: there)),
                "missing": .object(Dictionary(uniqueKeysWithValues: missing)),
            ]
            #expect(found == vector.expect["set"])
            let topic = MediaTopic(.set, device: header.set, renditionText: header.rendition)
            #expect(TopicTable.entry(.media(topic), isMedia: true)?.header?.validate(parsed ?? .null) == nil)
        case .failure(let error):
            guard vector.isValid else {
                #expect(error.reason.rawValue == vector.expect["reason"]?.string)
                return
            }
            let expected = try #require(vector.expect["error"], "\(error.message)")
            #expect((error.data["reason"]?.string ?? error.reason.rawValue) == expected["reason"]?.string)
            #expect(error.message == expected["message"]?.string)
        }
    }

    @Test(arguments: Vectors.cases("announcements"))
    func announcement(_ vector: VectorCase) throws {
        let topic = try #require(Topic.parse(vector.frames[0]))
        let entry = try #require(TopicTable.entry(topic, isMedia: vector.json["socket"] == "media"))
        guard let schema = entry.header else {
            #expect(vector.isValid == (vector.frames.count == 1))
            return
        }
        try #require(vector.frames.count == 2)
        let header = vector.frames[1].withUnsafeBytes { try? JSONValue(parsing: $0) }
        let error = header.map { schema.validate($0) } ?? .invalidParams("", "no JSON")
        #expect((error == nil) == vector.isValid, "\(error?.message ?? "taken")")
    }

    @Test(arguments: Vectors.cases("state-sequences"))
    func stateSequence(_ vector: VectorCase) throws {
        let subscriptions = try #require(vector.json["subscriptions"]?.array).compactMap(\.string)
        var mirror = StateMirror(subscriptions: subscriptions)
        for (index, step) in try #require(vector.json["steps"]?.array).enumerated() {
            let outcome: String
            if let snapshot = step["snapshot"] {
                outcome = mirror.adopt(snapshot: snapshot) ? "inStep" : "resynchronize"
                #expect(mirror.needsSnapshot == (outcome == "resynchronize"))
            } else {
                let topic = try #require(step["receive"]?["topic"]?.string)
                outcome = mirror.receive(topic: topic, message: try #require(step["receive"]?["message"])).word
            }
            #expect(outcome == step["then"]?.string, "step \(index)")
        }
        #expect(JSONValue.object(mirror.values) == vector.expect["state"])
    }

    private func read(_ bytes: [UInt8], payload: Int) throws(BusError) -> FrameHeader {
        let parsed = bytes.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try JSONValue(parsing: bytes) }
        }
        guard case .success(let json) = parsed else { throw BusError(.internalError, "no JSON") }
        let header = try FrameHeader(json)
        guard header.planesFit(in: header.buffer?.bytes ?? payload) else {
            throw BusError(.internalError, "a plane beyond the payload")
        }
        return header
    }
}

extension StateMirror.Action {
    fileprivate var word: String {
        switch self {
        case .applied: "applied"
        case .ignored: "ignored"
        case .kept: "kept"
        case .event(let missed): missed ? "eventAfterLoss" : "event"
        case .resynchronize: "resynchronize"
        case .inStep: "inStep"
        }
    }
}

extension FrameHeader {
    // What was read, as the vectors write it.
    fileprivate var json: JSONValue {
        let members: KeyValuePairs<String, JSONValue?> = [
            "v": 1, "device": .string(device), "rendition": .string(rendition), "stream": .string(stream),
            "sequence": JSONValue(sequence), "captureSequence": JSONValue(captureSequence),
            "generation": JSONValue(generation),
            "timestamp": .members([
                "monotonic": JSONValue(monotonic), "realtime": JSONValue(realtime),
                "presentation": presentation == monotonic ? nil : JSONValue(presentation),
                "source": .string(timestampSource),
            ]), "format": .string(format), "width": JSONValue(width), "height": JSONValue(height),
            "planes": .array(
                planes.map {
                    ["offset": JSONValue($0.offset), "stride": JSONValue($0.stride), "bytes": JSONValue($0.bytes)]
                }), "orientation": JSONValue(orientation), "mirrored": .bool(mirrored), "dropped": JSONValue(dropped),
            "keyframe": keyframe.map(JSONValue.bool), "exposure": exposure,
            "zoom": zoom == 1 ? .none : .some(.number(zoom)),
            "buffer": buffer.map {
                [
                    "ring": .string($0.ring), "slot": JSONValue($0.slot), "offset": JSONValue($0.offset),
                    "bytes": JSONValue($0.bytes), "stamp": JSONValue($0.stamp),
                ]
            },
        ]
        guard case .object(let known) = JSONValue.members(members) else { return .null }
        return .object(known.merging(extensions?.members ?? [:]) { $1 })
    }
}
