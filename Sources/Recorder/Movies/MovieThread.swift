import BusProtocol
import CaptureCore
import CaptureLibrary
import Glibc
import Imaging
import JSON
import LinuxIO
import Logging
import MovieFile

/// Writes the movie, or sends it: everything that waits for the disk or the encoder happens on the thread that calls
/// ``run()``.
final class MovieThread: @unchecked Sendable {
    // Made by one thread, used by the one that calls `run()`.

    private var request: MovieRequest
    private let mailbox: RecorderMailbox
    private let pictures: SampleQueue?
    private let sounds: SampleQueue?
    private let logger: Logger
    private var writer: (any MovieSink)?
    private var log: FrameLog?
    private var entry: MovieEntry?
    /// The file's folder, and the file by way of it.
    private var folder: FolderBeneath?
    private var path: String
    private var figures = RecorderMailbox.Figures()
    /// Monotonic nanoseconds since when something is in the movie that is not on the disk.
    private var unsynced: Int64?
    private var syncedFragments: UInt64 = 0
    /// When the first was taken that is in the fragment; nil: nothing is.
    private var fragmentStart: Instant?
    /// Nothing that takes long is done with what comes.
    private var isStoredAsItComes = false
    /// Monotonic nanoseconds.
    private var pausedFrom: Int64?
    /// Frames in a row that could not be added.
    private var failures = 0
    /// Which camera the pictures are of, and which of its forms they have.
    private var source = (input: 0, form: 0)
    /// How they come; nil: as ``RecorderMailbox/picture`` says.
    private var plan: PictureTrackPlan?
    private let fill = BlankFill()
    private var turn: SampleInterleaver
    /// When it was to begin; nil: with the first frame that came.
    private var notBefore: Instant?

    /// What the side-car is called behind the movie's own name.
    static let sideCarEnding = ".frames.jsonl"
    private static let mostFailures = 100
    /// What comes at the interval's end ends the fragment; this much later nothing has come.
    private static let syncSlack: Int64 = 200_000_000
    /// Lets the cameras' processes and everybody's programs go first: what comes late here has its place to wait.
    private static let nice: Int32 = 5

    init(
        _ request: MovieRequest, _ mailbox: RecorderMailbox, pictures: SampleQueue?, sounds: SampleQueue?,
        logger: Logger
    ) {
        self.request = request
        path = request.path
        self.mailbox = mailbox
        self.pictures = pictures
        self.sounds = sounds
        self.logger = logger
        turn = SampleInterleaver(request, hasPictures: pictures != nil, hasSounds: sounds != nil)
    }

    /// Returns when the movie is whole and its result is reported.
    func run() {
        // The encoder's threads are started by this one.
        NamedThread.yield(nice: Self.nice)
        while !mailbox.isEnding {
            while let command = mailbox.takeCommand() { obey(command) }
            if step() { continue }
            if let scheduledEnd = mailbox.scheduledEnd {
                waitForEnd(scheduledEnd)
                continue
            }
            guard let due = unsynced.map({ $0 + request.fragmentInterval * 1_000_000 + Self.syncSlack }) else {
                mailbox.work.wait()
                continue
            }
            if !mailbox.work.wait(until: due) { endFragment() }
        }
        let result = finish()
        mailbox.tell(figures)
        mailbox.tell(result)
    }

    // What was taken before may still be on its way.
    private func waitForEnd(_ scheduledEnd: RecorderMailbox.ScheduledEnd) {
        let isOver = [pictures, sounds].allSatisfy { $0?.isClosed ?? true }
        if isOver || !mailbox.work.wait(until: scheduledEnd.latest) { mailbox.end(scheduledEnd.reason) }
    }

    // MARK: What comes next

    // True: something was done, and there may be more.
    private func step() -> Bool {
        let next = turn.next(
            picture: pictures?.first, sound: sounds?.first, hasBegun: writer != nil, isPaused: pausedFrom != nil,
            builds: buildsOnOthers)
        guard let next else { return false }
        let began = MonotonicClock.now()
        switch next {
        case .picture: pictures?.pop { sample, bytes in take(sample, picture: bytes) }
        case .sound: sounds?.pop { sample, bytes in take(sample, sound: bytes) }
        case .leaveOutPicture: pictures?.pop { _, _ in }
        case .leaveOutSound: sounds?.pop { _, _ in }
        }
        if writer != nil { figures.busy += MonotonicClock.now() - began }
        tellFigures()
        return true
    }

    private func tellFigures() {
        if let writer { (figures.statistics, figures.connection) = (writer.statistics, writer.connection) }
        mailbox.tell(figures)
    }

    // One that builds on others begins with a picture, which has their parameters.
    private var buildsOnOthers: Bool { (plan ?? mailbox.picture)?.kind == .h264 }

    private func obey(_ command: RecorderMailbox.Command) {
        switch command {
        case .begin(let time):
            notBefore = time
            turn.begin(at: time)
        case .pause(let time):
            guard pausedFrom == nil else { return }
            pausedFrom = time
            if let writer {
                add(writer) { () throws(MovieError) in try writer.pause(at: time) }
                tellFigures()
            }
            mailbox.tell(.didPauseRecording)
        case .resume(let time):
            guard pausedFrom != nil else { return }
            pausedFrom = nil
            writer?.resume(at: time)
            mailbox.tell(.didResumeRecording)
        }
    }

    // MARK: Writing

    private func take(_ sample: Sample, picture bytes: UnsafeRawBufferPointer) {
        if (sample.input, sample.form) != source { follow(sample) }
        guard let writer = writer ?? open(at: sample.time + sample.presentationDelay, bytes) else { return }
        let isPaused = pausedFrom.map { sample.time >= $0 } ?? false
        if request.microphone != nil, sounds == nil || mailbox.isWithdrawn(.audio), sounds?.first == nil {
            add(writer) { () throws(MovieError) in
                try fill.silence(until: sample.time, mailbox.sound, writer)
            }
        }
        fill.pictureCame(at: sample.time)
        if sample.dropped > 0, figures.hasStarted, !isPaused { writer.noteDropped(sample.dropped) }
        add(writer, at: sample.time) { () throws(MovieError) in
            let isTaken = try writer.append(
                bytes, at: sample.time, presentationDelay: sample.presentationDelay, isKeyFrame: sample.isKeyFrame)
            guard isTaken, writer.hasBegun else { return }
            try note(sample)
        }
    }

    // From now on the pictures are another camera's, or of another form.
    private func follow(_ sample: Sample) {
        let isOther = sample.input != source.input
        source = (sample.input, sample.form)
        guard let next = mailbox.input(of: sample) else { return }
        let before = (plan ?? mailbox.picture)?.layout.dimensions
        request.camera = next.camera
        plan = next.plan
        guard let writer else { return }
        add(writer) { () throws(MovieError) in try writer.setSource(next.plan.layout) }
        let size = next.plan.layout.dimensions
        if isOther {
            entry?.follows(next.camera)
            append(line: SideCar.change(next.camera))
        }
        guard size != before else { return }
        figures.source = size
        guard !isOther else { return }
        append(line: SideCar.change(size))
        mailbox.tell(.didChangeSize(size))
    }

    private func append(line: JSONValue) {
        do throws(SystemError) { try log?.append(line: line.description) } catch { giveUpLog(error) }
    }

    private func beginning(_ sound: Sample) -> Int64 {
        turn.beginning(sound, picture: pictures?.first, interval: frameInterval, builds: buildsOnOthers)
    }

    private func take(_ sample: Sample, sound bytes: UnsafeRawBufferPointer) {
        if writer == nil, let picture = pictures?.first, (picture.input, picture.form) != source { follow(picture) }
        guard let writer = writer ?? open(at: beginning(sample), nil) else { return }
        if request.camera != nil, pictures == nil || mailbox.isWithdrawn(.video), pictures?.first == nil {
            add(writer) { () throws(MovieError) in
                try fill.darkness(until: sample.time + sample.duration, plan ?? mailbox.picture, writer)
            }
        }
        fill.soundCame(until: sample.time + sample.duration)
        add(writer, at: sample.time) { () throws(MovieError) in
            guard try writer.append(sound: bytes, at: sample.time) else { return }
            if pictures == nil, writer.hasBegun { started(at: sample.time) }
        }
    }

    private func add(
        _ writer: any MovieSink, at time: Instant? = nil, _ body: () throws(MovieError) -> Void
    ) {
        do throws(MovieError) {
            try body()
            failures = 0
        } catch {
            failures += 1
            if failures == 1 { logger.error("a frame can't be added", metadata: ["error": "\(error)"]) }
            if failures >= Self.mostFailures { mailbox.end(.writeFailed, Self.failure(error, request)) }
        }
        if let end = writer.end { mailbox.end(end.reason, end.failure(request)) }
        if writer.statistics.fragments != syncedFragments {
            syncedFragments = writer.statistics.fragments
            unsynced = MonotonicClock.now()
            fragmentStart = nil
            syncLog()
        } else if unsynced == nil {
            unsynced = MonotonicClock.now()
        }
        pace(time)
    }

    // What ends the fragment is told of at once, so that no more than its length is ever to be lost.
    private func pace(_ time: Instant?) {
        guard isStoredAsItComes else { return }
        if let time, fragmentStart == nil {
            fragmentStart = time
            mailbox.urgent = time &+ request.fragmentInterval * 1_000_000
        } else if fragmentStart == nil {
            mailbox.urgent = .min
        }
    }

    private func note(_ sample: Sample) throws(MovieError) {
        started(at: sample.time)
        guard let log else { return }
        do throws(SystemError) {
            try log.append(
                timestamp: sample.time + sample.presentationDelay,
                realtime: sample.realtime + sample.presentationDelay, sequence: sample.sequence,
                dropped: sample.dropped)
        } catch {
            giveUpLog(error)
        }
    }

    private func started(at time: Int64) {
        guard !figures.hasStarted else { return }
        figures.hasStarted = true
        figures.startOffset = notBefore.map { time - $0 }
        mailbox.tell(.didStartRecording)
    }

    private func endFragment() {
        unsynced = nil
        guard let writer else { return }
        add(writer) { () throws(MovieError) in try writer.endFragment() }
        unsynced = nil
        tellFigures()
    }

    // The movie continues without its side-car.
    private func giveUpLog(_ error: SystemError) {
        logger.error("the side-car can't be written", metadata: ["error": "\(error)"])
        log = nil
        figures.sideCarProblem = Self.sideCarProblem(error, request)
        mailbox.tell(figures)
    }

    private func syncLog() {
        do throws(SystemError) { try log?.sync() } catch { giveUpLog(error) }
    }

    // MARK: The file

    /// Nanoseconds from one picture to the next.
    private var frameInterval: Int64 {
        let rate = (plan ?? mailbox.picture)?.frameRate(request) ?? FrameDuration.usual.framesPerSecond
        return Int64(1_000_000_000 / min(max(rate, 0.001), 1000))
    }

    // As those that take in do with what comes.
    private func planBlank() throws(BusError) {
        if let sound = request.blank.sound, request.microphone != nil { mailbox.set(SoundTrackPlan(sound)) }
        if let size = request.blank.picture, request.camera != nil {
            mailbox.set(try PictureTrackPlan.blank(size, request))
        }
    }

    private func open(at time: Int64, _ picture: UnsafeRawBufferPointer?) -> (any MovieSink)? {
        do throws(BusError) {
            try planBlank()
        } catch {
            mailbox.end(.writeFailed, error)
            return nil
        }
        let plan = request.camera == nil ? nil : self.plan ?? mailbox.picture
        let soundPlan = request.microphone == nil ? nil : mailbox.sound
        var sets: [UInt8] = []
        if plan?.kind == .h264, let picture {
            let beginning = H264Stream.beginning(of: picture)
            // Without them nothing can be read; the next key frame may bring them.
            guard beginning.hasSequenceParameters else { return nil }
            for range in beginning.parameterSets { sets.append(contentsOf: picture[range]) }
        }
        var configuration = MovieConfiguration(
            request.fileType,
            video: plan.map { $0.video(request, parameterSets: sets) },
            audio: soundPlan.map { $0.movieAudio(request) })
        configuration.constantFrameRate = request.frameRate
        let date = MonotonicClock.realtime(of: time)
        configuration.creationDate = date
        configuration.movieFragmentInterval = request.fragmentInterval * 1_000_000
        configuration.limits = MovieLimits(
            maxRecordedDuration: request.limits.maxDuration.map { $0 * 1_000_000 },
            maxRecordedFileSize: request.limits.maxFileSize,
            // 0: until nothing is free, which is another end (diskFull).
            minFreeDiskSpaceLimit: request.limits.minFreeDiskSpace.flatMap { $0 > 0 ? $0 : nil })
        let video = configuration.video?.wireForm(frameRate: configuration.frameRate)
        let audio = configuration.audio?.wireForm
        do throws(MovieError) {
            let writer = try sink(configuration, at: time, date, video, audio)
            self.writer = writer
            if request.url == nil, let plan { isStoredAsItComes = !plan.isEncoded }
            fill.begin(at: time, interval: frameInterval)
            mailbox.tell(video: video ?? .null, audio: audio ?? .null)
            return writer
        } catch {
            log?.withdraw()
            log = nil
            entry?.remove()
            entry = nil
            let failure = Self.failure(error, request)
            mailbox.end(failure.reason == .diskFull ? .diskFull : .writeFailed, failure)
            return nil
        }
    }

    private func sink(
        _ configuration: MovieConfiguration, at time: Int64, _ date: Int64, _ video: JSONValue?, _ audio: JSONValue?
    ) throws(MovieError) -> any MovieSink {
        if let url = request.url {
            return try StreamSink(
                url, video: configuration.video, audio: configuration.audio,
                maxDuration: configuration.limits.maxRecordedDuration, mailbox)
        }
        // The library's own folders are made by it.
        let isOfLibrary = request.library.map { MoviePlace.contains($0, request.path) } ?? false
        var place = request.path
        do throws(SystemError) { if !isOfLibrary { place = try openFolder() } } catch { throw .file(error) }
        do throws(LibraryError) {
            entry = try MovieEntry(request, path: place, date: date, video: video, audio: audio, logger: logger)
        } catch {
            throw error.movieError
        }
        do throws(SystemError) { if isOfLibrary { try openFolder() } } catch { throw .file(error) }
        // Entered before it has a name, so that none is left that nobody knows of.
        let temporary = LibraryEntry.temporary(request.movie)
        let writer = try MovieWriter(
            path, configuration, mode: entry?.mode, temporary: temporary
        ) { (file) throws(MovieError) in
            openLog(time, date)
            do throws(LibraryError) {
                if try entry?.add(file, sideCar: log) == false { entry = nil }
            } catch {
                // What has its id is not its own.
                entry = nil
                throw error.movieError
            }
            do throws(SystemError) {
                try log?.publish()
            } catch {
                giveUpLog(error)
                entry?.lacksSideCar()
            }
        }
        entry?.named()
        writer.startSession(atSourceTime: time)
        return writer
    }

    // A user with write access to an allowed folder must not lead the bus out of it. Returns the file's real folder,
    // because the librarian follows no link.
    @discardableResult
    private func openFolder() throws(SystemError) -> String {
        let whole = request.path.utf8
        guard let slash = whole.lastIndex(of: UInt8(ascii: "/")) else { return request.path }
        let name = String(decoding: whole[slash...].dropFirst(), as: UTF8.self)
        let folder = try FolderBeneath("\(String(decoding: whole[..<slash], as: UTF8.self))/", root: request.root)
        self.folder = folder
        path = folder.path(of: name)
        let real = try folder.realPath()
        return real == "/" ? "/\(name)" : "\(real)/\(name)"
    }

    private func openLog(_ time: Int64, _ date: Int64) {
        guard pictures != nil, request.url == nil else { return }
        do throws(SystemError) {
            let log = try makeLog()
            let head = SideCar.head(request, firstFrame: time, realtime: date, notBefore: notBefore)
            try log.append(line: head.description)
            self.log = log
        } catch {
            giveUpLog(error)
        }
    }

    // No file has the movie's name, so that a side-car which lies there already is of one that is there no more.
    private func makeLog() throws(SystemError) -> FrameLog {
        let (place, name) = (path + Self.sideCarEnding, (entry?.path ?? request.path) + Self.sideCarEnding)
        let temporary = LibraryEntry.temporarySideCar(request.movie)
        do throws(SystemError) {
            return try FrameLog(place, as: name, mode: entry?.mode, temporary: temporary)
        } catch {
            guard error.code == EEXIST, SideCar.isOne(place) else { throw error }
            File.remove(place)
            return try FrameLog(place, as: name, mode: entry?.mode, temporary: temporary)
        }
    }

    // MARK: The end

    private func finish() -> MovieResult {
        // A pause that was answered counts, however late it is obeyed.
        while let command = mailbox.takeCommand() { obey(command) }
        pictures?.close()
        sounds?.close()
        var end = mailbox.end ?? RecorderMailbox.End(reason: .stopped, error: nil)
        // What has no file by now, or was refused one, gets none any more.
        if !end.isCancelled, let writer { while writer.end == nil, step() {} }
        guard let writer else {
            return MovieResult(end.reason, error: end.error, path: request.path, isKept: false)
        }
        if end.isCancelled {
            writer.cancelWriting()
            log?.withdraw()
            entry?.remove()
            return MovieResult(end.reason, error: end.error, path: request.path, isKept: false)
        }
        do throws(MovieError) {
            if let late = try writer.finishWriting() {
                end = RecorderMailbox.End(reason: late.reason, error: late.failure(request))
            }
        } catch {
            end = RecorderMailbox.End(reason: .writeFailed, error: Self.failure(error, request))
        }
        syncLog()
        let statistics = writer.statistics
        if end.reason == .minimumFreeDiskSpaceReached, statistics.fragments == 0 {
            // There never was room for it.
            end.error = .diskFull(request.path, reserved: request.limits.minFreeDiskSpace)
        }
        (figures.statistics, figures.connection) = (statistics, writer.connection)
        var result = MovieResult(
            end.reason, error: end.error, path: request.path, duration: statistics.recordedDuration / 1_000_000,
            size: statistics.recordedFileSize, frames: statistics.frames, dropped: statistics.dropped,
            isKept: statistics.fragments > 0)
        result.canContinue = end.canContinue && result.isKept && end.reason == .formatChanged
        result.sideCarProblem = figures.sideCarProblem
        if result.isKept {
            entry?.end(result)
        } else if request.url == nil {
            // Nothing that anybody could look at.
            File.remove(path)
            log?.withdraw()
            entry?.remove()
        }
        return result
    }
}
