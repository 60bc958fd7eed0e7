import BusProtocol
import CaptureCore
import FrameRing
import JSON
import LinuxIO
import Logging

/// Takes a camera's frames out of its ring, on a thread of its own, and puts them into the queue of the writing thread.
///
/// This thread never waits for the disk or the encoder, so that no frame is overwritten before it is taken.
final class PictureReceiver: @unchecked Sendable {
    // Made by one thread, used by the one that calls `run()`.

    private let path: String
    private let camera: MovieRequest.Device
    private let request: MovieRequest
    private let queue: SampleQueue
    private let mailbox: RecorderMailbox
    /// Which of the movie's cameras it is.
    private let number: Int
    private let logger: Logger
    private var plan: PictureTrackPlan?
    /// Its pictures are those of the movie, or have been.
    private var hasTurn: Bool
    private var isOffered = false
    /// Another camera was waited for in vain, or the movie has ended by this one.
    private var isGivenUp = false
    private var rendition = Rendition(.native)
    private var isAskedFor = false
    private var ring = ""
    private var counter = FrameCounter()
    /// As ``Sample/form``; and whether a picture of it is in the queue, and whether the writing thread knows of it.
    private var form = (number: 0, isInUse: false, isTold: true)
    /// Why the camera could not be reached last, so that it is logged once.
    private var lastWhy = ""
    /// Nothing has come yet.
    private var isFirst = true
    private var wait: DeviceWait
    private var pacer = WakePacer()

    /// Nanoseconds until a device that doesn't answer is asked again, and until a look at whether it is still wanted.
    private static let (retry, patience): (Int64, Int64) = (100_000_000, 1_000_000_000)

    /// - Parameters:
    ///   - request: of one that another camera is followed by: only how its picture is turned.
    ///   - number: which of the movie's cameras it is. One that is not the first takes over with its first picture.
    ///   - patience: milliseconds that the camera is waited for at first, and when it has gone.
    init(
        _ path: String, _ camera: MovieRequest.Device, _ request: MovieRequest, _ queue: SampleQueue,
        _ mailbox: RecorderMailbox, number: Int = 0, patience: (first: Int64, later: Int64), logger: Logger
    ) {
        wait = DeviceWait(patience)
        hasTurn = number == 0
        self.path = path
        self.camera = camera
        self.request = request
        self.queue = queue
        self.mailbox = mailbox
        self.number = number
        self.logger = logger
        wait.onChange = { [mailbox] isWaiting in
            mailbox.setWaiting(for: camera.id, isWaiting)
            if !isWaiting { mailbox.setRefusal(nil) }
        }
    }

    /// Returns when the movie ends or continues with another camera, or when the permission for pictures has ended.
    func run() {
        defer { mailbox.setWaiting(for: camera.id, false) }
        while isWanted {
            do throws(RingSubscriptionError) {
                let subscription = try RingSubscription(
                    path, device: camera.id, rendition: rendition.description, owner: request.owner.uid)
                ring = ""
                if try follow(subscription) { continue }
            } catch {
                note(error)
            }
            if wait.isOver, isWanted { return lost() }
            mailbox.recall.wait(until: MonotonicClock.now() + Self.retry)
        }
    }

    private var isWanted: Bool {
        guard !mailbox.isEnding, !mailbox.isWithdrawn(.video), !isGivenUp else { return false }
        return hasTurn ? mailbox.turn.isOf(number) : mailbox.turn.expects(number)
    }

    private func lost() {
        end(
            .deviceLost,
            wait.reason
                ?? BusError(
                    .deviceDisconnected,
                    "\(camera.id) has delivered no \(hasTurn ? "" : "usable ")picture for \(wait.limit) ms."))
    }

    // The movie, if it is of this camera.
    private func end(_ reason: MovieEndReason, _ error: BusError, canContinue: Bool = false) {
        if hasTurn {
            mailbox.turn.ifOf(number) { mailbox.end(reason, error, canContinue: canContinue) }
        } else {
            mailbox.tell(RecorderMailbox.InputAnswer(number: number, error: error))
        }
        isGivenUp = true
    }

    private func note(_ error: RingSubscriptionError) {
        switch error {
        case .refused(let reason):
            wait.begin(reason)
            let isOutOfMemory = reason.data["missing"] == "ring"
            let isDamaged = reason.data["damaged"] == true
            let isTold = reason.reason == .limitExceeded || isOutOfMemory || isDamaged && request.live != nil
            mailbox.setRefusal(isTold ? reason : nil)
            // A movie that runs waits for others.
            if isDamaged, plan == nil, request.live == nil { refuse(reason) }
            // That doesn't pass.
            if reason.reason == .formatUnsupported || reason.reason == .invalidParams { refuse(reason) }
        case .unreadable(let text), .gone(let text):
            if text != lastWhy { logger.info("no pictures", metadata: ["why": "\(text)"]) }
            lastWhy = text
            mailbox.setRefusal(nil)
            wait.begin(nil)
        }
    }

    private func refuse(_ reason: BusError) {
        guard plan != nil else { return end(.writeFailed, reason) }
        let text = "\(camera.id) delivers other pictures now, which this movie can't have; start another movie."
        let error = BusError(reason.reason, text, reason.data)
        end(.formatChanged, error, canContinue: error.reason == .formatUnsupported)
    }

    /// - Returns: true: to be asked again, for another rendition. false: the movie ends.
    private func follow(_ subscription: RingSubscription) throws(RingSubscriptionError) -> Bool {
        defer { tell() }
        while isWanted {
            let frame: RingFrame?
            let patience = pacer.hasUntold ? 2 * WakePacer.longest : Self.patience
            do throws(RingSubscriptionError) {
                frame = try subscription.next(.next, until: MonotonicClock.now() + patience)
            } catch {
                guard case .refused = error else { throw error }
                note(error)
                continue
            }
            guard let frame else {
                tell()
                if subscription.hasNoRing { wait.begin(nil) }
                if wait.isOver {
                    lost()
                    return false
                }
                continue
            }
            guard let description = subscription.ring else { continue }
            if description.ring != ring {
                guard accepts(description) else { return isWanted }
                ring = description.ring
            }
            take(frame, description.stream, subscription)
            // It gives pictures, of which none is new enough.
            if !hasTurn, wait.isOver {
                lost()
                return false
            }
        }
        return false
    }

    // False: it is to be asked for another rendition, or the movie ends.
    private func accepts(_ description: RingDescription) -> Bool {
        guard let plan else { return acceptsFirst(description) }
        let scales = plan.kind == .encoded && request.live == nil
        switch PictureTrackPlan.decide(description, scales ? request.scaled : request, isAskedFor: isAskedFor) {
        case .record(let new):
            if plan.isContinued(by: new) { return true }
            if scales, new.kind == .encoded {
                self.plan = new
                if form.isInUse { form.number += 1 }
                (form.isInUse, form.isTold) = (false, false)
                return true
            }
        case .ask(let wanted):
            if scales {
                (rendition, isAskedFor) = (wanted, true)
                return false
            }
        case .refuse(let error):
            if let isReady = standIn(plan, description) { return isReady }
            end(.formatChanged, change(plan, description, error.data["why"]?.string ?? error.message))
            return false
        }
        if let isReady = standIn(plan, description) { return isReady }
        let advice = plan.kind == .h264 ? "" : ", or record with the codec h264, which scales them"
        let why = "a file of pictures that are not scaled has one kind of them; start another movie\(advice)"
        end(.formatChanged, change(plan, description, why), canContinue: true)
        return false
    }

    private func acceptsFirst(_ description: RingDescription) -> Bool {
        switch PictureTrackPlan.decide(description, request, isAskedFor: isAskedFor) {
        case .record(let new):
            guard number == 0 || new.kind == .encoded else {
                refuse(
                    BusError(
                        .formatUnsupported,
                        "\(camera.id) gives \(new.layout.pixelFormat.name); this movie can't continue with that.",
                        ["nearest": .null]))
                return false
            }
            plan = new
            if number == 0 { mailbox.set(new) }
            return true
        case .ask(let wanted):
            (rendition, isAskedFor) = (wanted, true)
            return false
        case .refuse(let error):
            refuse(error)
            return false
        }
    }

    // Pictures of that size may be had in the format that the movie has, whatever the camera's format is; nil: not so.
    private func standIn(_ plan: PictureTrackPlan, _ description: RingDescription) -> Bool? {
        let turn = PictureOrientation(quarters: description.orientation / 90, isMirrored: description.isMirrored)
        let size = turn.turned(Dimensions(width: description.width, height: description.height))
        guard var stand = plan.stand, size == plan.layout.dimensions else { return nil }
        stand.videoRotationAngle = rendition.videoRotationAngle
        stand.isVideoMirrored = rendition.isVideoMirrored
        guard stand != rendition else { return nil }
        (rendition, isAskedFor) = (stand, true)
        return false
    }

    private func change(_ plan: PictureTrackPlan, _ new: RingDescription, _ why: String) -> BusError {
        func text(_ format: PixelFormat, _ size: Dimensions) -> String { "\(format.name) \(size.width)x\(size.height)" }
        let (before, now) = (
            text(plan.layout.pixelFormat, plan.layout.dimensions),
            text(PixelFormat(code: new.format), Dimensions(width: new.width, height: new.height))
        )
        return BusError(
            .formatUnsupported,
            before == now
                ? "\(camera.id) delivers \(now) in another form now: \(why)."
                : "\(camera.id) delivers \(now) now, and \(before) before: \(why).",
            ["nearest": .null])
    }

    // Whatever waits to be told of.
    private func tell() {
        guard pacer.hasUntold else { return }
        pacer.told()
        queue.tell()
    }

    private func take(_ frame: RingFrame, _ stream: String, _ subscription: RingSubscription) {
        let record = frame.record
        // A ring that has rested keeps its last frame, which is none of now.
        let isOld = isFirst && record.monotonic < MonotonicClock.now() - Self.patience
        isFirst = false
        guard !isOld, hasTurn || takesOver(at: record.monotonic) else { return }
        wait.end()
        mailbox.setDelivering(.video)
        let isKeyFrame = record.isKeyframe ?? true
        let sample = Sample(
            time: record.monotonic, presentationDelay: record.presentationDelay, realtime: record.realtime,
            sequence: record.captureSequence,
            dropped: counter.missing(before: record.captureSequence, at: record.monotonic, stream),
            isKeyFrame: isKeyFrame, input: number, form: form.number)
        if hasTurn { tellForm() }
        let tells = pacer.put(sample.time, urgent: mailbox.urgent)
        // nil: another camera has taken over, or is about to.
        let outcome: SampleQueue.Outcome? =
            subscription.look(at: frame) { bytes, isIntact in
                mailbox.turn.push(sample) {
                    queue.push(sample, count: bytes.count, tells: tells) { room in
                        room.copyMemory(from: bytes)
                        return isIntact()
                    }
                }
            } ?? .withdrawn
        switch outcome {
        case .taken:
            counter.took(record.captureSequence, at: record.monotonic, stream)
            form.isInUse = true
        case .full:
            mailbox.countOverflow()
            subscription.interrupt()
            queue.tell()
        case .withdrawn:
            subscription.interrupt()
            queue.tell()
        case nil: queue.tell()
        case .closed: break
        }
    }

    // From this picture on the movie is of this camera.
    private func takesOver(at time: Int64) -> Bool {
        if !isOffered { form.isTold = false }
        tellForm()
        isOffered = true
        guard mailbox.turn.take(number, at: time) else { return false }
        hasTurn = true
        mailbox.tell(RecorderMailbox.InputAnswer(number: number))
        return true
    }

    // The writing thread looks it up with the first picture of that form.
    private func tellForm() {
        guard !form.isTold, let plan else { return }
        mailbox.set(RecorderMailbox.Input(number: number, form: form.number, camera: camera, plan: plan))
        form.isTold = true
    }
}

/// Counts what is missing between the frames that were taken.
struct FrameCounter: Sendable {
    private var stream = ""
    /// The stream's first, and the last: the camera's count, and when it was taken.
    private var first: (sequence: UInt64, time: Instant) = (0, 0)
    private var last: (sequence: UInt64, time: Instant) = (0, 0)
    /// From one frame to the next in a stream that is over, nanoseconds.
    private var interval: Double?

    /// Frames that the camera has counted since the one that was taken last. In front of another stream, which a camera
    /// begins that was away or was set otherwise: as many as would have come meanwhile.
    func missing(before sequence: UInt64, at time: Instant, _ stream: String) -> UInt64 {
        if stream == self.stream { return sequence > last.sequence ? sequence - last.sequence - 1 : 0 }
        guard let interval = intervalSoFar, time > last.time else { return 0 }
        return UInt64(max(0, min(1e9, (Double(time - last.time) / interval).rounded() - 1)))
    }

    mutating func took(_ sequence: UInt64, at time: Instant, _ stream: String) {
        if stream != self.stream {
            interval = intervalSoFar
            self.stream = stream
            first = (sequence, time)
        }
        last = (sequence, time)
    }

    private var intervalSoFar: Double? {
        guard last.sequence > first.sequence, last.time > first.time else { return interval }
        return Double(last.time - first.time) / Double(last.sequence - first.sequence)
    }
}

/// How long to wait for a disconnected device.
struct DeviceWait {
    /// Milliseconds.
    private(set) var limit: Int64
    private let later: Int64
    /// Monotonic nanoseconds; nil: it is there. At the start it isn't.
    private var since: Int64? = MonotonicClock.now()
    /// Why it gives nothing, as it said last.
    private(set) var reason: BusError?
    /// Called when waiting for a disconnected device begins, and when a device has connected.
    var onChange: ((_ isWaiting: Bool) -> Void)?

    /// - Parameter limit: milliseconds, until it is there first, and later.
    init(_ limit: (first: Int64, later: Int64)) { (self.limit, later) = limit }

    mutating func begin(_ reason: BusError?) {
        if since == nil {
            since = MonotonicClock.now()
            onChange?(true)
        }
        if let reason { self.reason = reason }
    }

    mutating func end() {
        guard since != nil else { return }
        (since, reason, limit) = (nil, nil, later)
        onChange?(false)
    }

    var isOver: Bool { since.map { MonotonicClock.now() - $0 > limit * 1_000_000 } ?? false }
}
