import CameraBusTesting
import CaptureCore
import FFmpeg
import LinuxIO
import MovieFile
import Testing

/// Movies that say something else than what was written of them.
@Suite struct DamagedFileTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    /// A movie of two fragments that was never finished, the second of so many pictures.
    private func unfinished(_ last: Int) async throws -> [UInt8] {
        let path = "\(scratch.path)/unfinished.mp4"
        let size = Dimensions(width: Material.width, height: Material.height)
        let writer = try MovieWriter(path, MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(size))))
        for (index, frame) in try await Material.motionJPEG(3 + last, in: scratch).frames.enumerated() {
            if index == 3 { try writer.endFragment() }
            _ = try frame.withUnsafeBytes { try writer.append($0, at: Int64(index) * 40_000_000) }
        }
        try writer.endFragment()
        let bytes = try File.read(path, limit: 1 << 24)
        writer.cancelWriting()
        return bytes
    }

    /// Where the last box of that name goes on behind its version and flags.
    private func lastBox(_ name: String, of bytes: [UInt8]) throws -> Int {
        let places = stride(from: bytes.count - 8, through: 0, by: -1)
        return try #require(places.first { bytes[$0..<$0 + 4].elementsEqual(name.utf8) }) + 8
    }

    @Test(arguments: [0x10, 0x60, 0x7F] as [UInt8], [1, 3])
    func timesThatNoMovieHasEndNobody(_ high: UInt8, _ last: Int) async throws {
        var bytes = try await unfinished(last)
        let time = try lastBox("tfdt", of: bytes)
        bytes.replaceSubrange(time..<time + 8, with: [high] + [UInt8](repeating: 0xFF, count: 7))
        let path = "\(scratch.path)/damaged.mp4"
        try File.replace(path, with: bytes, mode: 0o600)
        let found = try MovieRepair.inspect(path)
        #expect(found.condition == .playable && found.wholeSize == Int64(bytes.count))
        #expect(found.duration < 3_000_000_000)
        for isEncoded in [false, true] {
            let joined = "\(scratch.path)/joined\(isEncoded).mp4"
            // It is refused, or has what can be read of it.
            if let movie = try? MovieJoin.join([path, path], to: joined, isEncoded: isEncoded) {
                #expect(movie.duration < 3_000_000_000)
            }
        }
        #expect(try MovieRepair.repair(path).fileSize < 2 * Int64(bytes.count))
    }

    @Test func anIndexOfPicturesThatAreNotThereIsNotWritten() async throws {
        var bytes = try await unfinished(3)
        // Behind the number of pictures, where the first of them lies: a gigabyte away.
        bytes[try lastBox("trun", of: bytes) + 4] = 0x40
        let path = "\(scratch.path)/damaged.mp4"
        try File.replace(path, with: bytes, mode: 0o600)
        let repaired = try MovieRepair.repair(path)
        #expect(repaired.condition == .playable && repaired.fileSize == Int64(bytes.count))
        #expect(try File.read(path, limit: 1 << 24) == bytes)
    }

    @Test(arguments: [(2, 1), (1, 2)]) func soundThatChangesOnTheWayIsReadOn(_ first: Int, _ second: Int) async throws {
        var bytes: [UInt8] = []
        for (channels, rate) in [(first, 48000), (second, 44100)] {
            let path = "\(scratch.path)/\(channels).aac"
            let result = try await run(
                "ffmpeg",
                [
                    "-v", "error", "-f", "lavfi", "-i", "sine=sample_rate=\(rate):duration=1", "-ac", "\(channels)",
                    "-c:a", "aac", "-f", "adts", path,
                ], scratch)
            #expect(result.status == 0, "\(result)")
            bytes += try File.read(path, limit: 1 << 20)
        }
        let path = "\(scratch.path)/both.aac"
        try File.replace(path, with: bytes, mode: 0o600)
        let reader = try SoundReader(path, as: AudioFormat(.int16, rate: 48000, channels: 2))
        var (moments, loudest) = (0, Int16(0))
        while let piece = try reader.next() {
            moments += piece.samples.count / 4
            if moments > 72000 {
                loudest = max(loudest, piece.samples.loadUnaligned(fromByteOffset: 2, as: Int16.self))
            }
        }
        #expect(abs(moments - 96000) < 6000)
        #expect(loudest > 500, "the second half is heard in both channels")
    }
}
