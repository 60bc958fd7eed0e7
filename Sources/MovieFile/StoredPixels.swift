public import CaptureCore
public import FFmpeg

// How pixels are kept without loss, by the name that FFmpeg has for them in memory.

extension MovieFileType {
    /// As uncompressed pixels, with the same samples; nil: libavformat can't write them to a file of this kind.
    public func rawFormat(_ format: PixelFormat) -> ImageFormat? {
        switch (self, format) {
        case (.mp4, _): nil
        case (_, .yuyv): .yuyv422
        case (_, .uyvy): .uyvy422
        case (.mkv, .bgr24): .bgr24
        case (.mov, .rgb24): .rgb24
        case (.mkv, .nv12), (.mkv, .nv12FullRange): .nv12
        case (.mkv, .i420): .yuv420p
        // Samples of a byte each in Matroska, and of two in QuickTime, which has the upper one first.
        case (.mkv, _): Self.samples(format) == .gray8 ? .gray8 : nil
        case (.mov, _): Self.samples(format).flatMap { $0.bits > 8 ? ImageFormat(named: "gray16be") : nil }
        }
    }

    /// As FFV1 stores them: with the same samples, whatever order they come in. nil: none of these can.
    ///
    /// Bayer is stored as what it is, one sample a pixel, which players show as grey. FFV1 of FFmpeg has no 14 bits.
    public func losslessFormat(_ format: PixelFormat) -> ImageFormat? {
        switch (self, format) {
        case (.mp4, _): nil
        case (_, .yuyv), (_, .uyvy): .yuv422p
        case (_, .nv12), (_, .nv12FullRange), (_, .i420): .yuv420p
        case (_, .bgr24), (_, .rgb24): ImageFormat(named: "bgr0")
        default: Self.samples(format).map { $0.isSwapped ? ImageFormat(named: "gray16le") ?? $0 : $0 }
        }
    }

    /// As they come, of a format with one sample a pixel in whole bytes.
    static func samples(_ format: PixelFormat) -> ImageFormat? {
        guard let samples = format.rawSamples else { return nil }
        switch (samples.packing, samples.bits) {
        case (.mipi, _): return nil
        case (.bytes, _): return .gray8
        case (.swappedWords, _): return ImageFormat(named: "gray16be")
        case (.words, 10): return ImageFormat(named: "gray10le")
        case (.words, 12): return ImageFormat(named: "gray12le")
        case (.words, _): return ImageFormat(named: "gray16le")
        }
    }
}
