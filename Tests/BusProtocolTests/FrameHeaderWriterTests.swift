import BusProtocol
import JSON
import Testing

@Suite struct FrameHeaderWriterTests {
    private static let yuyv = FrameHeaderWriter.Picture(
        device: "cam0", rendition: "native", stream: "9f3ac2d0", format: "YUYV", width: 640, height: 480,
        planes: [FrameHeader.Plane(offset: 0, stride: 1280, bytes: 614_400)], timestampSource: "startOfExposure")

    private static let jpeg = FrameHeaderWriter.Picture(
        device: "front", rendition: "jpeg:640x0@10;q=75", stream: "aa", format: "JPEG", width: 640, height: 360,
        planes: nil, orientation: 90, mirrored: true, timestampSource: "dequeue")

    @Test(arguments: [yuyv, jpeg])
    func whatIsWrittenIsReadBack(_ picture: FrameHeaderWriter.Picture) throws {
        var writer = FrameHeaderWriter(picture)
        for count in [UInt64(0), 1, 1_000_000, 3] {
            writer.write(
                sequence: count, captureSequence: count + 1, generation: 3, monotonic: 81_234_567_890_123,
                realtime: 1_789_000_000_123_456_789, dropped: count / 2, payloadBytes: 614_400)
            let json = try writer.withBytes { try JSONValue(parsing: $0) }
            let header = try FrameHeader(json)
            #expect(header.device == picture.device)
            #expect(header.rendition == picture.rendition)
            #expect(header.stream == picture.stream)
            #expect(header.format == picture.format)
            #expect((header.width, header.height) == (picture.width, picture.height))
            #expect((header.sequence, header.captureSequence, header.dropped) == (count, count + 1, count / 2))
            #expect((header.monotonic, header.realtime) == (81_234_567_890_123, 1_789_000_000_123_456_789))
            #expect(header.timestampSource == picture.timestampSource)
            #expect((header.orientation, header.mirrored) == (picture.orientation, picture.mirrored))
            #expect(header.planes == picture.planes ?? [FrameHeader.Plane(offset: 0, stride: 0, bytes: 614_400)])
            let entry = try #require(TopicTable.entry(.frame("cam0", "native"), isMedia: true))
            #expect(entry.header?.validate(json) == nil)
        }
    }

    @Test func whereAPictureLiesIsReadBack() throws {
        var picture = Self.jpeg
        picture.ring = "5be1c0a97d3f6e42"
        var writer = FrameHeaderWriter(picture)
        for count in [1, 1000, 2] {
            writer.write(
                sequence: 1, captureSequence: 1, generation: 1, monotonic: 1, realtime: 1, dropped: 0,
                payloadBytes: count, place: .init(slot: count, offset: 4096 * count, stamp: UInt64(2 * count)))
            let json = try writer.withBytes { try JSONValue(parsing: $0) }
            let header = try FrameHeader(json)
            #expect(
                header.buffer
                    == .init(
                        ring: "5be1c0a97d3f6e42", slot: count, offset: 4096 * count, bytes: count,
                        stamp: UInt64(2 * count)))
            #expect(header.planes == [.init(offset: 0, stride: 0, bytes: count)])
            let topic = Topic.media(MediaTopic(.buffer, device: "cam0", renditionText: "jpeg"))
            #expect(try #require(TopicTable.entry(topic, isMedia: true)?.header).validate(json) == nil)
        }
    }

    @Test(arguments: [
        (1000, ""), (1001, #","zoom":1.001"#), (1250, #","zoom":1.25"#), (2000, #","zoom":2"#),
        (10_010, #","zoom":10.01"#),
        (100_500, #","zoom":100.5"#), (0, ""), (-1, ""),
    ])
    func howFarItIsZoomedIsToldWhereItIs(_ zoom: Int, _ text: String) throws {
        var writer = FrameHeaderWriter(Self.jpeg)
        writer.write(
            sequence: 1, captureSequence: 1, generation: 1, monotonic: 1, realtime: 1, dropped: 0, zoom: zoom,
            payloadBytes: 9)
        #expect(String(decoding: writer.bytes, as: UTF8.self).hasSuffix(#""dropped":0"# + text + "}"))
        let json = try writer.withBytes { try JSONValue(parsing: $0) }
        #expect(try FrameHeader(json).zoom == Double(max(zoom, 1000)) / 1000)
        let entry = try #require(TopicTable.entry(.frame("cam0", "jpeg"), isMedia: true))
        #expect(entry.header?.validate(json) == nil)
    }

    @Test func keyFramesAreToldWhereThereAreSome() throws {
        var picture = Self.jpeg
        picture.format = "H264"
        var writer = FrameHeaderWriter(picture)
        for keyframe in [true, false, nil, true] as [Bool?] {
            writer.write(
                sequence: 1, captureSequence: 1, generation: 1, monotonic: 1, realtime: 1, dropped: 0,
                keyframe: keyframe, payloadBytes: 9)
            let json = try writer.withBytes { try JSONValue(parsing: $0) }
            #expect(try FrameHeader(json).keyframe == keyframe)
            #expect((json["keyframe"] == nil) == (keyframe == nil))
            let entry = try #require(TopicTable.entry(.frame("cam0", "native"), isMedia: true))
            #expect(entry.header?.validate(json) == nil)
        }
    }

    @Test func memoryIsKeptFromFrameToFrame() {
        var writer = FrameHeaderWriter(Self.jpeg)
        var addresses: Set<Int> = []
        for count in stride(from: UInt64(1), to: UInt64(Int64.max) / 2, by: Int(Int64.max / 1000)) {
            writer.write(
                sequence: count, captureSequence: count, generation: count, monotonic: .max, realtime: .max,
                dropped: count, payloadBytes: .max)
            writer.withBytes { _ = addresses.insert(Int(bitPattern: $0.baseAddress)) }
        }
        #expect(addresses.count == 1)
    }

    @Test func namesAreEscaped() throws {
        var picture = Self.yuyv
        picture.rendition = "a\"b\\c"
        var writer = FrameHeaderWriter(picture)
        writer.write(
            sequence: 0, captureSequence: 0, generation: 0, monotonic: 0, realtime: 0, dropped: 0, payloadBytes: 0)
        #expect(try FrameHeader(try writer.withBytes { try JSONValue(parsing: $0) }).rendition == "a\"b\\c")
    }
}
