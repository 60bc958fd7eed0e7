import BusProtocol
import CameraBusTesting
import CaptureCore
import JSON
import LinuxIO
import Logging

@testable import Recorder

/// What a recorder has between its intakes and the disk. It waits for what a test puts in; the clock is that of the
/// samples.
struct WriterFixture {
    let pictures: SampleQueue
    let sounds: SampleQueue
    let mailbox: RecorderMailbox
    private let movie: MovieThread
    private let thread: NamedThread?

    /// - Parameters:
    ///   - format: of the pictures, which are stored as they come.
    ///   - rate: of the sound, samples a second.
    ///   - begins: what is put in is written at once; else not before ``write()``.
    init(
        _ request: MovieRequest, _ format: PixelFormat, size: Dimensions, rate: Int, begins: Bool = true
    ) throws {
        let work = Semaphore()
        mailbox = try RecorderMailbox(work: work)
        let limits = SampleQueue.Limits(bytes: 64 << 20, time: .max, samples: 8192)
        pictures = try SampleQueue(limits, wake: work)
        sounds = try SampleQueue(limits, wake: work)
        mailbox.set(
            PictureTrackPlan(
                kind: format == .h264 ? .h264 : .motionJPEG,
                layout: FrameLayout(pixelFormat: format, dimensions: size, planes: [])))
        mailbox.set(
            try SoundTrackPlan(
                try SoundHeader([
                    "v": 1, "device": "mic0", "rendition": "native", "stream": "s", "sequence": 1, "firstFrame": 0,
                    "frames": 10, "sampleFormat": "s16", "rate": JSONValue(rate), "channels": 1, "overruns": 0,
                    "generation": 0, "timestamp": ["monotonic": 1, "realtime": 2, "source": "status"],
                ])))
        let movie = MovieThread(
            request, mailbox, pictures: pictures, sounds: request.microphone == nil ? nil : sounds,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        self.movie = movie
        thread = begins ? try NamedThread(name: "movie-writer") { movie.run() } : nil
    }

    /// Goes on when nothing waits to be written.
    func isWritten() async throws {
        try await eventually(by: .after(seconds: 60)) { pictures.count == 0 && sounds.count == 0 }
    }

    /// Writes what is there until the movie ends.
    func write() throws -> MovieResult? {
        let movie = movie
        try NamedThread(name: "movie-writer") { movie.run() }.join()
        return mailbox.takeNews().result
    }

    /// Ends the movie.
    func end() -> MovieResult? {
        mailbox.end(.stopped)
        thread?.join()
        return mailbox.takeNews().result
    }
}
