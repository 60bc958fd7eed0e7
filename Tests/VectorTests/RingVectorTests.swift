import BusProtocol
import CameraBusTesting
import FrameRing
import JSON
import LinuxIO
import Testing

/// `ring-heads.json` and `ring-readings.json`, read by `FrameRing`.
struct RingVectorTests {
    @Test("A head is read as it says, or refused for what is wrong with it", arguments: Vectors.cases("ring-heads"))
    func heads(_ vector: VectorCase) throws {
        let head = try vector.frame()
        let memory = Int(try #require(vector.json["memoryBytes"]?.integer))
        guard vector.isValid else {
            let flaw = #expect(throws: RingError.Flaw.self) { try RingPlan(head: head, memoryBytes: memory) }
            #expect(flaw?.rawValue == vector.expect["flaw"]?.string)
            return
        }
        let plan = try RingPlan(head: head, memoryBytes: memory)
        #expect(Self.json(plan) == vector.expect)
        // What was read is written back as it was, but for what has no name and what changes.
        var bytes = [UInt8](repeating: 0, count: RingLayout.headBytes)
        bytes.withUnsafeMutableBytes { plan.write(to: $0) }
        let named = plan.description.sound == nil ? 356 : 384
        #expect(bytes[..<named].elementsEqual(head[..<named]))
    }

    @Test("A reader finds what was written, and nothing else", arguments: Vectors.cases("ring-readings"))
    func readings(_ vector: VectorCase) throws {
        let head = try vector.frame()
        let memory = try SharedMemory(
            name: "vector", count: Int(try #require(vector.json["memoryBytes"]?.integer)))
        memory.bytes.copyBytes(from: head)
        let reader = try RingReader(memory.readerDescriptor)
        var found: [RingFrame] = []
        for step in try #require(vector.json["steps"]?.array) {
            for write in step["write"]?.array ?? [] {
                let place = Int(try #require(write["at"]?.integer))
                for (index, byte) in Vectors.bytes(write).enumerated() { memory.bytes[place + index] = byte }
            }
            if let order = step["read"]?.string {
                let frame = reader.poll(order == "next" ? .next : .newest)
                let facts = frame.map { Self.json($0, reader.plan.description.sound) } ?? .null
                #expect(facts == step["expect"], "\(step)")
                if let frame { found.append(frame) }
            }
            if let index = step["check"]?.integer {
                let isIntact = reader.use(found[Int(index)]) { _ in true } ?? false
                #expect(isIntact == step["intact"]?.bool, "\(step)")
            }
            if let closed = step["closed"]?.integer {
                #expect(reader.isClosed == (closed != 0))
                #expect(reader.closing.map { Int64($0.rawValue) } ?? 0 == closed)
            }
        }
        guard let counters = vector.expect["counters"] else { return }
        #expect(
            counters == [
                "frames": JSONValue(reader.counters.frames), "skipped": JSONValue(reader.counters.skipped),
                "late": JSONValue(reader.counters.late), "unusable": JSONValue(reader.counters.unusable),
            ])
    }

    private static func json(_ plan: RingPlan) -> JSONValue {
        let ring = plan.description
        let json: JSONValue = [
            "ring": .string(ring.ring), "stream": .string(ring.stream), "device": .string(ring.device),
            "rendition": .string(ring.rendition), "format": .integer(Int64(ring.format)),
            "width": JSONValue(ring.width), "height": JSONValue(ring.height),
            "planes": .array(
                ring.planes.map {
                    [
                        "offset": JSONValue($0.offset), "stride": JSONValue($0.stride), "bytes": JSONValue($0.bytes),
                    ]
                }),
            "slots": JSONValue(ring.slots), "keep": JSONValue(ring.keep), "recordBytes": JSONValue(plan.recordBytes),
            "table": JSONValue(plan.tableOffset), "pixels": JSONValue(plan.pixelsOffset),
            "slotBytes": JSONValue(ring.slotBytes), "size": JSONValue(plan.size),
        ]
        guard case .object(var members) = json else { return json }
        guard let sound = ring.sound else {
            (members["orientation"], members["mirrored"]) = (JSONValue(ring.orientation), .bool(ring.isMirrored))
            return .object(members.merging(ring.extensions?.members ?? [:]) { $1 })
        }
        members["sound"] = [
            "sampleFormat": .string(sound.sampleFormat), "rate": JSONValue(sound.rate),
            "channels": JSONValue(sound.channels), "frameBytes": JSONValue(sound.frameBytes),
        ]
        return .object(members)
    }

    private static func json(_ frame: RingFrame, _ sound: RingDescription.Sound?) -> JSONValue {
        let record = frame.record
        if let sound {
            return [
                "slot": JSONValue(frame.slot), "number": JSONValue(frame.number), "skipped": JSONValue(frame.skipped),
                "sequence": JSONValue(record.sequence), "firstFrame": JSONValue(record.firstFrame),
                "frames": JSONValue(record.bytes / sound.frameBytes), "monotonic": .integer(record.monotonic),
                "realtime": .integer(record.realtime), "generation": JSONValue(record.generation),
                "overruns": JSONValue(record.overruns), "bytes": JSONValue(record.bytes),
                "source": record.timestampSource == .read ? "read" : "status",
            ]
        }
        return [
            "slot": JSONValue(frame.slot), "number": JSONValue(frame.number), "skipped": JSONValue(frame.skipped),
            "sequence": JSONValue(record.sequence), "captureSequence": JSONValue(record.captureSequence),
            "monotonic": .integer(record.monotonic),
            "presentation": .integer(record.monotonic + record.presentationDelay),
            "realtime": .integer(record.realtime),
            "generation": JSONValue(record.generation), "dropped": JSONValue(record.dropped),
            "bytes": JSONValue(record.bytes), "source": .string("\(record.timestampSource)"),
            "keyframe": record.isKeyframe.map(JSONValue.bool) ?? .null,
            "zoom": record.zoom % 1000 == 0 ? JSONValue(record.zoom / 1000) : .number(Double(record.zoom) / 1000),
        ]
    }
}
