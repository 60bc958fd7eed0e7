import FFmpeg

/// The sound of a movie on its way to the muxer.
final class SoundTrack {
    let format: AudioFormat
    private let settings: AudioSettings
    private let encoder: AudioEncoder
    private var track: Muxer.Track?

    init(_ audio: MovieAudio) throws(MediaError) {
        format = audio.format
        settings = audio.settings
        encoder = try AudioEncoder(audio.settings, from: audio.format)
    }

    func add(to muxer: Muxer) throws(MediaError) { track = try muxer.addTrack(encoder) }

    /// Nanoseconds.
    func duration(of samples: UnsafeRawBufferPointer) -> Int64 {
        Int64(samples.count / format.frameBytes) * 1_000_000_000 / Int64(format.rate)
    }

    /// How many bytes of the file it takes, at most, with what is held back until a packet is full.
    func expectedBytes(_ samples: UnsafeRawBufferPointer) -> Int {
        let made = samples.count / format.frameBytes * settings.rate / format.rate + Self.packet
        // No codec takes more than PCM.
        return made * settings.channels * max(2, format.sample.bytes)
    }

    /// Samples of a packet.
    private static let packet = 1024

    func write(_ samples: UnsafeRawBufferPointer, at time: Int64, to muxer: Muxer) throws(MediaError) -> Written {
        var written = Written()
        guard let track else { return written }
        try encoder.encode(samples, at: time) { (packet) throws(MediaError) in
            try muxer.write(packet, to: track)
            written.count(packet.bytes.count)
        }
        return written
    }

    func finish(_ muxer: Muxer) throws(MediaError) -> Written {
        var written = Written()
        guard let track else { return written }
        try encoder.finish { (packet) throws(MediaError) in
            try muxer.write(packet, to: track)
            written.count(packet.bytes.count)
        }
        return written
    }
}
