import BusProtocol
import CameraBusTesting
import CaptureCore
import FFmpeg
import Imaging
import LinuxIO
import MovieFile
import Testing

/// Motion JPEG as cameras send it: what other programs need of it is in the file.
@Suite struct RepairTests {
    private static let size = Dimensions(width: 64, height: 48)
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    /// Pictures with the standard Huffman tables, each of another grey.
    private static func pictures(_ count: Int) throws -> [[UInt8]] {
        let layout = try #require(FrameLayout.packed(.yuyv, size))
        let converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .jpeg, dimensions: size))
        return try (0..<count).map { number in
            let pixels = (0..<layout.totalBytes).map { $0 % 2 == 0 ? UInt8(20 + number * 10) : 128 }
            let output = PictureBuffer()
            _ = try pixels.withUnsafeBytes { try converter.convert([$0], bytesUsed: [$0.count], into: output) }
            return Array(output.bytes)
        }
    }

    private static func withoutTables(_ jpeg: [UInt8]) -> [UInt8] {
        var (result, index) = (Array(jpeg[..<2]), 2)
        while jpeg[index + 1] != 0xDA {
            let next = index + 2 + Int(jpeg[index + 2]) << 8 + Int(jpeg[index + 3])
            if jpeg[index + 1] != 0xC4 { result += jpeg[index..<next] }
            index = next
        }
        return result + jpeg[index...]
    }

    private func record(_ pictures: [[UInt8]], _ type: MovieFileType, constant rate: Double? = nil) throws -> String {
        let path = "\(scratch.path)/\(pictures[0].count)-\(rate ?? 0).\(type)"
        var configuration = MovieConfiguration(type, video: .motionJPEG(.jpeg(Self.size)))
        configuration.constantFrameRate = rate
        let writer = try MovieWriter(path, configuration)
        for (picture, time) in zip(pictures, Material.times(pictures.count)) {
            _ = try picture.withUnsafeBytes { try writer.append($0, at: time) }
        }
        #expect(try writer.finishWriting() == nil)
        return path
    }

    private func packets(_ path: String) throws -> [[UInt8]] {
        let reader = try MovieReader(path, delivers: .packets)
        var packets: [[UInt8]] = []
        while try reader.next() != nil { packets.append(reader.withPacket { Array($0) }) }
        return packets
    }

    @Test("Missing Huffman tables and ends are put in", arguments: MovieFileType.allCases)
    func completes(_ type: MovieFileType) async throws {
        let whole = try Self.pictures(5)
        let kinds = [
            whole.map(Self.withoutTables), whole.map { $0.dropLast(2) },
            whole.map { Self.withoutTables($0).dropLast(2) },
        ]
        for pictures in kinds {
            let path = try record(pictures, type)
            #expect(try packets(path) == whole)
            let picture = "\(scratch.path)/picture.jpg"
            let taken = try await run(
                "ffmpeg", ["-v", "error", "-y", "-i", path, "-c", "copy", "-frames:v", "1", "-update", "1", picture],
                scratch)
            #expect(taken.status == 0 && taken.standardError.isEmpty, "\(taken)")
            // ffmpeg would report a missing end.
            let judged = try await run("exiftool", ["-validate", "-s3", "-Validate", picture], scratch)
            #expect(judged.standardOutput.hasPrefix("OK"), "\(judged)")
            // Also where they are repeated for a constant rate.
            let repeated = try packets(try record(pictures, type, constant: 60))
            #expect(repeated.count > 5 && Set(repeated) == Set(whole))
        }
    }

    @Test("Complete pictures are stored byte for byte", arguments: MovieFileType.allCases)
    func keeps(_ type: MovieFileType) throws {
        let whole = try Self.pictures(5)
        let filled = whole.map { $0 + [UInt8](repeating: 0, count: 300) }
        for pictures in [whole, filled] { #expect(try packets(try record(pictures, type)) == pictures) }
    }
}
