import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
public import LinuxIO
public import Logging
import MovieFile
import ZeroMQ

/// The process that makes the movies of a session's live photos: everything that it is made of, put together.
///
/// It holds the last seconds of camera and microphone until the session's photo output is set otherwise. A thread of
/// its own makes movies; this one answers the coordinator.
public final class LivePhotoRecorder {
    private let options: RecorderOptions
    private let process: RecorderProcess
    private let link: RecorderLink
    private let hello: RecorderHello
    private let mailbox: RecorderMailbox
    private let orders: LivePhotoOrders
    private let movies: LivePhotoThread
    private let picture: PictureReceiver
    private let sound: SoundReceiver?
    private var threads: [NamedThread] = []
    /// Orders that are answered at the end.
    private var waiting: [UInt64] = []
    private var result: MovieResult?
    private var told: MovieProgress?
    private var toldDropped: UInt64 = 0
    private var isCameraAway = false

    private var loop: Loop { process.loop }
    private var logger: Logger { process.logger }

    /// What may wait until it is held: for as long as a picture, or the end of a file, takes.
    private static let pictureLimits = SampleQueue.Limits(bytes: 96 << 20, time: 4_000_000_000, samples: 2048)
    private static let soundLimits = SampleQueue.Limits(bytes: 16 << 20, time: 8_000_000_000, samples: 8192)
    /// Milliseconds that a device is waited for: as long as the session wants it.
    private static let forever: Int64 = 1 << 40

    /// Makes everything ready but touches neither devices nor disk yet. To be called on the thread that then calls
    /// ``run(signals:)``.
    public init(_ options: RecorderOptions, logger: Logger) throws(RecorderError) {
        let request = options.request
        guard request.live != nil, let camera = request.camera else { throw .usage("no live photos are asked for") }
        self.options = options
        let process = try RecorderProcess(options, logger: logger)
        let (directory, logger) = (process.directory, process.logger)
        self.process = process
        do {
            let work = Semaphore()
            let mailbox = try RecorderMailbox(work: work)
            let orders = LivePhotoOrders(mailbox)
            let pictures = try SampleQueue(Self.pictureLimits, wake: work)
            let sounds = try request.microphone.map { _ in try SampleQueue(Self.soundLimits, wake: work) }
            movies = LivePhotoThread(
                request, directory, mailbox, orders, pictures: pictures, sounds: sounds, logger: logger)
            picture = PictureReceiver(
                directory.ringSocket(camera.id), camera, request, pictures, mailbox,
                patience: (Self.forever, Self.forever), logger: logger)
            sound =
                if let microphone = request.microphone, let sounds {
                    SoundReceiver(
                        directory, microphone, sounds, mailbox, patience: (Self.forever, Self.forever), logger: logger)
                } else { nil }
            let hello = RecorderHello(request)
            link = try OrderLink(
                process.context, process.loop, path: directory.recordersSocket,
                hello: { link, _ in hello.hello(link) },
                graceMilliseconds: options.coordinatorGraceMilliseconds, logger: logger)
            (self.mailbox, self.orders, self.hello) = (mailbox, orders, hello)
            hello.progress = { [weak self] in self?.progress ?? MovieProgress(.starting) }
        } catch {
            throw .failed("\(error)")
        }
    }

    /// Makes movies until an order or a signal ends it, or the coordinator has disconnected: a later coordinator does
    /// not ask for its movies.
    public func run(signals: SignalDescriptor? = nil) -> RecorderEnding {
        if let signals {
            loop.watch(.descriptor(signals.rawValue)) { [weak self] in
                while let signal = signals.next() { if signal != SIGHUP { self?.mailbox.end(.shuttingDown) } }
            }
        }
        loop.watch(.descriptor(mailbox.news.rawValue)) { [weak self] in self?.takeNews() }
        link.onOrder = { [weak self] in self?.handle($0) }
        link.onConnected = { [weak self] in self?.told = nil }
        link.onDisconnected = { [weak self] in self?.mailbox.end(.shuttingDown, isCancelled: true) }
        link.onAbandoned = { [weak self] in self?.mailbox.end(.shuttingDown, isCancelled: true) }
        loop.eachSecond { [weak self] in
            self?.tick()
            return self != nil
        }
        var isRunning = true
        do {
            try start()
            try loop.run()
        } catch {
            logger.critical("live photos can't be recorded", metadata: ["error": "\(error)"])
            isRunning = false
        }
        mailbox.end(.shuttingDown, isCancelled: true)
        // Those that take in end by themselves.
        threads.first?.join()
        return isRunning ? .inOrder : .failed
    }

    private func start() throws(SystemError) {
        let (movies, picture, sound) = (movies, picture, sound)
        threads.append(try NamedThread(name: "live-photos") { movies.run() })
        threads.append(try NamedThread(name: "live-picture") { picture.run() })
        if let sound { threads.append(try NamedThread(name: "live-sound") { sound.run() }) }
    }

    // MARK: Orders

    private func handle(_ order: RecorderOrder) {
        let number = order.number
        switch order.action {
        case .stop(let reason, _): end(reason, isCancelled: false, number)
        case .cancel: end(.stopped, isCancelled: true, number)
        case .live(let photo): give(.make(order: number, photo), number, .failure(.livePhotoMovie("its recorder ends")))
        case .dropLive(let job): give(.drop(order: number, job: job), number, .success([:]))
        case .suspend(let isSuspended):
            give(.suspend(order: number, isSuspended, at: MonotonicClock.now()), number, .success([:]))
        case .begin, .pause, .resume, .blank, .input:
            reply(number, .failure(.invalidParams("do", "this recorder makes live photos only")))
        }
    }

    // The answer is for when it has ended, or can't be told.
    private func give(
        _ command: LivePhotoOrders.Command, _ number: UInt64, _ answer: Result<JSONValue, BusError>
    ) {
        if !orders.give(command) { reply(number, answer) }
    }

    private func end(_ reason: MovieEndReason, isCancelled: Bool, _ number: UInt64) {
        if let result { return reply(number, .success(.object(result.members))) }
        waiting.append(number)
        mailbox.end(reason, isCancelled: isCancelled)
    }

    private func reply(_ number: UInt64, _ result: Result<JSONValue, BusError>, _ file: Message? = nil) {
        link.send(.reply(order: number, result), attachment: file)
    }

    // MARK: Reports

    private var progress: MovieProgress {
        let figures = mailbox.figures
        var progress = MovieProgress(
            mailbox.isEnding ? .finishing : figures.hasStarted ? .recording : .starting)
        (progress.video, progress.audio) = mailbox.stored
        progress.recordedDuration = mailbox.isEnding ? 0 : figures.statistics.recordedDuration / 1_000_000
        progress.dropped = dropped
        progress.waitingFor = mailbox.waiting
        progress.refusal = mailbox.refusal
        return progress
    }

    private var dropped: UInt64 { mailbox.overflows + mailbox.figures.statistics.dropped }

    private func takeNews() {
        mailbox.news.drain()
        // What is answered before the end is told before it: the end is looked for first.
        let news = mailbox.takeNews()
        for answer in orders.takeAnswers() { tell(answer) }
        let isAway = mailbox.waiting.contains(options.request.camera?.id ?? "")
        if isAway, !isCameraAway { _ = orders.give(.restart(at: MonotonicClock.now())) }
        isCameraAway = isAway
        tellState()
        if let result = news.result { ended(result) }
    }

    private func tell(_ answer: LivePhotoOrders.Answer) {
        guard let bytes = answer.file else { return reply(answer.order, answer.result) }
        let file = Message()
        do throws(ZeroMQError) {
            try file.allocate(count: bytes.count)
            file.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
            reply(answer.order, answer.result, file)
        } catch {
            reply(answer.order, .failure(.livePhotoMovie("\(error)")))
        }
    }

    private func tellState() {
        let progress = progress
        if progress != told, link.send(.state(progress)) { told = progress }
    }

    private func tick() {
        link.sendBacklog()
        link.send(.alive)
        // What was lost tells nobody by itself.
        let dropped = dropped
        guard dropped > toldDropped else { return }
        link.send(.event(.didDropFrames(dropped - toldDropped)))
        toldDropped = dropped
        tellState()
    }

    private func ended(_ result: MovieResult) {
        guard self.result == nil else { return }
        self.result = result
        link.send(.event(.didFinishRecording(result)))
        for number in waiting { reply(number, .success(.object(result.members))) }
        logger.info("no more live photos", metadata: ["reason": "\(result.reason.rawValue)"])
        link.end { [loop] in loop.stop() }
    }
}
