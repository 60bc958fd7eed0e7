import BusProtocol
import CameraBusTesting
import JSON
import Testing

@testable import camerabus

/// What the command line makes of sound.
@Suite struct SoundOutputTests {
    private func header(_ sampleFormat: String, channels: Int, frames: Int = 2) throws -> SoundHeader {
        try SoundHeader([
            "v": 1, "device": "mic0", "rendition": "native", "stream": "s", "sampleFormat": .string(sampleFormat),
            "rate": 48000, "channels": JSONValue(channels), "sequence": 0, "firstFrame": 0, "frames": JSONValue(frames),
            "overruns": 0, "generation": 0, "timestamp": ["monotonic": 1, "realtime": 2, "source": "status"],
        ])
    }

    @Test func `a WAV file's header says what is in it`() throws {
        let format = WaveFile.Format(try header("s16", channels: 2))
        let bytes = WaveFile.header(format, dataBytes: 8)
        #expect(bytes.count == 44 && bytes.prefix(4) == Array("RIFF".utf8)[...])
        #expect(bytes[4..<8] == [44, 0, 0, 0] && bytes[20..<24] == [1, 0, 2, 0])
        #expect(bytes[24..<32] == [0x80, 0xBB, 0, 0, 0, 0xEE, 2, 0] && bytes[32..<36] == [4, 0, 16, 0])
        #expect(bytes[40..<44] == [8, 0, 0, 0])
    }

    @Test func `a WAV file of numbers with a point has an extension and its number of frames`() throws {
        let bytes = WaveFile.header(WaveFile.Format(try header("f32", channels: 2)), dataBytes: 24)
        #expect(bytes.count == 58 && bytes[4..<8] == [74, 0, 0, 0])
        #expect(bytes[16..<24] == [18, 0, 0, 0, 3, 0, 2, 0] && bytes[34..<38] == [32, 0, 0, 0])
        #expect(bytes[38..<50] == (Array("fact".utf8) + [4, 0, 0, 0, 3, 0, 0, 0])[...])
        #expect(bytes[50..<58] == (Array("data".utf8) + [24, 0, 0, 0])[...])
    }

    @Test func `24 bits in four bytes become three`() throws {
        #expect(WaveFile.Format(try header("s24in32", channels: 2)).bytesPerFrame == 6)
        let samples: [UInt8] = [1, 2, 3, 99, 4, 5, 6, 99]
        #expect(samples.withUnsafeBytes { WaveFile.packed($0) } == [1, 2, 3, 4, 5, 6])
    }

    @Test func `a file grows, and its header is right when it is finished`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/a.wav"
        let file = try WaveFile(path, WaveFile.Format(try header("s16", channels: 1)))
        let samples: [UInt8] = [1, 0, 2, 0]
        try samples.withUnsafeBytes { try file.append($0) }
        try file.appendSilence(frames: 3)
        try file.finish()
        #expect(file.dataBytes == 10)
    }

    @Test func `a bar is as long as it is loud`() throws {
        let json: JSONValue = [
            "v": 1, "device": "mic0", "stream": "s", "sequence": 0, "monotonic": 1, "average": [-60, -30],
            "peak": [-160, 0],
        ]
        let line = LevelsCommand.line(try SoundLevel(json))
        #expect(line.hasPrefix("[                              ]  -60.0 -160.0 dB  [###############"))
        #expect(line.hasSuffix("|]  -30.0    0.0 dB"))
    }
}
