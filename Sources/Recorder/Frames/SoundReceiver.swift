import BusProtocol
import CaptureCore
import FrameRing
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Takes a microphone's sound out of its ring, on a thread of its own, and puts it into the queue of the writing
/// thread. Without memory for a ring, it takes the messages of the topic.
final class SoundReceiver: @unchecked Sendable {
    // Made by one thread, used by the one that calls `run()`.

    private let directory: RuntimeDirectory
    private let microphone: MovieRequest.Device
    private let queue: SampleQueue
    private let mailbox: RecorderMailbox
    private let logger: Logger
    private var plan: SoundTrackPlan?
    /// That of the sound that ``plan`` is for.
    private var stream: [UInt8] = []
    private var streamText = ""
    private var continuity = SoundContinuity()
    private var wait: DeviceWait
    private var frames: [Message] = []
    /// That which ``plan`` is for.
    private var ring = ""
    /// Why the microphone could not be reached last, so that it is logged once.
    private var lastWhy = ""

    /// Messages that wait to be taken: minutes of them, so that none is lost while this process is held up.
    private static let highWaterMark = 20_000
    /// Milliseconds without sound after which is looked at for how long.
    private static let patience = 1000
    /// Milliseconds until a microphone that doesn't answer is asked again.
    private static let retry = 100

    /// - Parameter patience: milliseconds that the microphone is waited for at first, and when it has gone.
    init(
        _ directory: RuntimeDirectory, _ microphone: MovieRequest.Device, _ queue: SampleQueue,
        _ mailbox: RecorderMailbox,
        patience: (first: Int64, later: Int64), logger: Logger
    ) {
        wait = DeviceWait(patience)
        self.directory = directory
        self.microphone = microphone
        self.queue = queue
        self.mailbox = mailbox
        self.logger = logger
        wait.onChange = { [mailbox] in mailbox.setWaiting(for: microphone.id, $0) }
    }

    /// Returns when the movie ends, or the sound may not be had any more.
    func run() {
        defer { mailbox.setWaiting(for: microphone.id, false) }
        while isWanted {
            do throws(RingSubscriptionError) {
                let subscription = try RingSubscription(
                    directory.ringSocket(microphone.id), device: microphone.id, rendition: "native")
                guard try follow(subscription) else { return takeMessages() }
            } catch {
                note(error)
            }
            if wait.isOver, isWanted { return lost() }
            // Until then, or until the movie's end.
            try? PollSet([.descriptor(mailbox.stop.rawValue)]).wait(timeout: Self.retry)
        }
    }

    // MARK: From the ring

    private func note(_ error: RingSubscriptionError) {
        switch error {
        case .refused(let reason): wait.begin(reason)
        case .unreadable(let text), .gone(let text):
            if text != lastWhy { logger.info("no sound", metadata: ["why": "\(text)"]) }
            lastWhy = text
            wait.begin(nil)
        }
    }

    /// - Returns: false: there is no memory for a ring.
    private func follow(_ subscription: RingSubscription) throws(RingSubscriptionError) -> Bool {
        ring = ""
        while isWanted, !wait.isOver {
            let period: RingFrame?
            do throws(RingSubscriptionError) {
                period = try subscription.next(.next, until: MonotonicClock.now() + Int64(Self.patience) * 1_000_000)
            } catch {
                guard case .refused(let reason) = error else { throw error }
                if reason.isWithoutRing { return false }
                note(error)
                continue
            }
            if let period, let description = subscription.ring {
                take(period, description, subscription)
            } else {
                wait.begin(nil)
            }
        }
        return true
    }

    private func take(_ period: RingFrame, _ description: RingDescription, _ subscription: RingSubscription) {
        if description.ring != ring {
            guard let sound = description.sound else { return }
            let isKnown = learn(description.stream) { () throws(BusError) in
                try SoundTrackPlan(sampleFormat: sound.sampleFormat, rate: sound.rate, channels: sound.channels)
            }
            guard isKnown else { return }
            ring = description.ring
        }
        let record = period.record
        _ = subscription.look(at: period) { samples, isIntact in
            take(samples, at: record.monotonic, sequence: record.sequence, first: record.firstFrame, isIntact)
        }
    }

    // MARK: From messages

    private func takeMessages() {
        do throws(ZeroMQError) {
            let socket = try Socket(try Context(), .subscribe)
            try socket.set(.receiveHighWaterMark, Self.highWaterMark)
            try socket.set(.reconnectInterval, 100)
            try socket.connect(RuntimeDirectory.endpoint(directory.mediaSocket(microphone.id)))
            try socket.subscribe(MediaTopic(.audio, device: microphone.id, renditionText: "native").text)
            let set = try PollSet([.socket(socket), .descriptor(mailbox.stop.rawValue)])
            while isWanted {
                try set.wait(timeout: Self.patience)
                var hasCome = false
                while isWanted, let count = try socket.receive(into: &frames, maximumFrames: 3) {
                    hasCome = true
                    take(count)
                }
                if !hasCome { wait.begin(nil) }
                if wait.isOver, isWanted { return lost() }
            }
        } catch {
            guard isWanted else { return }
            mailbox.end(
                .deviceLost,
                BusError(
                    .internalError,
                    "The sound of \(microphone.id) is not available: "
                        + "\(error)."))
        }
    }

    private var isWanted: Bool { !mailbox.isEnding && !mailbox.isWithdrawn(.audio) }

    private func lost() {
        mailbox.end(
            .deviceLost,
            wait.reason
                ?? BusError(
                    .deviceDisconnected, "\(microphone.id) has delivered no sound for \(wait.limit) ms."))
    }

    private func take(_ count: Int) {
        guard count >= 2 else { return }
        guard count == 3 else { return refused() }
        frames[1].withUnsafeBytes { header in
            frames[2].withUnsafeBytes { samples in take(header, samples) }
        }
    }

    // A header alone says why there is no sound.
    private func refused() {
        guard let json = try? JSONValue(parsing: frames[1].bytes) else { return }
        do throws(BusError) {
            _ = try SoundHeader(json)
        } catch {
            wait.begin(error)
        }
    }

    private func take(_ header: UnsafeRawBufferPointer, _ samples: UnsafeRawBufferPointer) {
        guard let place = FrameHeaderScan.stream(header) else { return }
        if plan == nil || !header[place].elementsEqual(stream) {
            guard let json = try? JSONValue(parsing: header) else { return }
            let isKnown = learn(String(decoding: header[place], as: UTF8.self)) { () throws(BusError) in
                try SoundTrackPlan(try SoundHeader(json))
            }
            guard isKnown else { return }
            stream = Array(header[place])
        }
        guard let time = FrameHeaderScan.monotonic(header),
            let sequence = FrameHeaderScan.sequence(header).flatMap({ UInt64(exactly: $0) }),
            let first = FrameHeaderScan.firstFrame(header).flatMap({ UInt64(exactly: $0) })
        else { return }
        take(samples, at: time, sequence: sequence, first: first) { true }
    }

    // MARK: Both

    private func take(
        _ samples: UnsafeRawBufferPointer, at time: Int64, sequence: UInt64, first: UInt64, _ isIntact: () -> Bool
    ) {
        guard let plan, plan.format.frameBytes > 0 else { return }
        let count = samples.count / plan.format.frameBytes
        guard count > 0,
            continuity.receive(stream: streamText, sequence: sequence, firstFrame: first, frames: count) != nil
        else { return }
        wait.end()
        // A ring that has rested keeps its last piece, which is none of now.
        if time > MonotonicClock.now() - Int64(Self.patience) * 1_000_000 { mailbox.setDelivering(.audio) }
        let whole = UnsafeRawBufferPointer(rebasing: samples[..<(count * plan.format.frameBytes)])
        let sample = Sample(time: time, duration: plan.nanoseconds(frames: count), sequence: sequence)
        // What finds no room is silence in the movie.
        _ = queue.push(sample, count: plan.bytes(frames: count)) { room in
            plan.copy(whole, to: room)
            return isIntact()
        }
    }

    /// Sound of another stream comes.
    ///
    /// - Parameter read: what becomes of it.
    /// - Returns: false: the movie can't go on with it.
    private func learn(_ stream: String, _ read: () throws(BusError) -> SoundTrackPlan) -> Bool {
        do throws(BusError) {
            let new = try read()
            if let plan, plan != new {
                mailbox.end(
                    .formatChanged,
                    BusError(
                        .formatUnsupported,
                        "\(microphone.id) gives \(new.format.sampleFormat.rawValue) at \(new.format.rate) Hz with "
                            + "\(new.format.channels) channels now, and a file has one kind of sound; start "
                            + "another movie.",
                        ["nearest": .null]), canContinue: true)
                return false
            }
            streamText = stream
            if plan == nil {
                plan = new
                mailbox.set(new)
            }
            return true
        } catch {
            mailbox.end(.writeFailed, error)
            return false
        }
    }
}
