import CameraBusTesting
import CaptureCore
import CaptureSources
import LinuxIO

/// A frame that came out of a replay.
struct ReplayedFrame {
    var bytes: [UInt8]
    var sequence: UInt64
    var time: Int64
    var presentation: Int64
    var isCorrupt: Bool
}

/// Makes files with ffmpeg, and plays them.
protocol ReplayTesting {
    /// For the files.
    var folder: TemporaryDirectory { get }
}

extension ReplayTesting {
    /// - Returns: what the program prints.
    func run(_ name: String, _ arguments: [String]) async throws -> [UInt8] {
        let program = try RunningProgram(
            name, arguments, environment: CurrentProcess.environment(), scratch: folder)
        let result = try await program.end()
        guard result.status == 0 else { throw TestingError("\(name) \(arguments): \(result)") }
        return result.standardOutputBytes
    }

    func ffmpeg(_ arguments: [String]) async throws -> [UInt8] {
        try await run("ffmpeg", ["-nostdin", "-v", "error", "-y"] + arguments)
    }

    /// Makes a movie of a moving test picture.
    func movie(
        _ name: String, _ options: [String], frames: Int = 6, size: String = "96x64", rate: String = "50"
    ) async throws -> String {
        let path = "\(folder.path)/\(name)"
        let source = ["-f", "lavfi", "-i", "testsrc=size=\(size):rate=\(rate)", "-frames:v", "\(frames)"]
        _ = try await ffmpeg(source + options + [path])
        return path
    }

    func camera(_ path: String, loops: Bool = false, fps: Int? = nil, maxGap: Int64? = nil) -> ReplayCamera {
        let description = ReplayDescription(name: "a replay", path: path)
        return ReplayCamera(
            description.identity, path: path, loops: loops,
            frameDuration: fps.map { FrameDuration(framesPerSecond: $0) }, maxGap: maxGap)
    }

    /// Plays to the end, or so many frames, all of which find a slot.
    func play(_ camera: ReplayCamera, most: Int = .max) throws -> (frames: [ReplayedFrame], end: SourceError?) {
        let stream = try camera.startStreaming(slots: 24)
        defer { try? camera.stopStreaming() }
        var frames: [ReplayedFrame] = []
        do {
            while frames.count < most {
                let slot = try nextFrame(stream)
                frames.append(
                    ReplayedFrame(
                        bytes: Array(payload(slot)), sequence: slot.captureSequence, time: slot.monotonicTime,
                        presentation: slot.monotonicTime + slot.presentationDelay, isCorrupt: slot.isCorrupt))
                try stream.enqueue(slot)
            }
        } catch let error as SourceError {
            return (frames, error)
        }
        return (frames, nil)
    }

    /// Opens a camera anew whenever it ends its stream, until its file is over.
    ///
    /// - Parameters:
    ///   - format: that it plays; nil: the first one.
    ///   - body: told of each stream that ends, before its camera is closed.
    /// - Returns: the frames of all streams.
    func playThrough(
        _ camera: ReplayCamera, as format: PixelFormat?,
        _ body: (_ device: DeviceDescription, _ frames: [ReplayedFrame], _ end: SourceError?) throws -> Void
    ) throws -> [ReplayedFrame] {
        let size = try camera.open().formats[0].dimensions
        if let format { _ = try camera.setFormat(FormatSelection(pixelFormat: format, dimensions: size)) }
        var all: [ReplayedFrame] = []
        for _ in 0..<10 {
            let device = try camera.open()
            let (frames, end) = try play(camera)
            try body(device, frames, end)
            all += frames
            camera.close()
            if end?.kind == .disconnected { return all }
        }
        throw TestingError("the film doesn't end")
    }

    /// Puts EXIF data with that orientation behind the picture's beginning.
    func orient(_ path: String, _ number: UInt8) throws {
        let jpeg = try File.read(path, limit: 1 << 20)
        let segment: [UInt8] =
            [0xFF, 0xE1, 0, 34] + Array("Exif".utf8) + [0, 0, 0x4D, 0x4D, 0, 42, 0, 0, 0, 8]
            + [0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, number, 0, 0, 0, 0, 0, 0]
        try File.replace(path, with: jpeg[..<2] + segment + jpeg[2...], mode: 0o600)
    }
}
