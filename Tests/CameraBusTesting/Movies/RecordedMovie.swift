import CaptureCore
import Glibc
import LinuxIO

/// What ffprobe and ffmpeg find in a movie of virtual devices: which pictures are in it, and where ticks are heard.
public struct RecordedMovie: Sendable {
    public let path: String
    private let scratch: TemporaryDirectory

    public init(_ path: String) throws {
        self.path = path
        scratch = try TemporaryDirectory()
    }

    /// A picture of a virtual camera.
    public struct Picture: Hashable, Sendable {
        /// Where it stands in the movie, seconds.
        public var time: Double
        /// What it says of itself; nil when that can't be read.
        public var counter: PictureCounter?
    }

    /// A tick of a virtual microphone: it begins with a full second of CLOCK_MONOTONIC.
    public struct Tick: Hashable, Sendable {
        /// Where it begins in the movie, seconds.
        public var time: Double
        /// That second's last digit.
        public var digit: Int
    }

    /// What ffmpeg complains of when it decodes all of it; nothing: it plays.
    public func complaints() async throws -> String {
        let result = try await run(
            "ffmpeg", ["-v", "error", "-i", path, "-vsync", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"])
        return Self.withoutAdvice(result.standardError) + (result.status == 0 ? "" : "status \(result.status)")
    }

    /// Of each stream, in their order: `mjpeg`, `aac`.
    public func codecs() async throws -> [String] { try await probe(["-show_entries", "stream=codec_name"]) }

    /// Seconds, as the container says.
    public func duration() async throws -> Double {
        try await probe(["-show_entries", "format=duration"]).first.flatMap(Double.init) ?? 0
    }

    /// All pictures, decoded.
    public func pictures() async throws -> [Picture] {
        let times = try await probe(["-select_streams", "v:0", "-show_entries", "packet=pts_time"])
            .compactMap { Double($0.split(separator: ",").first ?? "") }.sorted()
        let size = Dimensions(width: 160, height: 120)
        let result = try await run(
            "ffmpeg",
            [
                "-v", "error", "-i", path, "-map", "0:v:0", "-vsync", "passthrough", "-enc_time_base", "-1",
                "-s", "\(size.width)x\(size.height)", "-pix_fmt", "gray", "-f", "rawvideo", "-",
            ])
        let bytes = result.standardOutputBytes
        guard result.status == 0, bytes.count == times.count * size.area else {
            throw TestingError(
                "\(times.count) frames are told, \(bytes.count / size.area) decoded: \(result.standardError)")
        }
        let layout = FrameLayout(
            pixelFormat: .grey, dimensions: size,
            planes: [PlaneLayout(offset: 0, stride: size.width, bytes: size.area)])
        return bytes.withUnsafeBytes { bytes in
            times.enumerated().map { index, time in
                let picture = UnsafeRawBufferPointer(rebasing: bytes[index * size.area..<(index + 1) * size.area])
                return Picture(time: time, counter: PictureCounterReader.read(picture, layout))
            }
        }
    }

    /// The bytes of all pictures, as they are stored where nothing is encoded.
    public func pictureBytes() async throws -> [UInt8] {
        try await decoded(["0:v:0", "-vsync", "passthrough", "-enc_time_base", "-1", "-f", "rawvideo"])
    }

    /// All of the sound: 16 bits a sample, the channels in turn.
    public func samples() async throws -> [UInt8] { try await decoded(["0:a:0", "-f", "s16le"]) }

    private func decoded(_ arguments: [String]) async throws -> [UInt8] {
        let result = try await run("ffmpeg", ["-v", "error", "-i", path, "-map"] + arguments + ["-"])
        guard result.status == 0 else { throw TestingError("\(result.standardError)") }
        return result.standardOutputBytes
    }

    /// The ticks that begin within the movie's sound.
    public func ticks() async throws -> [Tick] {
        let rate = 48000
        // Where each piece of the sound stands: where some was lost it is told here, and in no other way.
        let pieces = try await probe(["-select_streams", "a:0", "-show_entries", "frame=pts_time,nb_samples"])
            .compactMap { line -> (time: Double, samples: Int)? in
                let parts = line.split(separator: ",")
                guard parts.count >= 2, let time = Double(parts[0]), let samples = Int(parts[1]) else { return nil }
                return (time, samples)
            }
        let result = try await run(
            "ffmpeg",
            ["-v", "error", "-i", path, "-map", "0:a:0", "-f", "s16le", "-ac", "1", "-ar", "\(rate)", "-"])
        guard result.status == 0 else { throw TestingError("\(result.standardError)") }
        let samples = result.standardOutputBytes.withUnsafeBytes { bytes in
            (0..<bytes.count / 2).map {
                Double(Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self))) / 32768
            }
        }
        guard abs(pieces.reduce(0) { $0 + $1.samples } - samples.count) < 2048 else {
            throw TestingError("\(pieces.reduce(0) { $0 + $1.samples }) samples are told, \(samples.count) decoded")
        }
        func time(_ index: Int) -> Double {
            var first = 0
            for piece in pieces {
                if index < first + piece.samples { return piece.time + Double(index - first) / Double(rate) }
                first += piece.samples
            }
            return .infinity
        }
        return SoundTicks.find(in: samples, rate: rate).map { Tick(time: time($0.index), digit: $0.digit) }
    }

    /// How far the sound is behind the picture at each tick, seconds.
    public static func lags(_ pictures: [Picture], _ ticks: [Tick]) throws -> [Double] {
        try ticks.compactMap { tick in
            guard
                let nearest = pictures.filter({ $0.counter != nil }).min(by: {
                    abs($0.time - tick.time) < abs($1.time - tick.time)
                }), let counter = nearest.counter
            else { throw TestingError("no picture can be read") }
            // A tick beyond the pictures says nothing of them.
            guard abs(nearest.time - tick.time) < 0.2 else { return nil }
            let seen = Double(counter.microseconds) / 1e6 + tick.time - nearest.time
            let heard = seen.rounded()
            guard Int(heard) % 10 == tick.digit else {
                throw TestingError("the tick of a second that ends with \(tick.digit) is heard at \(seen)")
            }
            return seen - heard
        }
    }

    private func probe(_ arguments: [String]) async throws -> [String] {
        let result = try await run("ffprobe", ["-v", "error"] + arguments + ["-of", "csv=p=0", path])
        guard result.status == 0 else { throw TestingError(result.description) }
        return result.standardOutput.split(separator: "\n").map { String($0.drop { $0 == "," }) }
    }

    private func run(_ program: String, _ arguments: [String]) async throws -> ProgramResult {
        let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
        return try await RunningProgram(program, arguments, environment: environment, scratch: scratch)
            .end(by: .after(seconds: 120))
    }

    // What it says of its own options.
    private static func withoutAdvice(_ text: String) -> String {
        text.split(separator: "\n").filter { !$0.hasPrefix("-vsync is deprecated") }.joined(separator: "\n")
    }
}
