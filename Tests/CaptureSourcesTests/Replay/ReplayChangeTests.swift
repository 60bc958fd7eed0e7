import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import JSON
import LinuxIO
import Testing

/// Films whose pictures change on the way: each kind of them is a stream of its own.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ReplayChangeTests: ReplayTesting {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test(
        "frames of another size end the stream, and all of them come when it is opened again",
        arguments: [("mjpeg", nil), ("mjpeg", .nv12), ("h264", .i420), ("h264", .h264)] as [(String, PixelFormat?)])
    func changingSize(_ codec: String, _ format: PixelFormat?) async throws {
        var whole: [UInt8] = []
        for size in ["96x64", "64x48", "96x64"] {
            let options =
                codec == "mjpeg"
                ? ["-c:v", "mjpeg", "-q:v", "3", "-f", "mjpeg"]
                : ["-c:v", "libx264", "-bf", "0", "-pix_fmt", "yuv420p", "-f", "h264"]
            whole += try File.read(try await movie("part", options, size: size), limit: 1 << 20)
        }
        let path = "\(folder.path)/all.\(codec)"
        try File.replace(path, with: whole, mode: 0o600)
        let camera = camera(path, fps: 100)
        var sizes: [String] = []
        let frames = try playThrough(camera, as: format) { device, frames, _ in
            let size = try camera.activeFormat().dimensions
            #expect(device.formats.allSatisfy { $0.dimensions == size })
            // libavformat looks ahead in such a file, and may take a later size for the first one.
            if !frames.isEmpty { sizes.append("\(frames.count) \(size)") }
        }
        #expect(!frames.contains { $0.isCorrupt })
        #expect(sizes == ["6 96x64", "6 64x48", "6 96x64"])
        if format == nil || format == .h264 { #expect(frames.flatMap(\.bytes) == whole) }
    }

    /// What ffprobe says of each frame.
    private func probed(_ path: String, _ entries: [String]) async throws -> [String] {
        let output = try await run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_entries", "frame=" + entries.joined(separator: ","),
                "-of", "json", path,
            ])
        let frames = try JSONValue(parsing: output)["frames"]?.array ?? []
        return frames.map { frame in entries.map { frame[$0]?.string ?? "" }.joined(separator: " ") }
    }

    @Test(
        "frames with other colours or another shape end the stream, and none is lost",
        arguments: [
            ("libx264", "mp4", nil), ("libx264", "mov", nil), ("libx264", "h264", nil), ("libx264", "mp4", .h264),
            ("libx264", "mkv", .h264), ("libx264", "h264", .h264), ("mpeg2video", "m2v", nil),
        ] as [(String, String, PixelFormat?)])
    func changingColors(_ codec: String, _ container: String, _ format: PixelFormat?) async throws {
        // In an MP4, MOV or MKV file the track has the shape of all of its pixels.
        let isBare = container == "h264" || container == "m2v"
        let shapes = ["4/3", "4/3", isBare ? "16/11" : "4/3"]
        let kinds = [
            ["bt709", "tv"], ["smpte170m", codec == "libx264" ? "pc" : "tv"], ["smpte170m", "tv"],
        ]
        var (whole, decoded) = ([UInt8](), [UInt8]())
        for (kind, shape) in zip(kinds, shapes) {
            let options = [
                "-vf", "setsar=\(shape)", "-c:v", codec, "-bf", "0", "-pix_fmt", "yuv420p", "-colorspace", kind[0],
                "-color_primaries", kind[0], "-color_trc", "bt709", "-color_range", kind[1], "-q:v", "3", "-f",
                codec == "libx264" ? "h264" : "mpeg2video",
            ]
            let part = try await movie("part", options)
            whole += try File.read(part, limit: 1 << 20)
            decoded += try await ffmpeg(["-i", part, "-f", "rawvideo", "-vsync", "passthrough", "-"])
        }
        let (bare, path) = ("\(folder.path)/bare", "\(folder.path)/all.\(container)")
        try File.replace(bare, with: whole, mode: 0o600)
        if isBare {
            rename(bare, path)
        } else {
            _ = try await ffmpeg(["-framerate", "50", "-i", bare, "-c", "copy", path])
        }
        let camera = camera(path, fps: 50)
        var (seen, streams) = ([String](), 0)
        var pixelFormat: PixelFormat?
        let frames = try playThrough(camera, as: format) { _, frames, end in
            let description = try camera.formatDescription()
            pixelFormat = description.pixelFormat
            let words = [
                description.color.matrix?.rawValue, description.color.range == .full ? "pc" : "tv",
                description.color.chromaLocation?.rawValue, description.extensions.pixelAspectRatio.text(":"),
            ]
            seen += frames.map { _ in words.map { $0 ?? "" }.joined(separator: " ") }
            let isOver = seen.count == 18
            #expect(end?.kind == (isOver ? .disconnected : .changed(resolution: false)), "\(end as Any)")
            // libavformat looks ahead in some files, and may take what a later frame states for the first one's.
            if !frames.isEmpty { streams += 1 }
        }
        #expect(!frames.contains { $0.isCorrupt })
        let bytes = frames.flatMap(\.bytes)
        let theirs = try await probed(
            path, ["color_space", "color_range", "chroma_location", "sample_aspect_ratio"])
        #expect(seen == theirs && Set(seen).count == streams && streams > 1, "\(seen), \(theirs)")
        // Nothing was converted.
        if pixelFormat == .i420 { #expect(bytes.elementsEqual(decoded)) }
        if format == .h264, isBare { #expect(bytes.elementsEqual(whole)) }
    }

    @Test(
        "a film's pictures with another turn end the stream, and come when it is opened again",
        arguments: [nil, .nv12] as [PixelFormat?])
    func changingTurn(_ format: PixelFormat?) async throws {
        let picture = "\(folder.path)/picture.jpg"
        var whole: [UInt8] = []
        for number in [1, 6, 3] {
            _ = try await ffmpeg(["-f", "lavfi", "-i", "testsrc=size=64x48", "-frames:v", "1", picture])
            try orient(picture, UInt8(number))
            for _ in 0..<4 { whole += try File.read(picture, limit: 1 << 20) }
        }
        let path = "\(folder.path)/all.mjpeg"
        try File.replace(path, with: whole, mode: 0o600)
        let camera = camera(path, fps: 100)
        var seen: [String] = []
        let frames = try playThrough(camera, as: format) { device, frames, _ in
            let stated = try camera.formatDescription().orientation
            #expect(device.orientation == stated)
            seen.append("\(frames.count) of \(stated.quarters * 90)")
        }
        #expect(!frames.contains { $0.isCorrupt })
        #expect(seen == ["4 of 0", "4 of 90", "4 of 180"])
    }
}
