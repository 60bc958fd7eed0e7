import BusProtocol
import CaptureCore
import FFmpeg
import JSON
import LinuxIO
import Logging
import MovieFile

/// Holds the last seconds of what comes, and makes a movie of them for each live photo: on the thread that calls
/// ``run()``.
///
/// What comes is held before anything else is done, and between any two pictures that are encoded. A movie for which
/// that is too much loses those that are held no more when it is their turn; they are counted.
final class LivePhotoThread: @unchecked Sendable {
    // Made by one thread, used by the one that calls `run()`.

    private let request: MovieRequest
    private let directory: RuntimeDirectory
    private let mailbox: RecorderMailbox
    private let orders: LivePhotoOrders
    private let pictures: SampleQueue
    private let sounds: SampleQueue?
    private let logger: Logger
    private var photos: LivePhotoRun
    /// Those that are being made, in the order in which they were ordered.
    private var movies: [LivePhotoMovieFile] = []
    /// Files that were answered, the oldest first.
    private var files: [(job: String, path: String)] = []
    private var past: LivePhotoBuffer?
    private var decoder: LivePhotoDecoder?
    /// nil: it isn't to be looked for.
    private var motion: LivePhotoMotion?
    private var figures = RecorderMailbox.Figures()
    private var isFinishing = false

    /// What was told last of ``LivePhotoRun/past(from:to:)``, in steps of a tenth of a second.
    private var toldPast: Int64 = 0

    /// Picture and sound come no later than that, nanoseconds; what is missing then doesn't come any more.
    private static let slack: Int64 = 500_000_000
    /// Answered files that are known by their photos; those of older ones the coordinator removes by their names.
    private static let maximumFiles = 64
    /// As of movies.
    private static let nice: Int32 = 5

    init(
        _ request: MovieRequest, _ directory: RuntimeDirectory, _ mailbox: RecorderMailbox, _ orders: LivePhotoOrders,
        pictures: SampleQueue, sounds: SampleQueue?, logger: Logger
    ) {
        self.request = request
        self.directory = directory
        self.mailbox = mailbox
        self.orders = orders
        self.pictures = pictures
        self.sounds = sounds
        self.logger = logger
        photos = LivePhotoRun(isSuspended: request.live?.isSuspended ?? false)
        // Nobody waits for what is only held.
        mailbox.urgent = .max
    }

    /// Returns when all movies are whole, or given up, and that is told.
    func run() {
        // The encoder's threads are started by this one.
        NamedThread.yield(nice: Self.nice)
        while !mailbox.isEnding {
            obey()
            takeIn()
            if step() { continue }
            if let due { mailbox.work.wait(until: due) } else { mailbox.work.wait() }
        }
        finish()
    }

    // MARK: Orders

    private func obey() {
        for command in orders.takeCommands() {
            switch command {
            case .make(let order, let photo): make(photo, order)
            case .drop(let order, let job): drop(job, order)
            case .suspend(let order, let isSuspended, let time):
                photos.setSuspended(isSuspended, at: time)
                orders.answer(order, .success([:]))
            case .restart(let time):
                photos.restart(at: time)
                motion?.forget()
            }
        }
        mailbox.urgent = movies.isEmpty ? .max : .min
    }

    private func make(_ photo: LivePhotoOrder, _ order: UInt64) {
        do throws(BusError) {
            let window = try photos.begin(
                photo.job, moment: photo.moment, oldest: past?.oldestPicture(at: photo.moment))
            movies.append(LivePhotoMovieFile(order, photo, directory.livePhotoFile(photo.identifier.digits)))
            if let first = past?.picture(from: window.start) { motion?.begin(at: first) }
        } catch {
            orders.answer(order, .failure(error))
        }
    }

    private func drop(_ job: String, _ order: UInt64) {
        for movie in movies where movie.photo.job == job {
            give(up: movie, BusError(.cancelled, "The live photo was cancelled."))
        }
        for file in files where file.job == job { File.remove(file.path) }
        files.removeAll { $0.job == job }
        orders.answer(order, .success([:]))
    }

    private func give(up movie: LivePhotoMovieFile, _ error: BusError) {
        movie.remove()
        end(movie)
        orders.answer(movie.number, .failure(error))
    }

    private func end(_ movie: LivePhotoMovieFile) {
        photos.finish(movie.photo.job)
        movies.removeAll { $0 === movie }
        count(lost: movie.lost)
    }

    // MARK: What comes

    private func takeIn() {
        // What is made late has its pictures still.
        past?.keep(from: photos.windows.values.map(\.start).min())
        while pictures.pop({ sample, bytes in hold(sample, picture: bytes) }) != nil {}
        if let sounds { while sounds.pop({ sample, bytes in hold(sample, sound: bytes) }) != nil {} }
        tellPast()
    }

    private func hold(_ sample: Sample, picture: UnsafeRawBufferPointer) {
        // Whoever gives the first picture has said before how it lies.
        guard let past = past ?? begin() else { return }
        let isHeld = past.hold(picture, at: sample.time, missing: sample.dropped)
        if !movies.isEmpty { count(lost: sample.dropped + (isHeld ? 0 : 1)) }
    }

    private func hold(_ sample: Sample, sound: UnsafeRawBufferPointer) {
        past?.hold(sound: sound, at: sample.time, until: sample.time &+ sample.duration)
    }

    private func begin() -> LivePhotoBuffer? {
        guard let pictures = mailbox.picture?.layout.description else { return nil }
        let size = pictures.dimensions
        let frameRate = pictures.frameDuration?.framesPerSecond
        do throws(BusError) {
            let decoder = try LivePhotoDecoder.ofMovie(pictures)
            if request.live?.isAutoTrimming == true { motion = try LivePhotoMotion(size) }
            self.decoder = decoder
            let settings = MovieFileType.mov.recommendedVideoSettings(decoder.layout.dimensions, frameRate: frameRate)
            let video = MovieVideo.encoded(decoder.layout, settings)
            mailbox.tell(video: video.wireForm(frameRate: frameRate), audio: .null)
        } catch {
            mailbox.end(.writeFailed, error)
            return nil
        }
        let past = LivePhotoBuffer(
            size, frameRate: frameRate ?? Self.mostFrames,
            soundRate: sounds.map { _ in mailbox.sound.map { $0.audio.rate * $0.audio.frameBytes } ?? Self.mostSound })
        self.past = past
        figures.hasStarted = true
        return past
    }

    // Where it isn't known: room for so many pictures a second, and bytes of sound.
    private static let (mostFrames, mostSound) = (60.0, 2 << 20)

    private func tellPast() {
        let held = photos.past(from: past?.oldestPicture, to: past?.newestPicture)
        let isNew = held / 100_000_000 != toldPast
        figures.statistics.recordedDuration = held
        mailbox.tell(figures)
        guard isNew else { return }
        toldPast = held / 100_000_000
        mailbox.news.signal()
    }

    private func count(lost: UInt64) {
        guard lost > 0 else { return }
        figures.statistics.dropped += lost
        mailbox.tell(figures)
    }

    // MARK: Making movies

    /// When a movie is over for which nothing comes any more; nil: none is made.
    private var due: Instant? { photos.windows.values.map(\.end).min().map { $0 &+ Self.slack } }

    // True: something was done, and there may be more.
    private func step() -> Bool {
        guard !movies.isEmpty else { return false }
        guard let past, let decoder else {
            guard let movie = movies.first(where: { isOver($0, nil) }) else { return false }
            let refusal = mailbox.refusal.map { BusError.livePhotoMovie(refused: $0) }
            give(up: movie, refusal ?? .livePhotoMovie("no picture comes from the camera"))
            return true
        }
        if let motion, motion.look(at: past) {
            for (job, window) in photos.windows { photos.trim(job, from: nil, to: motion.end(of: window)) }
            return true
        }
        // What is let go of next goes first.
        for movie in movies.sorted(by: { $0.nextPicture < $1.nextPicture }) {
            do throws(BusError) {
                if try goOn(movie, past, decoder) { return true }
            } catch {
                give(up: movie, error)
                return true
            }
        }
        return false
    }

    // True: something was done for it.
    private func goOn(
        _ movie: LivePhotoMovieFile, _ past: LivePhotoBuffer, _ decoder: LivePhotoDecoder
    ) throws(BusError) -> Bool {
        guard let window = photos.windows[movie.photo.job] else { return false }
        let isComplete = isOver(movie, past)
        guard movie.isBegun else {
            let isThere = past.newestPicture.map { $0 >= window.moment } ?? false
            guard isComplete || motion?.isSure(of: window) ?? isThere else { return false }
            try begin(movie, window, past, decoder)
            return true
        }
        // What was taken since may prove to be none of it.
        let limit = isComplete || motion == nil ? window.end : min(window.end, motion?.settled ?? .min)
        if try write(movie, upTo: limit, window.end, past, decoder) { return true }
        guard isComplete else { return false }
        let made = try movie.finish(window) { past.taken(from: $0, to: $1, isAll: !isFinishing) }
        try answer(movie, made)
        return true
    }

    private func begin(
        _ movie: LivePhotoMovieFile, _ window: LivePhotoWindow, _ past: LivePhotoBuffer, _ decoder: LivePhotoDecoder
    ) throws(BusError) {
        let start = max(window.start, motion?.start(of: window) ?? window.start)
        guard let first = past.picture(from: start), first.time <= window.moment else {
            throw .livePhotoMovie("no picture of its moment is held")
        }
        photos.trim(movie.photo.job, from: first.time, to: nil)
        var source = LivePhotoMovieFile.Source(picture: decoder.layout)
        // A microphone that has gone gives no track.
        if let end = past.soundEnd, end > first.time { source.sound = mailbox.sound }
        do throws(SystemError) {
            try PrivateDirectory.make(directory.livePhotos, mode: 0o700)
        } catch {
            throw .livePhotoMovie("\(error)")
        }
        try movie.begin(at: first, since: start, source, request)
    }

    // Writes the next picture, or piece of sound, in the order of their times.
    private func write(
        _ movie: LivePhotoMovieFile, upTo limit: Instant, _ end: Instant, _ past: LivePhotoBuffer,
        _ decoder: LivePhotoDecoder
    ) throws(BusError) -> Bool {
        var picture = past.withPicture(from: movie.nextPicture) { place, _ in place }
        var sound = movie.hasSound ? past.withSound(from: movie.nextSound) { place, _ in place } : nil
        if let time = picture?.time, time > limit { picture = nil }
        if let time = sound?.time, time > limit { sound = nil }
        let outcome: Result<Void, BusError>?
        if let sound, sound.time <= picture?.time ?? .max {
            outcome = past.withSound(from: sound.number) { place, samples in
                Result { () throws(BusError) in try movie.add(sound: samples, place, until: end) }
            }
        } else if let picture {
            let began = MonotonicClock.now()
            outcome = past.withPicture(from: picture.number) { place, jpeg in
                Result { () throws(BusError) in
                    let picture = decoder.decode(jpeg, number: place.number)
                    try movie.add(picture, damage: decoder.damage, place, until: end)
                }
            }
            figures.busy += MonotonicClock.now() - began
        } else {
            return false
        }
        try outcome?.get()
        return outcome != nil
    }

    // Nothing more comes that is in it.
    private func isOver(_ movie: LivePhotoMovieFile, _ past: LivePhotoBuffer?) -> Bool {
        guard let window = photos.windows[movie.photo.job] else { return true }
        if isFinishing || MonotonicClock.now() >= window.end &+ Self.slack { return true }
        guard let past, let newest = past.newestPicture, window.isOver(at: newest) else { return false }
        return !movie.hasSound || past.soundEnd ?? .min >= window.end
    }

    private func answer(_ movie: LivePhotoMovieFile, _ made: LivePhotoMovie) throws(BusError) {
        var bytes: [UInt8]?
        if movie.photo.attaches {
            do throws(SystemError) {
                bytes = try File.read(movie.path, limit: BusLimits.maxPhotoReplyBytes)
            } catch {
                throw .livePhotoMovie("its file can't be read: \(error)")
            }
        }
        if files.count == Self.maximumFiles { files.removeFirst() }
        files.append((movie.photo.job, movie.path))
        end(movie)
        if made.dropped > 0 {
            logger.warning(
                "pictures are missing in the movie of a live photo",
                metadata: ["photo": "\(movie.photo.job)", "missing": "\(made.dropped)"])
        }
        orders.answer(movie.number, .success(LivePhotoAnswer(made, file: movie.path).json), file: bytes)
    }

    // MARK: The end

    private func finish() {
        orders.close()
        obey()
        takeIn()
        photos.endAll(at: MonotonicClock.now())
        isFinishing = true
        let end = mailbox.end ?? RecorderMailbox.End(reason: .stopped, error: nil)
        if end.isCancelled {
            for movie in movies {
                give(
                    up: movie,
                    BusError(
                        .cancelled,
                        "The live photo was cancelled because its session was stopped or changed; take it again."))
            }
            for file in files { File.remove(file.path) }
        } else {
            while step() {}
        }
        figures.statistics.recordedDuration = 0
        mailbox.tell(figures)
        var result = MovieResult(end.reason, error: end.error, path: "", isKept: false)
        result.dropped = figures.statistics.dropped
        mailbox.tell(result)
    }
}
