import CameraBusTesting
import FFmpeg
import Imaging
import LinuxIO

/// Frames as a camera would send them, made by ffmpeg: a counter in front of changing colours.
struct Material {
    static let (width, height) = (320, 240)

    var frames: [[UInt8]] = []
    var isKeyFrame: [Bool] = []
    /// Of H.264.
    var parameterSets: [UInt8] = []

    static func motionJPEG(_ count: Int, in scratch: TemporaryDirectory) async throws -> Material {
        try await Material(count, ["-c:v", "mjpeg", "-q:v", "5"], "avi", scratch)
    }

    static func h264(_ count: Int, in scratch: TemporaryDirectory) async throws -> Material {
        try await Material(
            count, ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "10", "-pix_fmt", "yuv420p"], "mp4",
            scratch)
    }

    private init(_ count: Int, _ options: [String], _ ending: String, _ scratch: TemporaryDirectory) async throws {
        let path = "\(scratch.path)/material.\(ending)"
        let source = "testsrc=size=\(Self.width)x\(Self.height):rate=30"
        let made = try await run(
            "ffmpeg", ["-v", "error", "-f", "lavfi", "-i", source, "-frames:v", "\(count)"] + options + ["-y", path],
            scratch)
        guard made.status == 0 else { throw TestingError(made.description) }
        let reader = try MovieReader(path, delivers: .packets)
        while try reader.next() != nil {
            let bytes = reader.withPacket { Array($0) }
            let beginning = bytes.withUnsafeBytes { H264Stream.beginning(of: $0) }
            frames.append(bytes)
            isKeyFrame.append(ending == "avi" || beginning.isKeyframe)
            if parameterSets.isEmpty { parameterSets = beginning.parameterSets.flatMap { Array(bytes[$0]) } }
        }
        guard frames.count == count else { throw TestingError("\(frames.count) frames of material") }
    }

    /// Times of a camera that doesn't keep its rate, nanoseconds: up to 9 ms late.
    static func times(_ count: Int, from start: Int64 = 5_000_000_000) -> [Int64] {
        (0..<Int64(count)).map { start + $0 * 33_333_333 + ($0 == 0 ? 0 : $0 * 7919 % 10 * 1_000_000) }
    }
}

/// Runs a program to its end.
func run(_ program: String, _ arguments: [String], _ scratch: TemporaryDirectory) async throws -> ProgramResult {
    try await RunningProgram.result(program, arguments, in: scratch)
}

/// What ffprobe and ffmpeg say of a movie.
struct Judge {
    let path: String
    let scratch: TemporaryDirectory

    /// Of each packet, seconds.
    func times(_ stream: String) async throws -> [Double] {
        let lines = try await probe(["-select_streams", stream, "-show_entries", "packet=pts_time"])
        return lines.compactMap { Double($0.split(separator: ",").first ?? "") }
    }

    /// Of the whole file, seconds.
    func duration() async throws -> Double {
        try await probe(["-show_entries", "format=duration"]).first.flatMap(Double.init) ?? 0
    }

    func codec(_ stream: String) async throws -> String {
        try await probe(["-select_streams", stream, "-show_entries", "stream=codec_name"]).first ?? ""
    }

    /// When the first sound that is heard begins, seconds.
    func soundStart() async throws -> Double {
        let lines = try await probe(
            ["-select_streams", "a:0", "-read_intervals", "%+#8", "-show_entries", "frame=pts_time"])
        return lines.compactMap { Double($0.split(separator: ",").first ?? "") }.first ?? .infinity
    }

    /// Everything can be decoded; what ffmpeg complains of otherwise.
    ///
    /// - Parameter frames: only so many are looked at.
    func complaints(frames: Int? = nil) async throws -> String {
        let most = frames.map { ["-frames:v", "\($0)"] } ?? []
        let result = try await run(
            "ffmpeg",
            ["-v", "error", "-threads", "1", "-i", path, "-vsync", "passthrough", "-enc_time_base", "-1"] + most
                + ["-f", "null", "-"],
            scratch)
        // What it says of its own options.
        let lines = result.standardError.split(separator: "\n").filter { !$0.hasPrefix("-vsync is deprecated") }
        return lines.joined(separator: "\n") + (result.status == 0 ? "" : "status \(result.status)")
    }

    /// The sound, decoded: samples of one channel.
    func samples(rate: Int) async throws -> [Int16] {
        let result = try await run(
            "ffmpeg", ["-v", "error", "-i", path, "-vn", "-f", "s16le", "-ac", "1", "-ar", "\(rate)", "-"], scratch)
        return result.standardOutputBytes.withUnsafeBytes { bytes in
            (0..<bytes.count / 2).map { bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self) }
        }
    }

    private func probe(_ arguments: [String]) async throws -> [String] {
        let result = try await run("ffprobe", ["-v", "error"] + arguments + ["-of", "csv=p=0", path], scratch)
        guard result.status == 0, result.standardError.isEmpty else { throw TestingError(result.description) }
        return result.standardOutput.split(separator: "\n").map(String.init)
    }
}
