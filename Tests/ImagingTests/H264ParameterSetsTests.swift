import CameraBusTesting
import CaptureCore
import Imaging
import JSON
import LinuxIO
import Testing

/// Which parameter set a picture has, with ffprobe as the judge.
@Suite struct H264ParameterSetsTests {
    private struct Stream {
        var sets: [UInt8]
        /// Without sets.
        var picture: [UInt8]
    }

    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    /// One picture, whose sets have that number.
    private func encoded(_ size: String, _ number: Int) async throws -> Stream {
        let path = "\(scratch.path)/\(number).h264"
        let result = try await RunningProgram.result(
            "ffmpeg",
            [
                "-v", "error", "-f", "lavfi", "-i", "testsrc=size=\(size)", "-frames:v", "1", "-pix_fmt", "yuv420p",
                "-c:v", "libx264", "-x264-params", "sps-id=\(number)", "-f", "h264", "-y", path,
            ], in: scratch)
        try #require(result.status == 0, "\(result)")
        let bytes = try File.read(path, limit: 1 << 20)
        let ranges = bytes.withUnsafeBytes { H264Stream.beginning(of: $0).parameterSets }
        let last = try #require(ranges.last)
        return Stream(sets: ranges.flatMap { bytes[$0] }, picture: Array(bytes[last.upperBound...]))
    }

    @Test func aPictureHasTheSetThatItNames() async throws {
        let (small, large) = (try await encoded("96x64", 0), try await encoded("160x112", 3))
        // As encoders do that list all of their sets at each key frame.
        let all = small.sets + large.sets
        let frames = [all + small.picture, all + large.picture, small.picture, large.picture]
        let path = "\(scratch.path)/all.h264"
        try File.replace(path, with: frames.flatMap { $0 }, mode: 0o600)
        let probed = try await RunningProgram.result(
            "ffprobe", ["-v", "error", "-show_entries", "frame=width", "-of", "csv=p=0", path], in: scratch)
        var sets = H264ParameterSets()
        let widths = frames.map { frame in
            frame.withUnsafeBytes { sets.take($0) }
            return sets.current?.dimensions.width ?? 0
        }
        let theirs = probed.standardOutput.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }
        #expect(widths == theirs && widths == [96, 160, 96, 160], "\(theirs)")
    }

    @Test func whatNamesNoSetHasTheNewest() async throws {
        let stream = try await encoded("96x64", 1)
        var sets = H264ParameterSets()
        stream.picture.withUnsafeBytes { sets.take($0) }
        #expect(sets.current == nil)
        let ranges = stream.sets.withUnsafeBytes { H264Stream.beginning(of: $0).parameterSets }
        let withoutPictureSet = Array(stream.sets[try #require(ranges.first)]) + stream.picture
        withoutPictureSet.withUnsafeBytes { sets.take($0) }
        #expect(sets.current?.dimensions.width == 96)
        for count in 0..<withoutPictureSet.prefix(200).count {
            withoutPictureSet[..<count].withUnsafeBytes { sets.take($0) }
            #expect(sets.current?.dimensions.width == 96)
        }
    }
}
