import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import Imaging
import LinuxIO
import MovieFile
import Testing

/// H.264 whose pictures come in the order in which they are decoded, and are shown in another one.
@Suite struct ReorderingTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private struct Packet {
        var bytes: [UInt8]
        var time: Int64
        var delay: Int64
        var isKeyFrame: Bool
    }

    /// As libx264 makes it by itself, with a key frame every second.
    private func film() async throws -> (path: String, packets: [Packet], parameterSets: [UInt8]) {
        let path = "\(scratch.path)/film.mp4"
        let made = try await run(
            "ffmpeg",
            [
                "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", "100", "-c:v",
                "libx264", "-g", "25", "-pix_fmt", "yuv420p", path,
            ], scratch)
        guard made.status == 0 else { throw TestingError(made.description) }
        let reader = try MovieReader(path, delivers: .packets)
        var (packets, sets) = ([Packet](), [UInt8]())
        while let item = try reader.next() {
            let bytes = reader.withPacket { Array($0) }
            let beginning = bytes.withUnsafeBytes { H264Stream.beginning(of: $0) }
            if sets.isEmpty { sets = beginning.parameterSets.flatMap { Array(bytes[$0]) } }
            packets.append(
                Packet(
                    bytes: bytes, time: try #require(item.time), delay: item.presentationDelay,
                    isKeyFrame: beginning.isKeyframe))
        }
        #expect(packets.contains { $0.delay > 40_000_000 } && packets.contains { $0.delay == 0 })
        return (path, packets, sets)
    }

    private func writer(_ path: String, _ type: MovieFileType, _ sets: [UInt8]) throws -> MovieWriter {
        var description = FormatDescription.h264(Dimensions(width: 320, height: 240))
        description.frameDuration = FrameDuration(framesPerSecond: 25)
        var configuration = MovieConfiguration(type, video: .h264(description, parameterSets: sets))
        configuration.movieFragmentInterval = 700_000_000
        return try MovieWriter(path, configuration)
    }

    private static func append(_ packet: Packet, to writer: MovieWriter) throws {
        let isTaken = try packet.bytes.withUnsafeBytes {
            try writer.append(
                $0, at: 7_000_000_000 + packet.time, presentationDelay: packet.delay, isKeyFrame: packet.isKeyFrame)
        }
        #expect(isTaken)
    }

    /// When each picture is shown, seconds, and what it is, in that order.
    private func shown(_ path: String) async throws -> (times: [Double], pictures: [String]) {
        let probe = try await run(
            "ffprobe",
            ["-v", "error", "-select_streams", "v:0", "-show_entries", "frame=pts_time", "-of", "csv=p=0", path],
            scratch)
        guard probe.status == 0, probe.standardError.isEmpty else { throw TestingError(probe.description) }
        let times = probe.standardOutput.split(separator: "\n").compactMap {
            $0.split(separator: ",").first.flatMap { Double($0) }
        }
        let sums = try await run(
            "ffmpeg",
            ["-v", "error", "-i", path, "-map", "0:v:0", "-fps_mode", "passthrough", "-f", "framemd5", "-"], scratch)
        guard sums.status == 0 else { throw TestingError(sums.description) }
        let pictures = sums.standardOutput.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last.map(String.init)
        }
        return (times, pictures)
    }

    private static func isSame(_ one: [Double], _ other: [Double], within tolerance: Double) -> Bool {
        one.count == other.count && zip(one, other).allSatisfy { abs($0 - $1) < tolerance }
    }

    @Test(arguments: StreamTests.Kind.allCases)
    func aServerShowsThemWhenTheyAreInTheFilm(_ kind: StreamTests.Kind) async throws {
        let (film, packets, sets) = try await film()
        let port = try LocalPort.free(kind == .srt ? SOCK_DGRAM : SOCK_STREAM)
        let received = "\(scratch.path)/received.mkv"
        let description = FormatDescription.h264(Dimensions(width: 320, height: 240))
        var configuration = StreamConfiguration(
            kind.url(port), video: .h264(description, parameterSets: sets), audio: nil)
        configuration.retryDelays = 50_000_000...200_000_000
        configuration.queueDuration = 60_000_000_000
        let stream = try MovieStream(configuration)
        for packet in packets {
            packet.bytes.withUnsafeBytes {
                _ = stream.append(
                    $0, at: packet.time, presentationDelay: packet.delay, isKeyFrame: packet.isKeyFrame)
            }
        }
        // RTP says only when pictures are shown, which ffmpeg can't store without decoding them.
        let server = try kind.serve(port, to: received, scratch, decodes: kind == .rtsp)
        try await eventually(by: .after(seconds: 60)) { stream.statistics.frames == UInt64(packets.count) }
        stream.close(within: 60_000_000_000)
        let result = try await server.end(by: .after(seconds: 60))
        #expect(result.status == 0, "\(result)")
        let (wanted, found) = (try await shown(film), try await shown(received))
        #expect(found.pictures == wanted.pictures)
        // This reader moves what comes before the first time that RTSP tells to zero.
        let skipped = kind == .rtsp ? 6 : 0
        try #require(found.times.count == wanted.times.count)
        let distances = zip(found.times, wanted.times).dropFirst(skipped).map { $0 - $1 }
        let spread = (distances.max() ?? 1) - (distances.min() ?? 0)
        #expect(spread < 0.0021, "\(found.times.prefix(12))")
    }

    @Test(arguments: MovieFileType.allCases, [true, false])
    func picturesAreShownWhenTheyAreInTheFilm(_ type: MovieFileType, _ isFinished: Bool) async throws {
        let (film, packets, sets) = try await film()
        let path = "\(scratch.path)/movie.\(type)"
        let writer = try writer(path, type, sets)
        for packet in packets { try Self.append(packet, to: writer) }
        if isFinished {
            #expect(try writer.finishWriting() == nil)
        } else {
            try writer.endFragment()
        }
        let (wanted, found) = (try await shown(film), try await shown(path))
        // Of a file without its index ffprobe takes the first picture's time to be when it is decoded.
        let start = isFinished ? 0 : try #require(found.times.first)
        let tolerance = type == .mkv ? 0.0011 : 0.0001
        #expect(Self.isSame(found.times.map { $0 - start }, wanted.times, within: tolerance), "\(found.times)")
        #expect(found.pictures == wanted.pictures)
        #expect(abs(Double(writer.statistics.recordedDuration) / 1e9 - 4) < 0.001)
        if type == .mkv { return }
        // Who completes a movie of a recorder that died doesn't know the times, and changes nothing.
        let descriptor = try FileDescriptor(opening: path, 2)
        #expect(try MovieIndex.complete(descriptor.rawValue, as: type == .mp4 ? .mp4 : .mov) == false)
        #expect(try await shown(path).times == found.times)
    }

    @Test(arguments: MovieFileType.allCases)
    func afterAPauseAndInAJoinedMovieTimesRise(_ type: MovieFileType) async throws {
        let (film, packets, sets) = try await film()
        let path = "\(scratch.path)/movie.\(type)"
        let writer = try writer(path, type, sets)
        for (index, packet) in packets.enumerated() {
            if index == 30 { try writer.pause(at: 7_000_000_000 + packet.time) }
            if index == 40 { writer.resume(at: 7_000_000_000 + packet.time) }
            if (30..<50).contains(index) {
                _ = try packet.bytes.withUnsafeBytes {
                    try writer.append(
                        $0, at: 7_000_000_000 + packet.time, presentationDelay: packet.delay,
                        isKeyFrame: packet.isKeyFrame)
                }
            } else {
                try Self.append(packet, to: writer)
            }
        }
        #expect(try writer.finishWriting() == nil)
        let (wanted, found) = (try await shown(film), try await shown(path))
        #expect(found.times == found.times.sorted() && Set(found.times).count == found.times.count)
        // Those that come before the pause and are shown in it stay.
        #expect((80...86).contains(found.pictures.count))
        #expect(found.pictures.suffix(50) == wanted.pictures.suffix(50))

        let joined = "\(scratch.path)/joined.mp4"
        try MovieJoin.join([path, path], to: joined)
        let both = try await shown(joined)
        #expect(both.pictures == found.pictures + found.pictures)
        #expect(both.times == both.times.sorted() && Set(both.times).count == both.times.count)
        let step = both.times[found.times.count] - both.times[found.times.count - 1]
        #expect(abs(step - 0.04) < 0.002, "\(step)")
    }
}
