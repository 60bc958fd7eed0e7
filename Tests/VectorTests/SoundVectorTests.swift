import BusProtocol
import CameraBusTesting
import JSON
import Testing

/// `sound-headers.json`, `sound-continuity.json` and `sound-renditions.json`.
@Suite struct SoundVectorTests {
    @Test(arguments: Vectors.cases("sound-headers"))
    func header(_ vector: VectorCase) throws {
        let frames = vector.frames
        let payload = frames.count > 1 ? frames[1].count : 0
        let parsed = frames[0].withUnsafeBytes { try? JSONValue(parsing: $0) }
        let result = Result { () throws(BusError) -> SoundHeader in
            guard let parsed else { throw BusError(.internalError, "no JSON") }
            let header = try SoundHeader(parsed)
            guard header.framesFit(in: payload) else { throw BusError(.internalError, "another length") }
            return header
        }
        switch result {
        case .success(let header):
            try #require(vector.isValid)
            #expect(header.json == vector.expect["header"])
            if SoundHeader.bytesPerSample(header.sampleFormat) > 0 { #expect(header.written == header.json) }
        case .failure(let error):
            guard vector.isValid else {
                #expect(error.reason.rawValue == vector.expect["reason"]?.string)
                return
            }
            let expected = try #require(vector.expect["error"], "\(error.message)")
            #expect(error.message == expected["message"]?.string)
            #expect(error.data.filter { $0.key != "reason" } == expected["data"]?.object)
        }
        if vector.isValid {
            let topic = MediaTopic(.audio, device: "mic0", renditionText: "native")
            let problem = TopicTable.entry(.media(topic), isMedia: true)?.header?.validate(parsed ?? .null)
            // What a later version may say, a schema of this one doesn't know.
            if vector.expect["header"]?["sampleFormat"] != "s64" {
                #expect(problem == nil, "\(problem?.message ?? "")")
            }
        }
    }

    @Test(arguments: Vectors.cases("sound-continuity"))
    func continuity(_ vector: VectorCase) throws {
        var continuity = SoundContinuity()
        for step in try #require(vector.json["steps"]?.array) {
            let lost = continuity.receive(
                stream: try #require(step["stream"]?.string),
                sequence: UInt64(try #require(step["sequence"]?.integer)),
                firstFrame: UInt64(try #require(step["firstFrame"]?.integer)),
                frames: Int(try #require(step["frames"]?.integer)))
            #expect(lost.map { JSONValue($0) } ?? .null == step["lost"], "\(step)")
        }
    }

    @Test(arguments: Vectors.cases("sound-renditions"))
    func rendition(_ vector: VectorCase) throws {
        let text = String(decoding: try vector.frame(), as: UTF8.self)
        let result = Result { () throws(BusError) in try SoundRendition(parsing: text) }
        switch result {
        case .success(let rendition):
            try #require(vector.isValid)
            #expect(rendition.description == vector.expect["canonical"]?.string)
            #expect(rendition.encoding.rawValue == vector.expect["encoding"]?.string)
            #expect(rendition.rate == vector.expect["rate"]?.integer.map(Int.init))
            #expect(rendition.channels == vector.expect["channels"]?.integer.map(Int.init))
        case .failure(let error):
            #expect(!vector.isValid, "\(error.message)")
            #expect(error.reason.rawValue == vector.expect["reason"]?.string)
            #expect(error.data["path"] == "rendition")
        }
    }

    @Test func aLevelIsReadAsItIsWritten() throws {
        var writer = SoundLevelWriter(device: "mic0", stream: "9f3ac2d071b84e65")
        writer.write(sequence: 1, monotonic: 5, average: [-20.126, -.infinity], peak: [0, -3.0102])
        writer.write(sequence: 2, monotonic: 6, average: [-20.126, -.infinity], peak: [0.5, -3.0102])
        let json = try writer.bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
        let level = try SoundLevel(json)
        #expect(level.sequence == 2 && level.monotonic == 6)
        #expect(level.average == [-20.13, SoundLevel.floor] && level.peak == [0, -3.01])
        #expect(TopicTable.entry(.level("mic0"), isMedia: true)?.header?.validate(json) == nil)
    }
}

extension SoundHeader {
    // As sound-headers.json writes it.
    fileprivate var json: JSONValue {
        [
            "v": 1, "device": .string(device), "rendition": .string(rendition), "stream": .string(stream),
            "sampleFormat": .string(sampleFormat), "rate": JSONValue(rate), "channels": JSONValue(channels),
            "sequence": JSONValue(sequence), "firstFrame": JSONValue(firstFrame), "frames": JSONValue(frames),
            "overruns": JSONValue(overruns), "generation": JSONValue(generation),
            "timestamp": [
                "monotonic": .integer(monotonic), "realtime": .integer(realtime), "source": .string(timestampSource),
            ],
        ]
    }

    // As the bus would write it.
    fileprivate var written: JSONValue {
        var writer = SoundHeaderWriter(
            .init(
                device: device, rendition: rendition, stream: stream, sampleFormat: sampleFormat, rate: rate,
                channels: channels, timestampSource: timestampSource))
        writer.write(
            sequence: sequence, firstFrame: firstFrame, frames: frames, overruns: overruns, generation: generation,
            monotonic: monotonic, realtime: realtime)
        return writer.bytes.withUnsafeBytes { (try? JSONValue(parsing: $0)) ?? .null }
    }
}
