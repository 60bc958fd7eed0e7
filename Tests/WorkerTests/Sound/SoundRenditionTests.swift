import BusProtocol
import CaptureCore
import CaptureSources
import Delivery
import JSON
import Testing

@testable import Worker

/// How a period becomes a piece of a rendition.
@Suite struct SoundRenditionTests {
    private func period(_ first: UInt64, _ frames: Int, isDiscontinuous: Bool = false) -> SoundPeriod {
        SoundPeriod(
            firstFrame: first, frames: frames, monotonicTime: Int64(first) * 1_000_000_000 / 48000,
            isDiscontinuous: isDiscontinuous)
    }

    private func work(_ text: String, _ sample: SampleFormat = .s16, channels: Int = 2) throws -> SoundRenditionWork {
        try SoundRenditionWork(
            try SoundRendition(parsing: text),
            from: SoundFormat(sampleFormat: sample, rate: 48000, channels: channels, periodFrames: 480))
    }

    @Test("pieces follow on one another, at the times at which they were taken")
    func follows() throws {
        let work = try work("s16:44100x1")
        let silence = [UInt8](repeating: 0, count: 480 * 4)
        var next: UInt64?
        for index in 0..<200 {
            let piece = try silence.withUnsafeBytes { try work.convert($0, period(UInt64(index) * 480, 480)) }
            guard let piece else { continue }
            #expect(piece.firstFrame == next ?? 0)
            #expect(piece.samples.count == piece.frames * 2)
            next = piece.firstFrame + UInt64(piece.frames)
            #expect(abs(piece.monotonic - Int64(piece.firstFrame) * 1_000_000_000 / 44100) < 30_000)
        }
        #expect(next ?? 0 > 88000)
    }

    @Test("after a hole it begins anew where the sound goes on")
    func hole() throws {
        let work = try work("f32:16000x2")
        let silence = [UInt8](repeating: 0, count: 480 * 4)
        _ = try silence.withUnsafeBytes { try work.convert($0, period(0, 480)) }
        let piece = try #require(
            try silence.withUnsafeBytes { try work.convert($0, period(48000, 480, isDiscontinuous: true)) })
        #expect(piece.firstFrame == 16000 && piece.monotonic == 1_000_000_000)
    }

    @Test("24 bits keep their level", arguments: [SampleFormat.s24, .s24in32, .s32, .f32])
    func samples(_ format: SampleFormat) throws {
        let work = try work("f32", format, channels: 1)
        // A quarter of full scale, negative; what the fourth byte of 24 in 32 holds doesn't count.
        let sample: [UInt8] =
            switch format {
            case .s24: [0, 0, 0xE0]
            case .s24in32: [0, 0, 0xE0, 0x55]
            case .f32: withUnsafeBytes(of: Float(-0.25).bitPattern.littleEndian) { Array($0) }
            default: [0, 0, 0, 0xE0]
            }
        let bytes = (0..<480).flatMap { _ in sample }
        let piece = try #require(try bytes.withUnsafeBytes { try work.convert($0, period(0, 480)) })
        #expect(piece.frames == 480)
        #expect(piece.samples.bindMemory(to: Float.self).allSatisfy { abs($0 + 0.25) < 0.00001 })
    }

    @Test("the sound as it comes is not made anew")
    func passThrough() throws {
        let format = SoundFormat(sampleFormat: .s16, rate: 48000, channels: 2, periodFrames: 480)
        for (text, isSame) in [
            ("native", true), ("s16", true), ("s16:48000x2", true), ("f32", false), ("s16:44100x2", false),
            ("s16:48000x1", false),
        ] {
            #expect(SoundRenditionWork.isPassThrough(try SoundRendition(parsing: text), format) == isSame, "\(text)")
        }
    }

    @Test(
        "what can't be made is refused with what can",
        arguments: [
            ("s16:1000x1", "s16:4000x1"), ("f32:768000x2", "f32:384000x2"), ("f32:48000x9", "f32"),
            ("s16:1000x64", "s16"),
        ])
    func refused(_ text: String, _ nearest: String) throws {
        do {
            _ = try work(text)
            Issue.record("\(text) was made")
        } catch let error as BusError {
            #expect(error.reason == .formatUnsupported && error.data["nearest"]?.string == nearest, "\(error)")
        }
        _ = try work(nearest)
    }

    @Test("one rendition too many waits for a place; native and levels take none")
    func limit() {
        var table = SoundSubscriptionTable(device: "mic0", maximumRenditions: 2)
        let client = RenditionClient(.subscriber(5), uid: 1000)
        func add(_ topic: String) -> SubscriptionChange { table.subscribe(Array(topic.utf8), by: client) }
        func remove(_ topic: String) -> SubscriptionChange { table.unsubscribe(Array(topic.utf8), by: client) }
        #expect(add("audio/mic0/s16/") == .wanted && add("audio/mic0/native/") == .wanted)
        #expect(add("level/mic0/") == .wanted && add("level/mic0/") == .none)
        #expect(add("audio/mic0/f32:16000x1/") == .none)
        let refusals = table.takeRefusals()
        #expect(refusals.map(\.topic.text) == ["f32:16000x1"] && table.count == 4)
        #expect(refusals.first?.error.reason == .limitExceeded)
        #expect(table.refusal(of: Array("audio/mic0/f32:16000x1/".utf8))?.error == refusals.first?.error)
        #expect(remove("audio/mic0/s16/") == .wanted)
        #expect(table.sound.map(\.rendition.description) == ["native", "f32:16000x1"] && table.refused.isEmpty)
        #expect(remove("audio/mic0/native/") == .wanted)
        #expect(remove("audio/mic0/f32:16000x1/") == .wanted && !table.isEmpty)
        #expect(remove("level/mic0/") == .wanted && table.isEmpty)
    }
}
