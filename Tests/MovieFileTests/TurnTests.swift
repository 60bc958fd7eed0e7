import CameraBusTesting
import CaptureCore
import FFmpeg
import LinuxIO
import MovieFile
import Testing

/// Pictures that are stored unchanged, and turned by the matrix of their track.
@Suite struct TurnTests {
    private static let size = Dimensions(width: Material.width, height: Material.height)
    private static let turns = (0..<8).map { PictureOrientation(quarters: $0, isMirrored: $0 >= 4) }

    @Test("A track's matrix turns what is stored, byte for byte", arguments: turns, [MovieFileType.mp4, .mov])
    func matrix(_ turn: PictureOrientation, _ type: MovieFileType) async throws {
        let scratch = try TemporaryDirectory()
        let material = try await Material.motionJPEG(10, in: scratch)
        var description = FormatDescription.jpeg(Self.size)
        description.orientation = turn
        let path = "\(scratch.path)/turned.\(type)"
        let writer = try MovieWriter(path, MovieConfiguration(type, video: .motionJPEG(description)))
        for (frame, time) in zip(material.frames, Material.times(10)) {
            #expect(try frame.withUnsafeBytes { try writer.append($0, at: time) })
        }
        #expect(try writer.finishWriting() == nil)
        let reader = try MovieReader(path, delivers: .packets)
        #expect(reader.track.turn == PictureTurn(quarters: turn.quarters, isMirrored: turn.isMirrored))
        var frames: [[UInt8]] = []
        while try reader.next() != nil { frames.append(reader.withPacket { Array($0) }) }
        #expect(frames == material.frames)
        // ffmpeg's own word for the turn.
        let probe = try await run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_entries", "stream_side_data=rotation", "-of", "csv=p=0",
                path,
            ],
            scratch)
        let angle = probe.standardOutput.split(separator: "\n").compactMap { Int($0) }.last
        if !turn.isMirrored { #expect(((angle ?? 0) + 360) % 360 == (360 - turn.quarters * 90) % 360, "\(probe)") }
    }
}
