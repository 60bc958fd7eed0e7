import BusProtocol
import CameraBusTesting
import CaptureCore
import LinuxIO
import MovieFile
import Testing

/// Movies whose pictures have the samples that came, as ffmpeg decodes them.
@Suite struct LosslessTests {
    /// A format, ffmpeg's word for how its samples lie in memory, and for what FFV1 has.
    private struct Format: CustomTestStringConvertible {
        var name: String
        var memory: String
        var stored: String

        init(_ name: String, _ memory: String, _ stored: String) {
            (self.name, self.memory, self.stored) = (name, memory, stored)
        }

        var testDescription: String { name }
    }

    private static let formats = [
        Format("BGR3", "bgr24", "bgr0"), Format("RGB3", "rgb24", "bgr0"), Format("YUYV", "yuyv422", "yuv422p"),
        Format("UYVY", "uyvy422", "yuv422p"), Format("NV12", "nv12", "yuv420p"), Format("420f", "nv12", "yuv420p"),
        Format("YU12", "yuv420p", "yuv420p"), Format("GREY", "gray", "gray"), Format("RGGB", "gray", "gray"),
        Format("Y10", "gray10le", "gray10le"), Format("RG10", "gray10le", "gray10le"),
        Format("Y12", "gray12le", "gray12le"), Format("Y14", "gray16le", "gray16le"),
        Format("Y16", "gray16le", "gray16le"), Format("Y16 -BE", "gray16be", "gray16le"),
        Format("Z16", "gray16le", "gray16le"), Format("GB16", "gray16le", "gray16le"),
    ]
    /// Without compression.
    private static let inMatroska = ["BGR3", "YUYV", "UYVY", "NV12", "420f", "YU12", "GREY", "RGGB"]
    private static let inQuickTime = [
        "RGB3", "YUYV", "UYVY", "Y10", "RG10", "Y12", "Y14", "Y16", "Y16 -BE", "Z16", "GB16",
    ]
    private static let count = 4

    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    /// Noise, as far as the samples reach.
    private static func frames(_ layout: FrameLayout) -> [[UInt8]] {
        var state: UInt64 = 88_172_645_463_325_252
        let samples = layout.pixelFormat.rawSamples
        return (0..<count).map { _ in
            (0..<layout.totalBytes).map { index in
                state ^= state &<< 13
                state ^= state &>> 7
                state ^= state &<< 17
                let byte = UInt8(truncatingIfNeeded: state)
                guard let samples, samples.packing == .words, index % 2 == 1 else { return byte }
                return byte & UInt8(truncatingIfNeeded: samples.largest >> 8)
            }
        }
    }

    /// Chroma in a plane each.
    private static func planar(_ frame: [UInt8], _ layout: FrameLayout) -> [UInt8] {
        let (luma, pairs) = (frame[..<layout.planes[0].bytes], Array(frame[layout.planes[1].offset...]))
        func half(_ first: Int) -> [UInt8] { stride(from: first, to: pairs.count, by: 2).map { pairs[$0] } }
        return luma + half(0) + half(1)
    }

    private static func swapped(_ bytes: [UInt8]) -> [UInt8] { bytes.indices.map { bytes[$0 ^ 1] } }

    private func write(
        _ path: String, _ type: MovieFileType, _ codec: VideoCodec, _ layout: FrameLayout, _ frames: [[UInt8]]
    ) throws {
        let size = layout.dimensions
        let settings = VideoSettings(
            codec: .ffv1, width: size.width, height: size.height, bitRate: 0, keyFrameInterval: 1)
        let video = codec == .raw ? MovieVideo.raw(layout) : .encoded(layout, settings)
        var configuration = MovieConfiguration(type, video: video)
        configuration.movieFragmentInterval = 50_000_000
        let writer = try MovieWriter(path, configuration)
        for (frame, time) in zip(frames, Material.times(frames.count)) {
            #expect(try frame.withUnsafeBytes { try writer.append($0, at: time) })
        }
        #expect(try writer.finishWriting() == nil)
    }

    /// A pair of packed pixels is whole; other widths are odd.
    private static func sizes(_ format: Format) -> [Dimensions] {
        let isPacked = format.memory == "yuyv422" || format.memory == "uyvy422"
        return [Dimensions(width: 96, height: 64), Dimensions(width: isPacked ? 34 : 33, height: 17)]
    }

    private func decoded(_ path: String, _ memory: String) async throws -> [UInt8] {
        let result = try await run(
            "ffmpeg",
            [
                "-v", "error", "-i", path, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", memory, "-",
            ], scratch)
        return result.standardOutputBytes
    }

    private func probe(_ path: String) async throws -> String {
        let result = try await run(
            "ffprobe",
            [
                "-v", "error", "-show_entries", "stream=codec_name,pix_fmt,color_range,color_space", "-of",
                "csv=p=0:nk=1", path,
            ], scratch)
        return result.standardOutput.split(separator: "\n").first.map(String.init) ?? result.description
    }

    @Test("An FFV1 movie has the samples that came", arguments: formats, [MovieFileType.mkv, .mov])
    private func ffv1(_ format: Format, _ type: MovieFileType) async throws {
        for size in Self.sizes(format) {
            let layout = try #require(
                PixelFormat(format.name).flatMap { FrameLayout.packed($0, size) })
            // ffmpeg would bring it to video range on the way.
            if type == .mov, layout.pixelFormat == .nv12FullRange { continue }
            let path = "\(scratch.path)/\(size).\(type)"
            let frames = Self.frames(layout)
            try write(path, type, .ffv1, layout, frames)
            let memory = layout.pixelFormat == .nv12FullRange ? "yuv420p" : format.memory
            let wanted = frames.flatMap { memory == format.memory ? $0 : Self.planar($0, layout) }
            #expect(try await decoded(path, memory) == wanted, "\(size)")
            #expect(try await probe(path).hasPrefix("ffv1,\(format.stored)"))
        }
    }

    @Test("A raw movie has the samples that came", arguments: formats, [MovieFileType.mkv, .mov])
    private func raw(_ format: Format, _ type: MovieFileType) async throws {
        for size in Self.sizes(format) {
            let layout = try #require(
                PixelFormat(format.name).flatMap { FrameLayout.packed($0, size) })
            let path = "\(scratch.path)/\(size).\(type)"
            let frames = Self.frames(layout)
            guard (type == .mkv ? Self.inMatroska : Self.inQuickTime).contains(format.name) else {
                #expect(throws: MovieError.self) { try write(path, type, .raw, layout, frames) }
                continue
            }
            try write(path, type, .raw, layout, frames)
            let isSwapped = type == .mov && format.memory.hasPrefix("gray")
            #expect(
                try await decoded(path, isSwapped ? "gray16be" : format.memory)
                    == frames.flatMap {
                        isSwapped && format.memory.hasSuffix("le") ? Self.swapped($0) : $0
                    }, "\(size)")
            #expect(try await probe(path).hasPrefix("rawvideo,\(isSwapped ? "gray16be" : format.memory)"))
        }
    }

    @Test("An FFV1 movie says which colours it has", arguments: [MovieFileType.mkv, .mov])
    func colours(_ type: MovieFileType) async throws {
        for format in [PixelFormat.yuyv, .nv12] {
            // QuickTime has no word for the range.
            for isFull in type == .mkv ? [false, true] : [false] {
                var layout = try #require(FrameLayout.packed(format, Dimensions(width: 96, height: 64)))
                layout.description.color = ColorDescription(
                    primaries: .bt709, transferFunction: .bt709, matrix: .bt709, range: isFull ? .full : .video)
                let path = "\(scratch.path)/\(format)\(isFull).\(type)"
                try write(path, type, .ffv1, layout, Self.frames(layout))
                let range = type == .mov ? "unknown" : isFull ? "pc" : "tv"
                #expect(try await probe(path).hasSuffix("\(range),bt709"))
            }
        }
    }

    @Test("Damage to a slice of FFV1 is seen") func damage() async throws {
        let layout = try #require(FrameLayout.packed(.grey, Dimensions(width: 96, height: 64)))
        let path = "\(scratch.path)/damaged.mkv"
        try write(path, .mkv, .ffv1, layout, Self.frames(layout))
        #expect(try await Judge(path: path, scratch: scratch).complaints() == "")
        var bytes = try File.read(path, limit: 1 << 20)
        bytes[bytes.count / 2] ^= 0x10
        try File.replace(path, with: bytes, mode: 0o600)
        #expect(try await Judge(path: path, scratch: scratch).complaints().contains("CRC"))
    }

    @Test("MP4 holds neither") func mp4() throws {
        let layout = try #require(FrameLayout.packed(.grey16, Dimensions(width: 96, height: 64)))
        for codec in [VideoCodec.raw, .ffv1] {
            #expect(throws: MovieError.self) { try write("\(scratch.path)/a.mp4", .mp4, codec, layout, []) }
        }
    }
}
