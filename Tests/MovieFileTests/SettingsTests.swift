import CaptureCore
import FFmpeg
import MovieFile
import Testing

@Suite struct SettingsTests {
    private func bitRate(_ width: Int, _ height: Int, _ rate: Double) -> Int {
        MovieFileType.mp4.recommendedVideoSettings(Dimensions(width: width, height: height), frameRate: rate).bitRate
    }

    @Test func bitRateFollowsSizeAndFrameRate() {
        #expect(bitRate(1280, 720, 30) < bitRate(1920, 1080, 30))
        #expect(bitRate(1280, 720, 30) < bitRate(1280, 720, 60))
        #expect(bitRate(1280, 720, 30) == 2_765_000)
        #expect(bitRate(16, 16, 1) == 100_000)
    }

    @Test func fitsTheFileType() {
        let video = MovieFileType.mov.recommendedVideoSettings(Dimensions(width: 641, height: 481), frameRate: 29.97)
        #expect(video.codec == .h264 && video.width == 640 && video.height == 480 && video.keyFrameInterval == 60)
        for type in MovieFileType.allCases {
            let audio = type.recommendedAudioSettings(rate: 44100, channels: 2)
            #expect(type.holds(audio.codec) && audio.channels == 2)
            #expect(audio.rate == (audio.codec == .opus ? 48000 : 44100))
        }
        #expect(MovieFileType.mp4.recommendedAudioSettings(rate: 96000, channels: 1).rate == 48000)
    }

    /// Two hours of a microphone whose clock is 200 ppm fast, and one that is slow.
    @Test(arguments: [1.0002, 0.9998]) func soundFollowsAClockThatDrifts(_ speed: Double) throws {
        let (rate, block) = (16000, 1600)
        let encoder = try AudioEncoder(
            AudioEncoderSettings(.pcm, rate: rate, channels: 1, bitRate: 0),
            from: AudioFormat(.int16, rate: rate, channels: 1))
        let samples = [Int16](repeating: 0, count: block)
        var time = 0.0
        for _ in 0..<72000 {
            try samples.withUnsafeBytes { bytes in
                try encoder.encode(bytes, at: Int64(time * 1e9)) { (_) throws(MediaError) in }
            }
            time += Double(block) / Double(rate) / speed
        }
        try encoder.finish { (_) throws(MediaError) in }
        let end = Double(encoder.encodedSamples) / Double(rate)
        #expect(abs(end - time) < 1.0 / 60, "\(end) s of sound in \(time) s")
    }
}
