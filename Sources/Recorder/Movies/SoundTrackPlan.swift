import BusProtocol
import CaptureCore
import FFmpeg
import JSON
import MovieFile

/// How a microphone's sound is written to a movie.
struct SoundTrackPlan: Hashable, Sendable {
    /// As it comes.
    var format: SoundFormat
    /// As it is given to the writer.
    var audio: AudioFormat

    /// - Throws: what can't be recorded.
    init(sampleFormat: String, rate: Int, channels: Int) throws(BusError) {
        guard let sample = SampleFormat(rawValue: sampleFormat), (1...8).contains(channels),
            (4000...384_000).contains(rate)
        else {
            throw BusError(
                .formatUnsupported, "\(sampleFormat) of \(channels) channels at \(rate) Hz can't be recorded.",
                ["nearest": .null])
        }
        format = SoundFormat(sampleFormat: sample, rate: rate, channels: channels)
        let stored: AudioFormat.Sample =
            switch sample {
            case .s16: .int16
            case .s24, .s24in32, .s32: .int32
            case .f32: .float32
            }
        audio = AudioFormat(stored, rate: rate, channels: channels)
    }

    init(_ header: SoundHeader) throws(BusError) {
        try self.init(sampleFormat: header.sampleFormat, rate: header.rate, channels: header.channels)
    }

    /// Silence.
    init(_ blank: BlankMedia.Sound) {
        format = SoundFormat(sampleFormat: .s16, rate: blank.rate, channels: blank.channels)
        audio = AudioFormat(.int16, rate: blank.rate, channels: blank.channels)
    }

    /// Bytes that so many frames take, for the writer.
    func bytes(frames: Int) -> Int { frames * audio.frameBytes }

    func nanoseconds(frames: Int) -> Int64 { format.nanoseconds(frames: Int64(frames)) }

    /// Copies whole samples, as the writer takes them.
    func copy(_ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) {
        switch format.sampleFormat {
        case .s16, .s32, .f32: target.copyMemory(from: source)
        case .s24:
            let samples = min(source.count / 3, target.count / 4)
            for index in 0..<samples {
                let value =
                    UInt32(source[3 * index]) << 8 | UInt32(source[3 * index + 1]) << 16
                    | UInt32(source[3 * index + 2]) << 24
                target.storeBytes(of: value.littleEndian, toByteOffset: 4 * index, as: UInt32.self)
            }
        case .s24in32:
            let samples = min(source.count, target.count) / 4
            for index in 0..<samples {
                // What the high byte holds doesn't count.
                let value = UInt32(littleEndian: source.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self)) << 8
                target.storeBytes(of: value.littleEndian, toByteOffset: 4 * index, as: UInt32.self)
            }
        }
    }

    /// What the movie has.
    func movieAudio(_ request: MovieRequest) -> MovieAudio {
        let type = request.fileType
        let wish = request.audio
        var settings = type.recommendedAudioSettings(
            rate: wish.rate ?? format.rate, channels: wish.channels ?? format.channels)
        if let codec = wish.codec { settings.codec = codec.stored }
        if let rate = wish.rate { settings.rate = rate }
        // Opus has but one rate that all players know.
        if settings.codec == .opus, wish.rate == nil { settings.rate = 48000 }
        if settings.codec == .pcm, wish.rate == nil { settings.rate = format.rate }
        if let bitRate = wish.bitRate { settings.bitRate = bitRate }
        return MovieAudio(audio, settings)
    }
}

extension MovieRequest.Audio.Codec {
    var stored: AudioCodec {
        switch self {
        case .aac: .aac
        case .opus: .opus
        case .pcm: .pcm
        }
    }
}
