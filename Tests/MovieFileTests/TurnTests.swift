import BusProtocol
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

    @Test(
        "The pictures of another camera keep their shape, whatever the shape of the pixels",
        arguments: [(1, 1, 80), (1, 2, 0), (2, 1, 160), (4, 3, 120)])
    func otherPixels(_ width: Int, _ height: Int, _ border: Int) async throws {
        let scratch = try TemporaryDirectory()
        let path = "\(scratch.path)/cameras.mp4"
        let first = try #require(FrameLayout.packed(.i420, Dimensions(width: 320, height: 240)))
        var settings = MovieFileType.mp4.recommendedVideoSettings(first.dimensions, frameRate: 30)
        settings.preset = "ultrafast"
        let writer = try MovieWriter(path, MovieConfiguration(.mp4, video: .encoded(first, settings)))
        func append(_ layout: FrameLayout, at time: Int64) throws {
            let luma = layout.dimensions.area
            let white = [UInt8](repeating: 235, count: luma) + [UInt8](repeating: 128, count: luma / 2)
            _ = try white.withUnsafeBytes { try writer.append($0, at: time) }
        }
        try append(first, at: 0)
        // Twice as wide as it is high, in pixels.
        var description = FormatDescription(pixelFormat: .i420, dimensions: Dimensions(width: 320, height: 160))
        description.extensions.pixelAspectRatio = try #require(FormatExtensions.Ratio(width, height))
        let other = try #require(FrameLayout.packed(description))
        try writer.setSource(other)
        try append(other, at: 33_333_333)
        #expect(try writer.finishWriting() == nil)
        let column = try await run(
            "ffmpeg",
            [
                "-v", "error", "-i", path, "-vf", "select=eq(n\\,1),crop=2:240:160:0,format=gray", "-f", "rawvideo",
                "-y", "\(scratch.path)/column",
            ], scratch)
        #expect(column.status == 0, "\(column)")
        let bytes = try File.read("\(scratch.path)/column", limit: 1000)
        try #require(bytes.count == 480)
        let found = (0..<240).filter { bytes[2 * $0] < 100 }.count
        #expect(abs(found - border) <= 2, "\(found) lines above and below are black")
    }
}
