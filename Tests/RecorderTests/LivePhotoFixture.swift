import BusProtocol
import CameraBusTesting
import CaptureCore
import Imaging
import JSON
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import Recorder

/// What a recorder of live photos has between its intakes and the files. It waits for what a test puts in; the clock is
/// that of the pictures.
final class LivePhotoFixture {
    let mailbox: RecorderMailbox
    let orders: LivePhotoOrders
    let directory: RuntimeDirectory
    /// When the first picture is taken: monotonic nanoseconds.
    let beginning: Instant
    let pictures: SampleQueue
    private let scratch: TemporaryDirectory
    private var thread: NamedThread?
    private let live: LivePhotoThread
    private var answers: [UInt64: LivePhotoOrders.Answer] = [:]
    private var lastOrder: UInt64 = 0
    private var jpegs: [UInt8: [UInt8]] = [:]

    static let size = Dimensions(width: 160, height: 120)
    static let second: Int64 = 1_000_000_000

    /// - Parameter beginning: seconds from now; nothing ends by the clock when that is far off.
    init(beginning: Int64 = 1000, _ change: (inout MovieRequest.Live) -> Void = { _ in }) throws {
        scratch = try TemporaryDirectory()
        directory = try RuntimeDirectory("\(scratch.path)/run")
        for path in [directory.path, directory.internalDirectory] { try PrivateDirectory.make(path, mode: 0o700) }
        self.beginning = MonotonicClock.now() + beginning * Self.second
        var request = MovieRequest(
            movie: "live", path: "",
            camera: MovieRequest.Device(id: "cam0", uniqueID: "u", name: "Camera"), fileType: .mov,
            owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "test"))
        var wish = MovieRequest.Live(isAutoTrimming: false)
        change(&wish)
        request.live = wish
        let work = Semaphore()
        mailbox = try RecorderMailbox(work: work)
        orders = LivePhotoOrders(mailbox)
        pictures = try SampleQueue(SampleQueue.Limits(bytes: 64 << 20, time: .max, samples: 8192), wake: work)
        mailbox.set(
            PictureTrackPlan(
                kind: .motionJPEG, layout: FrameLayout(pixelFormat: .motionJPEG, dimensions: Self.size, planes: [])))
        live = LivePhotoThread(
            request, directory, mailbox, orders, pictures: pictures, sounds: nil,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    deinit {
        mailbox.end(.shuttingDown, isCancelled: true)
        thread?.join()
    }

    /// From now on what is put in is taken.
    func begin() throws {
        let live = live
        thread = try NamedThread(name: "live-photos") { live.run() }
    }

    /// Ends it, and returns when it has.
    func end(isCancelled: Bool = false) {
        mailbox.end(.stopped, isCancelled: isCancelled)
        thread?.join()
    }

    /// So many seconds after the first picture.
    func time(_ seconds: Double) -> Instant { beginning + Int64(seconds * Double(Self.second)) }

    /// Puts in 30 pictures a second.
    ///
    /// - Parameters:
    ///   - missing: so many in front of each.
    ///   - luma: how bright the one of that number is, 0 to 255.
    func film(
        _ frames: some Sequence<Int>, missing: UInt64 = 0, _ luma: (Int) -> UInt8 = { _ in 100 }
    ) throws {
        for number in frames {
            let jpeg = try jpeg(luma(number))
            let sample = Sample(
                time: beginning + Int64(number) * Self.second / 30, sequence: UInt64(number),
                dropped: missing)
            let outcome = pictures.push(sample, count: jpeg.count) { room in
                room.copyBytes(from: jpeg)
                return true
            }
            try #require(outcome == .taken)
        }
    }

    private func jpeg(_ luma: UInt8) throws -> [UInt8] {
        if let known = jpegs[luma] { return known }
        let layout = try #require(FrameLayout.packed(.i420, Self.size))
        var picture = [UInt8](repeating: 128, count: layout.totalBytes)
        for index in 0..<Self.size.area { picture[index] = luma }
        let converter = try PictureConverter(
            from: layout, to: PictureRequest(encoding: .jpeg, dimensions: Self.size))
        let buffer = PictureBuffer()
        _ = try picture.withUnsafeBytes { try converter.convert([$0], bytesUsed: [$0.count], into: buffer) }
        let made = Array(buffer.bytes)
        jpegs[luma] = made
        return made
    }

    func identifier(_ job: String) throws -> LivePhotoIdentifier {
        let digits = String(repeating: "0", count: 32) + job.utf8.map { String($0, radix: 16) }.joined()
        return try #require(LivePhotoIdentifier(digits: String(digits.suffix(32))))
    }

    func path(_ job: String) throws -> String { directory.livePhotoFile(try identifier(job).digits) }

    /// Orders the movie of a photo.
    func make(_ job: String, at moment: Instant) throws -> UInt64 {
        lastOrder += 1
        let photo = LivePhotoOrder(job: job, moment: moment, identifier: try identifier(job))
        try #require(orders.give(.make(order: lastOrder, photo)))
        return lastOrder
    }

    func drop(_ job: String) throws -> UInt64 {
        lastOrder += 1
        try #require(orders.give(.drop(order: lastOrder, job: job)))
        return lastOrder
    }

    func suspend(_ isSuspended: Bool, at time: Instant) throws {
        lastOrder += 1
        try #require(orders.give(.suspend(order: lastOrder, isSuspended, at: time)))
        #expect(try answer(to: lastOrder).result == .success([:]))
    }

    func answer(to order: UInt64) throws -> LivePhotoOrders.Answer {
        let deadline = Deadline.usual
        while true {
            for answer in orders.takeAnswers() { answers[answer.order] = answer }
            if let answer = answers.removeValue(forKey: order) { return answer }
            guard !deadline.hasPassed else { throw TestingError("no answer to the order \(order)") }
            try PollSet([.descriptor(mailbox.news.rawValue)]).wait(timeout: deadline.millisecondsLeft)
            mailbox.news.drain()
        }
    }

    /// What has become of a movie.
    func movie(_ order: UInt64) throws -> LivePhotoMovie {
        let answer = try #require(LivePhotoAnswer(json: try answer(to: order).result.get()))
        #expect(answer.file == directory.livePhotoFile(answer.movie.identifier.digits))
        return answer.movie
    }

    func error(_ order: UInt64) throws -> BusError {
        guard case .failure(let error) = try answer(to: order).result else { throw TestingError("no error") }
        return error
    }
}
