import BusProtocol
import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import JSON
import LinuxIO
import Testing

@testable import Recorder

/// Two hours of a movie, as fast as the machine can write them: the clock is the one by which frames and sound are
/// stamped, and runs ahead of the real one.
@Suite("A movie of two hours", .timeLimit(.minutes(5)))
struct LongMovieTests {
    private static let seconds: Int64 = 7200
    private static let size = Dimensions(width: 64, height: 48)
    /// From one frame to the next, nanoseconds.
    private static let interval: Int64 = 100_000_000
    /// What the microphone calls a second is 100 ppm shorter than one.
    private static let (rate, speed) = (4000, 1.0001)
    /// Samples of a block, and how many blocks are handed over before the writer has to have come after.
    private static let (blockSamples, blocksPerRound) = (800, 600)
    /// Sound is there before the first picture, seconds.
    private static let lead = 0.15
    /// Where a burst is to be heard, seconds of the movie; and how long it is, samples.
    private static let (bursts, burstSamples) = ([10.0, 3600, 7190], 40)

    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    @Test(
        "picture and sound of another clock are in step from the first to the last, and memory stays what it is",
        arguments: [(.motionJPEG, .mov, 5000), (.h264, .mkv, rate)] as [(PixelFormat, MovieFileType, Int)])
    func twoHours(_ format: PixelFormat, _ type: MovieFileType, _ storedRate: Int) async throws {
        let pieces = try await pieces(format)
        let request = request(type, storedRate)
        let desk = try WriterFixture(request, format, size: Self.size, rate: Self.rate)
        defer { desk.mailbox.end(.stopped) }
        // When the first picture is taken: two hours of the virtual clock begin now.
        let start = MonotonicClock.now()
        let (frames, growth) = try await record(pieces, from: start, desk)
        let result = try #require(desk.end())
        #expect(result.isSuccess && result.isKept && result.dropped == 0)
        #expect(Int64(result.frames) == frames && frames >= Self.seconds * 1_000_000_000 / Self.interval)
        // The buffers of a fragment or two; a hundred bytes for each frame would be as much.
        #expect(growth < 6 << 20, "\(growth) bytes more in the last nine tenths")

        // The picture, as the file has it.
        let reader = try MovieReader(request.path, delivers: .packets)
        var (count, first, last) = (Int64(0), Int64.max, Int64.min)
        while let item = try reader.next() {
            count += 1
            (first, last) = (min(first, item.time ?? .max), max(last, item.time ?? .min))
        }
        #expect(count == frames)
        #expect(abs(last - first - (frames - 1) * Self.interval) <= 1_000_000)
        // The sound beside it.
        let sound = try await run(
            ["-i", request.path, "-vn", "-f", "s16le", "-ac", "1", "-ar", "\(storedRate)", "-"])
        #expect(sound.status == 0 && sound.standardError == "", "\(sound.standardError)")
        for burst in Self.bursts {
            let heard = try #require(
                onset(sound.standardOutputBytes, rate: storedRate, near: burst), "nothing is heard at \(burst) s")
            #expect(abs(heard - burst) < 0.015, "a burst of \(burst) s is heard at \(heard) s")
        }
        #expect(abs(Double(result.duration) / 1000 - Double(frames * Self.interval) / 1e9) < 0.5)
        try checkSideCar(request.path + ".frames.jsonl", frames, last: start + (frames - 1) * Self.interval)
    }

    // MARK: What is recorded

    private func request(_ type: MovieFileType, _ storedRate: Int) -> MovieRequest {
        MovieRequest(
            movie: "m1", path: "\(scratch.path)/movie.\(type.rawValue)",
            camera: MovieRequest.Device(id: "cam0", uniqueID: "c", name: "Camera"),
            microphone: MovieRequest.Device(id: "mic0", uniqueID: "m", name: "Microphone"), fileType: type,
            audio: MovieRequest.Audio(codec: .pcm, rate: storedRate), fragmentInterval: 60_000,
            owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "test"))
    }

    /// A second of a camera; of H.264 it begins with the only key frame.
    private func pieces(_ format: PixelFormat) async throws -> [[UInt8]] {
        let isH264 = format == .h264
        let path = "\(scratch.path)/material.\(isH264 ? "mp4" : "avi")"
        let codec =
            isH264
            ? ["libx264", "-preset", "ultrafast", "-bf", "0", "-g", "10", "-pix_fmt", "yuv420p"]
            : ["mjpeg", "-q:v", "9"]
        let source = "testsrc=size=\(Self.size.width)x\(Self.size.height):rate=10"
        let made = try await run(
            ["-f", "lavfi", "-i", source, "-frames:v", "10", "-c:v"] + codec + ["-y", path])
        #expect(made.status == 0, "\(made)")
        let reader = try MovieReader(path, delivers: .packets)
        var pieces: [[UInt8]] = []
        while try reader.next() != nil { pieces.append(reader.withPacket { Array($0) }) }
        try #require(pieces.count == 10)
        return pieces
    }

    private func run(_ arguments: [String]) async throws -> ProgramResult {
        let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
        return try await RunningProgram(
            "ffmpeg", ["-v", "error"] + arguments, environment: environment, scratch: scratch
        ).end(by: .after(seconds: 60))
    }

    /// - Returns: how many frames there were, and how much memory they cost from the first tenth on, bytes.
    private func record(
        _ pieces: [[UInt8]], from start: Int64, _ desk: WriterFixture
    ) async throws -> (frames: Int64, growth: Int64) {
        let perSecond = Double(Self.rate) * Self.speed
        let blocks = Int(((Double(Self.seconds) + Self.lead) * perSecond / Double(Self.blockSamples)).rounded(.up))
        let quiet = [Int16](repeating: 0, count: Self.blockSamples)
        let marks = Self.bursts.map { Int((($0 + Self.lead) * perSecond).rounded()) }
        var (frames, refused, early) = (Int64(0), 0, Int64(0))
        for block in 0..<blocks {
            if block % Self.blocksPerRound == 0 {
                try await desk.isWritten()
                if block == 6 * Self.blocksPerRound { early = ProcessUsage.residentBytes ?? 0 }
            }
            let begin = block * Self.blockSamples
            var samples = quiet
            for mark in marks where mark + Self.burstSamples > begin && mark < begin + Self.blockSamples {
                for sample in max(mark, begin)..<min(mark + Self.burstSamples, begin + Self.blockSamples) {
                    samples[sample - begin] = 20000
                }
            }
            let time = start + Int64((Double(begin) / perSecond - Self.lead) * 1e9)
            let sound = Sample(time: time, duration: 200_000_000, sequence: UInt64(block))
            let outcome = samples.withUnsafeBytes { bytes in
                desk.sounds.push(sound, count: bytes.count) { room in
                    room.copyMemory(from: bytes)
                    return true
                }
            }
            if outcome != .taken { refused += 1 }
            while start + frames * Self.interval < time + 200_000_000 {
                if !push(pieces[Int(frames) % pieces.count], frames, start + frames * Self.interval, desk) {
                    refused += 1
                }
                frames += 1
            }
        }
        try await desk.isWritten()
        #expect(refused == 0)
        let late = ProcessUsage.residentBytes ?? .max
        return (frames, late - early)
    }

    private func push(_ piece: [UInt8], _ number: Int64, _ time: Int64, _ desk: WriterFixture) -> Bool {
        let sample = Sample(time: time, sequence: UInt64(number), isKeyFrame: number % 10 == 0)
        return piece.withUnsafeBytes { bytes in
            desk.pictures.push(sample, count: bytes.count) { room in
                room.copyMemory(from: bytes)
                return true
            } == .taken
        }
    }

    // MARK: What the file has

    /// When the burst is heard that is to be about there, seconds of the movie.
    private func onset(_ sound: [UInt8], rate: Int, near time: Double) -> Double? {
        let first = Int((time - 2) * Double(rate))
        return sound.withUnsafeBytes { bytes in
            (first..<min(first + 4 * rate, bytes.count / 2))
                .first { bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self) > 10000 }
                .map { Double($0) / Double(rate) }
        }
    }

    /// A line for each frame, and one in front of them.
    private func checkSideCar(_ path: String, _ frames: Int64, last: Int64) throws {
        let bytes = try File.read(path, limit: 1 << 24)
        let lines = bytes.withUnsafeBytes { bytes -> Int64 in
            var (lines, rest) = (Int64(0), bytes[...])
            while let base = UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                let end = memchr(base, Int32(UInt8(ascii: "\n")), rest.count)
            {
                lines += 1
                rest = rest.dropFirst(UnsafeRawPointer(end) - base + 1)
            }
            return lines
        }
        #expect(lines == frames + 1)
        let end = String(decoding: bytes.suffix(200), as: UTF8.self).split(separator: "\n").last
        #expect(end == "{\"timestamp\":\(last),\"realtime\":0,\"sequence\":\(frames - 1),\"dropped\":0}")
    }
}
