import CameraBusTesting
import CaptureCore
import FFmpeg
import MovieFile
import Testing

/// Sound that is stored as it comes.
@Suite struct PlainSoundTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let (rate, piece) = (48000, 480)

    /// Bytes that are unlike at each moment.
    private static func noise(_ moments: Int, _ format: AudioFormat) -> [UInt8] {
        var state: UInt32 = 7
        return (0..<moments * format.frameBytes).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            // Exponents of no infinite and no unknown number.
            return UInt8(truncatingIfNeeded: state >> 24) & 0x3F
        }
    }

    private func encoder(_ sample: AudioFormat.Sample = .int16) throws -> AudioEncoder {
        try AudioEncoder(
            AudioEncoderSettings(.pcm, rate: Self.rate, channels: 2, bitRate: 0),
            from: AudioFormat(sample, rate: Self.rate, channels: 2))
    }

    @Test(arguments: [MovieFileType.mov, .mkv], AudioFormat.Sample.allCases)
    func staysWhatItIs(_ type: MovieFileType, _ sample: AudioFormat.Sample) throws {
        let format = AudioFormat(sample, rate: Self.rate, channels: 2)
        let path = "\(scratch.path)/movie.\(type)"
        let configuration = MovieConfiguration(
            type, video: nil,
            audio: MovieAudio(format, AudioSettings(.pcm, rate: Self.rate, channels: 2, bitRate: 0)))
        let writer = try MovieWriter(path, configuration)
        let sound = Self.noise(100 * Self.piece, format)
        try sound.withUnsafeBytes { bytes in
            for index in 0..<100 {
                // As a driver's times are: near.
                let time = 5_000_000_000 + Int64(index) * 10_000_000 + Int64(index % 7) * 300_000
                let range = index * Self.piece * format.frameBytes..<(index + 1) * Self.piece * format.frameBytes
                try writer.append(sound: UnsafeRawBufferPointer(rebasing: bytes[range]), at: time)
            }
        }
        #expect(try writer.finishWriting() == nil)
        let reader = try SoundReader(path, as: format)
        var found: [UInt8] = []
        while let piece = try reader.next() { found.append(contentsOf: piece.samples) }
        #expect(found == sound)
    }

    /// What came out of pieces of a clock that runs at another speed.
    private func encode(
        pieces: Int, _ sample: (Int) -> UInt8 = { _ in 1 }, at time: (Int) -> Int64
    ) throws -> [UInt8] {
        let encoder = try encoder()
        var made: [UInt8] = []
        for index in 0..<pieces {
            let bytes = [UInt8](repeating: sample(index), count: Self.piece * 4)
            try bytes.withUnsafeBytes {
                try encoder.encode($0, at: time(index)) { (packet) throws(MediaError) in
                    made.append(contentsOf: packet.bytes)
                }
            }
        }
        try encoder.finish { (packet) throws(MediaError) in made.append(contentsOf: packet.bytes) }
        return made
    }

    @Test func fillsAHoleAndLeavesOutWhatComesTwice() throws {
        // The pieces 10 to 12 are missing.
        let hole = try encode(pieces: 20) { Int64($0 < 10 ? $0 : $0 + 3) * 10_000_000 }
        let bytes = Self.piece * 4
        #expect(hole.count == 23 * bytes)
        #expect(hole[..<(10 * bytes)].allSatisfy { $0 == 1 } && hole[(13 * bytes)...].allSatisfy { $0 == 1 })
        #expect(hole[(10 * bytes)..<(13 * bytes)].allSatisfy { $0 == 0 })
        // The pieces 5 and 6 come again.
        let twice = try encode(
            pieces: 12, { UInt8($0) }, at: { Int64($0 < 7 ? $0 : $0 - 2) * 10_000_000 })
        #expect(twice.count == 10 * bytes)
        #expect(twice[(6 * bytes)..<(7 * bytes)].allSatisfy { $0 == 6 } && twice.last == 11)
        // It begins late, and before the movie.
        #expect(try encode(pieces: 1) { _ in 5_000_000 }.count == bytes + 240 * 4)
        #expect(try encode(pieces: 2) { Int64($0) * 10_000_000 - 5_000_000 }.count == 2 * bytes - 240 * 4)
    }

    @Test(arguments: [1.001, 0.999]) func singleSamplesMakeUpForAClockThatDrifts(_ speed: Double) throws {
        let pieces = 6000
        let made = try encode(pieces: pieces) { Int64(Double($0) * 10_000_000 / speed) }
        let length = Double(made.count) / 4 / Double(Self.rate)
        let time = Double(pieces) * 0.01 / speed
        #expect(abs(length - time) < 0.012, "\(length) s of sound in \(time) s")
        #expect(made.allSatisfy { $0 == 1 }, "no silence")
    }
}
