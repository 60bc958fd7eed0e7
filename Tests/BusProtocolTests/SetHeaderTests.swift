import BusProtocol
import JSON
import Testing

/// What is written of matched sets is what the schema says, and what clients read.
@Suite struct SetHeaderTests {
    private static let frame =
        #"{"v":1,"device":"cam\"0","rendition":"native","stream":"9f","format":"GREY","width":4,"height":2,"orientation":0,"mirrored":false,"planes":[{"offset":0,"stride":4,"bytes":8}],"sequence":7,"captureSequence":9,"generation":1,"timestamp":{"monotonic":1234567890123,"realtime":5,"source":"dequeue"},"dropped":0}"#

    private static func write(_ writer: inout SetHeaderWriter, sequence: UInt64, parts: Int) {
        writer.begin(
            sequence: sequence, number: sequence, isLate: parts == 1, monotonic: 1_234_567_890_000, spread: 123,
            tolerance: 500)
        for part in 0..<parts {
            if part == 2 {
                writer.add(
                    missing: "cam\"2", reason: "late", message: "none\n", .init(unmatched: 1, late: 2))
            } else {
                Array(frame.utf8).withUnsafeBytes {
                    writer.add(header: $0, .init(offset: part == 0 ? 0 : 123, unmatched: 3, late: 4))
                }
            }
        }
        writer.end()
    }

    @Test func `a set is read as it was written, again and again`() throws {
        var writer = SetHeaderWriter(set: "stereo", rendition: "gray\"", stream: "ab")
        for (sequence, parts) in [(0, 3), (7, 1), (8, 3)] {
            Self.write(&writer, sequence: UInt64(sequence), parts: parts)
            let json = try writer.bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
            let entry = try #require(
                TopicTable.entry(.media(MediaTopic(.set, device: "stereo", renditionText: "x")), isMedia: true))
            #expect(entry.header?.validate(json) == nil)
            let header = try FrameSetHeader(json)
            #expect(header.set == "stereo" && header.rendition == "gray\"" && header.stream == "ab")
            #expect(header.sequence == UInt64(sequence) && header.isLate == (parts == 1))
            #expect(header.spread == 123 && header.tolerance == 500 && header.parts.count == parts)
            #expect(header.parts[0].frame?.captureSequence == 9 && header.parts[0].payload == 0)
            guard parts == 3 else { continue }
            #expect(header.parts[1].offset == 123 && header.parts[1].payload == 1 && header.parts[1].lateFrames == 4)
            #expect(header.parts[2].missing == "late" && header.parts[2].frame == nil)
            #expect(header.parts[2].device == "cam\"2" && header.parts[2].unmatched == 1)
        }
    }

    @Test(
        "what is none is not read",
        arguments: [
            "{}", #"{"v":2}"#, #"{"v":1,"set":"a"}"#, #"{"v":1,"error":{"reason":"deviceDisconnected","message":"x"}}"#,
            #"{"v":1,"set":"a","rendition":"b","stream":"c","sequence":-1,"number":0,"late":false,"monotonic":0,"spread":0,"tolerance":0,"frames":[]}"#,
            #"{"v":1,"set":"a","rendition":"b","stream":"c","sequence":0,"number":0,"late":false,"monotonic":0,"spread":0,"tolerance":0,"frames":[{"device":"x"}]}"#,
        ])
    func nonsense(text: String) throws {
        let json = try JSONValue(parsing: text)
        #expect(throws: BusError.self) { try FrameSetHeader(json) }
    }

    @Test func `single members are found without reading the rest, and only as members`() {
        func scan(_ text: String) -> (Int64?, String?) {
            Array(text.utf8).withUnsafeBytes { bytes in
                (
                    FrameHeaderScan.monotonic(bytes),
                    FrameHeaderScan.stream(bytes).map { String(decoding: bytes[$0], as: UTF8.self) }
                )
            }
        }
        #expect(scan(Self.frame) == (1_234_567_890_123, "9f"))
        #expect(scan(#"{"device":"\"monotonic\":5,\"stream\":\"x"}"#) == (nil, nil))
        for text in ["", "{}", #""monotonic":"#, #""monotonic":x"#, #""stream":"abc"#, #""monotonic":-5"#] {
            #expect(scan(text) == (nil, nil), "\(text)")
        }
        #expect(scan(#""monotonic":99999999999999999999"#).0 == nil)
    }
}
