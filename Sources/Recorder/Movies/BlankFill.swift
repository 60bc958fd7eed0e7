import CaptureCore
import FFmpeg
import MovieFile

/// Puts black and silence into a movie where its picture, or its sound, may not be had: at the times of the other,
/// which may.
final class BlankFill {
    /// Nanoseconds from one black picture to the next.
    private var interval: Int64 = 0
    /// Until when there are pictures, and sound; monotonic nanoseconds. nil: the movie has not begun.
    private var nextPicture: Int64?
    private var soundEnd: Int64?
    private var picture = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var silence = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// Nanoseconds of one piece of silence; what is missing for longer is a hole, which the writer fills.
    private static let piece: Int64 = 50_000_000
    /// Nanoseconds without anything, after which black goes on with what comes then.
    private static let longestHole: Int64 = 10_000_000_000

    deinit {
        picture.deallocate()
        silence.deallocate()
    }

    /// - Parameter interval: nanoseconds from one black picture to the next.
    func begin(at time: Int64, interval: Int64) {
        (nextPicture, soundEnd) = (nextPicture ?? time, soundEnd ?? time)
        self.interval = interval
    }

    func pictureCame(at time: Int64) { nextPicture = max(nextPicture ?? time, time) + interval }

    func soundCame(until time: Int64) { soundEnd = max(soundEnd ?? time, time) }

    /// Adds silence up to a picture.
    func silence(until time: Int64, _ plan: SoundTrackPlan?, _ writer: any MovieSink) throws(MovieError) {
        guard let plan, var end = soundEnd, time > end else { return }
        let format = plan.audio
        let most = Int(Self.piece * Int64(format.rate) / 1_000_000_000)
        if silence.isEmpty {
            silence = .allocate(byteCount: most * format.frameBytes, alignment: 16)
            silence.initializeMemory(as: UInt8.self, repeating: 0)
        }
        if time - end > Self.longestHole { end = time - Self.piece }
        while true {
            let count = min(most, Int((time - end) * Int64(format.rate) / 1_000_000_000))
            guard count > 0 else { break }
            let bytes = UnsafeRawBufferPointer(rebasing: silence[..<(count * format.frameBytes)])
            soundEnd = end
            _ = try writer.append(sound: bytes, at: end)
            end += Int64(count) * 1_000_000_000 / Int64(format.rate)
        }
        soundEnd = end
    }

    /// Adds black pictures up to the end of a piece of sound.
    func darkness(until time: Int64, _ plan: PictureTrackPlan?, _ writer: any MovieSink) throws(MovieError) {
        guard let plan, var next = nextPicture, time > next else { return }
        if picture.isEmpty {
            guard let bytes = BlankPicture.bytes(plan.layout) else { return }
            picture = .allocate(byteCount: bytes.count, alignment: 64)
            picture.copyBytes(from: bytes)
        }
        if time - next > Self.longestHole { next = time - interval }
        while next < time {
            nextPicture = next + interval
            _ = try writer.append(UnsafeRawBufferPointer(picture), at: next, presentationDelay: 0, isKeyFrame: true)
            next += interval
        }
    }
}
