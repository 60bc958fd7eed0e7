import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
public import LinuxIO
public import Logging
import MovieFile
import ZeroMQ

/// The process that records one movie: everything that it is made of, put together.
///
/// What comes waits in queues of bounded size for a thread that writes; this one answers the coordinator, and waits for
/// neither.
public final class Recorder {
    private var request: MovieRequest
    private let options: RecorderOptions
    private let process: RecorderProcess
    private let hello: RecorderHello
    private let link: RecorderLink
    private let mailbox: RecorderMailbox
    private let movie: MovieThread
    private let pictures: SampleQueue?
    private let sounds: SampleQueue?
    private let picture: PictureReceiver?
    private let sound: SoundReceiver?
    private var threads: [NamedThread] = []
    /// Orders that are answered when the movie has ended.
    private var waiting: [UInt64] = []
    /// Monotonic nanoseconds.
    private var pausedFrom: Instant?
    private var isPaused: Bool { pausedFrom != nil }
    /// Cameras that were asked for after the first.
    private var inputs = 0
    /// The one that is waited for, and the order that is answered then.
    private var change: (order: UInt64, number: Int, input: RecorderOrder.Input)?
    /// What is black, or silence, in the movie.
    private var blank: Set<AuthorizationMedia>
    private var result: MovieResult?
    private var load = LoadMeter()
    private var told: MovieProgress?
    private var toldOverflows: UInt64 = 0
    private var isEnded = false

    private var directory: RuntimeDirectory { process.directory }
    private var loop: Loop { process.loop }
    private var logger: Logger { process.logger }

    /// Bytes, and samples, that may wait.
    private static let (pictureBytes, pictureSamples) = (256 << 20, 4096)
    private static let (soundBytes, soundSamples) = (16 << 20, 8192)
    /// Sound waits for the picture, and is small: nanoseconds that may wait.
    private static let soundTime: Int64 = 30_000_000_000
    /// Frames from before a pause arrive at most so long after its beginning, nanoseconds.
    private static let stillAfter: Int64 = 500_000_000
    /// Milliseconds from one state to the next, at least.
    private static let stateInterval: Int64 = 100

    /// Makes everything ready but touches neither devices nor disk yet. To be called on the thread that then calls
    /// ``run(signals:)``.
    public init(_ options: RecorderOptions, logger: Logger) throws(RecorderError) {
        let request = options.request
        self.request = request
        self.options = options
        blank = request.blank.media
        let process = try RecorderProcess(options, logger: logger)
        let (directory, logger) = (process.directory, process.logger)
        self.process = process
        do {
            let work = Semaphore()
            let mailbox = try RecorderMailbox(work: work)
            self.mailbox = mailbox
            let pictureLimits = SampleQueue.Limits(
                bytes: Self.pictureBytes, time: options.queueMilliseconds * 1_000_000, samples: Self.pictureSamples)
            // What may not be had is not even asked for.
            let (camera, microphone) = (
                request.blank.picture == nil ? request.camera : nil,
                request.blank.sound == nil ? request.microphone : nil
            )
            let pictures = try camera.map { _ in try SampleQueue(pictureLimits, wake: work) }
            let soundLimits = SampleQueue.Limits(
                bytes: Self.soundBytes, time: Self.soundTime, samples: Self.soundSamples)
            let sounds = try microphone.map { _ in try SampleQueue(soundLimits, wake: work) }
            (self.pictures, self.sounds) = (pictures, sounds)
            movie = MovieThread(request, mailbox, pictures: pictures, sounds: sounds, logger: logger)
            picture =
                if let camera, let pictures {
                    PictureReceiver(
                        directory.ringSocket(camera.id), camera, request, pictures, mailbox,
                        patience: (options.deviceWaitMilliseconds, options.deviceWaitMilliseconds), logger: logger)
                } else { nil }
            sound =
                if let microphone, let sounds {
                    SoundReceiver(
                        directory, microphone, sounds, mailbox,
                        patience: (
                            request.startsWithSound ? options.soundWaitMilliseconds : options.deviceWaitMilliseconds,
                            options.deviceWaitMilliseconds
                        ), logger: logger)
                } else { nil }
            let hello = RecorderHello(request)
            self.hello = hello
            link = try OrderLink(
                process.context, process.loop, path: directory.recordersSocket,
                hello: { link, _ in hello.hello(link) },
                graceMilliseconds: options.coordinatorGraceMilliseconds, logger: logger)
            hello.progress = { [weak self] in self?.progress ?? MovieProgress(.starting) }
        } catch {
            throw .failed("\(error)")
        }
    }

    /// Records until the movie has ended.
    public func run(signals: SignalDescriptor? = nil) -> RecorderEnding {
        if let signals {
            loop.watch(.descriptor(signals.rawValue)) { [weak self] in
                // A hang-up of the terminal is the coordinator's business.
                while let signal = signals.next() { if signal != SIGHUP { self?.mailbox.end(.shuttingDown) } }
            }
        }
        loop.watch(.descriptor(mailbox.news.rawValue)) { [weak self] in self?.takeNews() }
        link.onOrder = { [weak self] in self?.handle($0) }
        link.onConnected = { [weak self] in self?.told = nil }
        link.onAbandoned = { [weak self] in
            self?.logger.warning("no coordinator has connected for too long")
            self?.mailbox.end(.shuttingDown)
        }
        loop.eachSecond { [weak self] in
            self?.tick()
            return self != nil
        }
        tellState()
        var isRunning = true
        do {
            try start()
            try loop.run()
        } catch {
            logger.critical("the movie can't be recorded", metadata: ["error": "\(error)"])
            isRunning = false
        }
        mailbox.end(.shuttingDown)
        // Those that take in end by themselves; the one that writes has ended, unless the loop has failed.
        threads.first?.join()
        return isRunning ? .inOrder : .failed
    }

    private func start() throws(SystemError) {
        let (movie, picture, sound) = (movie, picture, sound)
        threads.append(try NamedThread(name: "movie-writer") { movie.run() })
        if let picture { threads.append(try NamedThread(name: "movie-picture") { picture.run() }) }
        if let sound { threads.append(try NamedThread(name: "movie-sound") { sound.run() }) }
    }

    // MARK: Orders

    private func handle(_ order: RecorderOrder) {
        let number = order.number
        switch order.action {
        case .begin(let time): begin(at: time, number)
        case .pause(let time): pause(true, at: time, number)
        case .resume(let time): pause(false, at: time, number)
        case .blank(let media): withdraw(media, number)
        case .stop(let reason, let time?): end(RecorderMailbox.ScheduledEnd(reason: reason, time: time), number)
        case .stop(let reason, nil): end(reason, isCancelled: false, number)
        case .cancel: end(.stopped, isCancelled: true, number)
        case .input(let input): goOn(with: input, number)
        case .live, .dropLive, .suspend:
            reply(number, .failure(.invalidParams("do", "this recorder makes no live photos")))
        }
    }

    private func begin(at time: Instant, _ number: UInt64) {
        guard mailbox.order(.begin(time)) else {
            return reply(number, .failure(Self.tooMany))
        }
        reply(number, .success([:]))
    }

    private static var tooMany: BusError {
        BusError(
            .limitExceeded, "Too many orders wait for the disk; try again.",
            ["limit": "ordersPerMovie", "maximum": JSONValue(RecorderMailbox.maximumCommands)])
    }

    private func pause(_ isOn: Bool, at time: Instant, _ number: UInt64) {
        guard !mailbox.isToEnd else {
            return reply(number, .failure(BusError(.notRecording, "The movie has ended, or is ending.")))
        }
        if isOn != isPaused {
            guard mailbox.order(isOn ? .pause(time) : .resume(time)) else {
                return reply(number, .failure(Self.tooMany))
            }
            pausedFrom = isOn ? time : nil
            tellState()
        }
        reply(number, .success([:]))
    }

    private func goOn(with input: RecorderOrder.Input, _ number: UInt64) {
        guard !mailbox.isToEnd else {
            return reply(number, .failure(BusError(.notRecording, "The movie has ended, or is ending.")))
        }
        if let change {
            if mailbox.turn.isOf(change.number) {
                answered(RecorderMailbox.InputAnswer(number: change.number))
            } else {
                mailbox.turn.expect(0)
                answered(
                    RecorderMailbox.InputAnswer(
                        number: change.number,
                        error: BusError(.cancelled, "The movie was switched to another camera meanwhile.")))
            }
        }
        // Black stays black, whichever camera it is.
        guard !blank.contains(.video) else { return reply(number, .success([:])) }
        guard let camera = request.camera, let pictures, canGoOn else {
            return reply(
                number,
                .failure(
                    BusError(
                        .formatUnsupported, "A movie can only continue with another camera if it is encoded.",
                        ["nearest": .null])))
        }
        if RecorderOrder.Input(camera, orientation: request.orientation, mirrored: request.mirrored) == input {
            return reply(number, .success([:]))
        }
        inputs += 1
        mailbox.turn.expect(inputs)
        let intake = PictureReceiver(
            directory.ringSocket(input.camera.id), input.camera, PictureTrackPlan.request(request, following: input),
            pictures, mailbox, number: inputs,
            patience: (options.inputWaitMilliseconds, options.deviceWaitMilliseconds), logger: logger)
        do throws(SystemError) {
            threads.append(try NamedThread(name: "movie-picture") { intake.run() })
            change = (number, inputs, input)
        } catch {
            reply(number, .failure(BusError(.internalError, "The other camera can't be added: \(error).")))
        }
    }

    // Pictures that are stored unchanged cannot change their form, and a server was told the form at the start.
    private var canGoOn: Bool {
        guard request.url == nil, request.video.codec == .automatic || request.video.codec == .h264 else {
            return false
        }
        return mailbox.picture.map { $0.kind == .encoded } ?? true
    }

    private func answered(_ answer: RecorderMailbox.InputAnswer) {
        guard let change, change.number == answer.number else { return }
        self.change = nil
        if let error = answer.error { return reply(change.order, .failure(error)) }
        (request.camera, request.orientation, request.mirrored) = (
            change.input.camera, change.input.orientation, change.input.mirrored
        )
        hello.request = request
        reply(change.order, .success([:]))
    }

    private func withdraw(_ media: AuthorizationMedia, _ number: UInt64) {
        guard !mailbox.isToEnd else {
            return reply(number, .failure(BusError(.notRecording, "The movie has ended, or is ending.")))
        }
        guard !blank.contains(media) else { return reply(number, .success([:])) }
        guard canStandFor(media) else {
            return reply(
                number,
                .failure(
                    BusError(
                        .formatUnsupported,
                        "Blank pictures or silence can't be made in this movie's format.", ["nearest": .null])))
        }
        mailbox.withdraw(media)
        // What is in was taken while it was allowed.
        (media == .video ? pictures : sounds)?.close()
        blank.insert(media)
        if media == .video, let change {
            // Whichever camera it was to be.
            self.change = nil
            reply(change.order, .success([:]))
        }
        tellState()
        reply(number, .success([:]))
    }

    private func canStandFor(_ media: AuthorizationMedia) -> Bool {
        guard blank.isEmpty, request.camera != nil, request.microphone != nil, mailbox.figures.hasStarted else {
            return false
        }
        return media == .audio || media == .video && mailbox.picture?.kind != .h264
    }

    private func end(_ reason: MovieEndReason, isCancelled: Bool, _ number: UInt64) {
        if let result { return reply(number, .success(.object(result.members))) }
        waiting.append(number)
        if mailbox.end(reason, isCancelled: isCancelled) { tellState() }
    }

    private func end(_ scheduledEnd: RecorderMailbox.ScheduledEnd, _ number: UInt64) {
        if let result { return reply(number, .success(.object(result.members))) }
        waiting.append(number)
        guard mailbox.end(scheduledEnd) else { return }
        for queue in [pictures, sounds] { queue?.close(at: scheduledEnd.time) }
        tellState()
    }

    private func reply(_ number: UInt64, _ result: Result<JSONValue, BusError>) {
        link.send(.reply(order: number, result))
    }

    // MARK: Reports

    private var progress: MovieProgress {
        let figures = mailbox.figures
        let stage: MovieProgress.Stage =
            if mailbox.isToEnd {
                .finishing
            } else if isPaused {
                .paused
            } else {
                figures.hasStarted ? .recording : .starting
            }
        var progress = MovieProgress(stage)
        (progress.video, progress.audio) = mailbox.stored
        let statistics = figures.statistics
        progress.recordedDuration = statistics.recordedDuration / 1_000_000
        progress.syncedDuration = statistics.syncedDuration / 1_000_000
        progress.recordedFileSize = statistics.recordedFileSize
        progress.syncedFileSize = statistics.syncedSize
        progress.frames = statistics.frames
        progress.dropped = statistics.dropped
        progress.fragments = statistics.fragments
        progress.encoderLoad = load.load
        progress.isReady = stage == .starting && isReady
        progress.connected = figures.connection?.isConnected
        progress.reconnects = figures.connection?.reconnects
        progress.blank = blank
        progress.waitingFor = mailbox.waiting
        progress.refusal = mailbox.refusal
        progress.sideCarProblem = figures.sideCarProblem
        progress.source = figures.source
        progress.startOffset = figures.startOffset.map { Double($0) / 1_000_000 }
        return progress
    }

    private var isReady: Bool {
        let hasPicture = request.camera == nil || blank.contains(.video) || mailbox.isDelivering(.video)
        return hasPicture && (request.microphone == nil || blank.contains(.audio) || mailbox.isDelivering(.audio))
    }

    // Ten times a second while there is something new; every change of the stage wakes it.
    private func tellState() {
        guard !isEnded else { return }
        load.note(mailbox.figures.busy, at: MonotonicClock.now())
        let progress = progress
        if progress != told, link.send(.state(progress)) { told = progress }
        guard stateTimer == nil else { return }
        stateTimer = loop.schedule(afterMilliseconds: Self.stateInterval) { [weak self] in
            guard let self else { return }
            stateTimer = nil
            // The figures of a paused movie stay the same, and what changes at the start is reported by itself.
            let isStill = pausedFrom.map { MonotonicClock.now() > $0 + Self.stillAfter } ?? false
            if !isStill || mailbox.isToEnd { tellState() }
        }
    }

    private var stateTimer: Loop.Token?

    private func tick() {
        link.sendBacklog()
        link.send(.alive)
        let overflows = mailbox.overflows
        // What waits before the movie begins is left out anyway.
        guard mailbox.figures.hasStarted else {
            toldOverflows = overflows
            return
        }
        guard overflows > toldOverflows else { return }
        let more = overflows - toldOverflows
        toldOverflows = overflows
        logger.warning("the recorder can't keep up", metadata: ["dropped": "\(more)"])
        link.send(.event(.didDropFrames(more)))
    }

    private func takeNews() {
        mailbox.news.drain()
        let news = mailbox.takeNews()
        tellState()
        for event in news.events { link.send(.event(event)) }
        if let answer = news.input { answered(answer) }
        if let result = news.result { ended(result) }
    }

    private func ended(_ result: MovieResult) {
        guard !isEnded else { return }
        self.result = result
        isEnded = true
        if let change {
            self.change = nil
            reply(
                change.order,
                .failure(
                    BusError(
                        .notRecording,
                        "The movie ended before the other camera delivered "
                            + "pictures.")))
        }
        link.send(.event(.didFinishRecording(result)))
        for number in waiting { reply(number, .success(.object(result.members))) }
        logger.info(
            "the movie has ended",
            metadata: [
                "reason": "\(result.reason.rawValue)", "frames": "\(result.frames)", "dropped": "\(result.dropped)",
            ])
        link.end { [loop] in loop.stop() }
    }
}
