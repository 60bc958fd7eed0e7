import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Delivery
import FrameRing
import LinuxIO
import ZeroMQ

/// One run of a microphone from start to stop, on the loop: takes the sound period by period and publishes it.
final class MicrophoneStream {
    /// Random, as 16 hexadecimal digits: new at each start.
    let id = hexadecimal(randomBytes(8))
    var format: SoundFormat { stream.format }
    /// Frames that were published, and those that were lost in overruns.
    @exclusivity(unchecked) private(set) var frames: UInt64 = 0
    var lostFrames: UInt64 { stream.lostFrames }
    var overruns: UInt64 { stream.overruns }
    /// When the first frame of the newest period was taken; monotonic nanoseconds.
    @exclusivity(unchecked) private(set) var lastPeriod: Int64?
    /// That of the last committed configuration, for what is published.
    @exclusivity(unchecked) var generation: UInt64 = 0

    private let device: String
    private let stream: any SoundStream
    private let socket: MediaSocket
    private let loop: Loop
    private var token: Loop.Token?
    private var silence: SilenceDetector?
    /// Of the next period; not sent yet.
    private let payload = Message()
    @exclusivity(unchecked) private var isRoomReady = false
    @exclusivity(unchecked) private var outputs: [SoundOutput] = []
    @exclusivity(unchecked) private var level: LevelOutput?
    /// Messages so far; the count continues when subscribers return, as for a topic without subscribers.
    @exclusivity(unchecked) private var levelSequence: UInt64 = 0
    private var departed: [[UInt8]: UInt64] = [:]
    @exclusivity(unchecked) private var rings: [SoundRing] = []
    private var departedRings: [SoundRendition: UInt64] = [:]
    @exclusivity(unchecked) private var toldOverruns: UInt64 = 0

    /// Sound has been lost: how often by now, and how many frames in all.
    var onOverrun: ((_ overruns: UInt64, _ lostFrames: UInt64) -> Void)?
    /// One of ``failures`` is new.
    var onImpossible: (() -> Void)?
    /// There is a ring, or (nil) none any more.
    var onRing: ((SoundRendition, RingWriter?) -> Void)?
    /// The first period has come.
    var onFirst: (() -> Void)?
    /// The microphone has no more to give.
    var onLost: ((SourceError) -> Void)?
    /// Nothing can be published any more.
    var onFailure: ((ZeroMQError) -> Void)?

    private struct LevelOutput {
        let topic: [UInt8]
        var writer: SoundLevelWriter
        var meter: SoundLevelMeter
        /// Frames that were measured since the last message.
        var frames = 0
    }

    /// Periods that are taken before others have their turn again.
    private static let periodsPerTurn = 32
    /// Levels of a second.
    private static let levelRate = 10
    /// Topics without subscribers whose numbers are remembered.
    private static let maximumDeparted = 4096

    /// - Parameter silenceLimit: nanoseconds that it may go without a period; 0: for ever.
    init(
        _ stream: any SoundStream, device: String, _ socket: MediaSocket, _ loop: Loop, silenceLimit: Int64
    ) {
        self.stream = stream
        self.device = device
        self.socket = socket
        self.loop = loop
        token = loop.watch(.descriptor(stream.descriptor)) { [weak self] in self?.take() }
        guard silenceLimit > 0 else { return }
        let period = format.nanoseconds(frames: Int64(format.periodFrames))
        let limit = max(silenceLimit, 20 * period)
        silence = SilenceDetector(loop, limit: limit) { [weak self] in self?.judgeSilence(limit) }
    }

    /// Publishes on these topics from now on.
    func setWanted(_ wanted: SoundSubscriptionTable) {
        let topics = wanted.sound.flatMap { each in each.topics.map { ($0, each.rendition) } }
        for gone in outputs where !topics.contains(where: { $0.0 == gone.subscribed }) {
            guard gone.sequence > 0, departed.count < Self.maximumDeparted else { continue }
            departed[gone.subscribed.topic] = gone.sequence
        }
        outputs.removeAll { output in !topics.contains { $0.0 == output.subscribed } }
        for (topic, rendition) in topics where !outputs.contains(where: { $0.subscribed == topic }) {
            outputs.append(
                SoundOutput(
                    topic, rendition, sequence: departed.removeValue(forKey: topic.topic) ?? 0, device: device,
                    stream: id, format, stream.timestampSource))
        }
        if level?.topic != wanted.level?.topic {
            level = wanted.level.map { subscribed in
                LevelOutput(
                    topic: subscribed.topic, writer: SoundLevelWriter(device: device, stream: id),
                    meter: SoundLevelMeter(format))
            }
        }
        setWantedRings(wanted.rings)
    }

    /// Topics whose rendition can't be made of this stream, and why.
    var failures: [ErrorPublisher.Refusal] { outputs.compactMap { each in each.error.map { (each.subscribed, $0) } } }

    // MARK: Rings

    private func setWantedRings(_ wanted: [SoundRendition]) {
        guard token != nil else { return }
        for gone in rings where !wanted.contains(gone.rendition) {
            if gone.sequence > 0, departedRings.count < Self.maximumDeparted {
                departedRings[gone.rendition] = gone.sequence
            }
            end(gone)
        }
        rings.removeAll { !wanted.contains($0.rendition) }
        for rendition in wanted where !rings.contains(where: { $0.rendition == rendition }) {
            let ring = SoundRing(
                rendition, sequence: departedRings.removeValue(forKey: rendition) ?? 0, device: device, stream: id,
                format, stream.timestampSource)
            rings.append(ring)
            open(ring)
        }
    }

    private func open(_ ring: SoundRing) {
        if let writer = ring.open() { onRing?(ring.rendition, writer) }
    }

    private func end(_ ring: SoundRing) {
        ring.close(.ended)
        onRing?(ring.rendition, nil)
    }

    /// What there was no memory for may be had now.
    func retryRings() {
        for ring in rings where ring.error != nil { open(ring) }
    }

    /// Makes another ring in the place of that one, if it is still in use; that one is never written to again.
    func remakeRing(_ rendition: SoundRendition, _ id: String) {
        guard let ring = rings.first(where: { $0.rendition == rendition }), ring.id == id else { return }
        ring.close(.replaced)
        onRing?(rendition, nil)
        open(ring)
    }

    /// Renditions of which there is no ring, and why.
    var ringFailures: [(rendition: SoundRendition, error: BusError)] {
        rings.compactMap { ring in ring.error.map { (ring.rendition, $0) } }
    }

    // MARK: Periods

    /// Takes no more: the stream can be stopped.
    func end() {
        loop.cancel(token)
        token = nil
        for ring in rings { end(ring) }
        rings = []
        silence?.end()
        silence = nil
    }

    private func lost(_ error: SourceError) {
        end()
        onLost?(error)
    }

    private func judgeSilence(_ limit: Int64) {
        // This process may have been stopped: then sound has arrived and was not read.
        take()
        guard token != nil, silence?.isSilent == true else { return }
        lost(
            SourceError(
                .failed, operation: "capture",
                message: "the microphone has delivered no sound for \(limit / 1_000_000) ms"))
    }

    private func take() {
        socket.hear()
        for _ in 0..<Self.periodsPerTurn where token != nil {
            do throws(SourceError) {
                guard let period = try next() else { return }
                publish(period)
            } catch {
                return lost(error)
            }
        }
    }

    private func next() throws(SourceError) -> SoundPeriod? {
        if !isRoomReady {
            do throws(ZeroMQError) {
                try payload.allocate(count: format.periodBytes)
            } catch {
                throw SourceError(.noResources, operation: "zmq_msg_init_size", message: "\(error)")
            }
            isRoomReady = true
        }
        return try payload.withUnsafeMutableBytes { memory throws(SourceError) in try stream.read(into: memory) }
    }

    private func publish(_ period: SoundPeriod) {
        let now = MonotonicClock.now()
        // Between the clocks lies what does now: a period is milliseconds old.
        let realtimeOffset = MonotonicClock.realtime() - now
        silence?.heard(at: now)
        socket.frame(at: now)
        if lastPeriod == nil { onFirst?() }
        lastPeriod = period.monotonicTime
        frames += UInt64(clamping: period.frames)
        measure(period)
        write(period, realtimeOffset)
        do throws(ZeroMQError) {
            for output in outputs {
                let couldBeMade = output.error == nil
                let isShared = try output.publish(
                    period, payload, bytes: period.frames * format.frameBytes, overruns: overruns,
                    generation: generation, realtimeOffset: realtimeOffset, socket)
                // Its bytes are libzmq's now.
                if isShared { isRoomReady = false }
                if couldBeMade, output.error != nil { onImpossible?() }
            }
        } catch {
            onFailure?(error)
        }
        if overruns != toldOverruns {
            toldOverruns = overruns
            onOverrun?(overruns, lostFrames)
        }
    }

    // Before the messages, whose bytes are libzmq's afterwards.
    private func write(_ period: SoundPeriod, _ realtimeOffset: Int64) {
        guard !rings.isEmpty else { return }
        let hadFailures = rings.contains { $0.error != nil }
        payload.withUnsafeBytes { bytes in
            let used = UnsafeRawBufferPointer(rebasing: bytes.prefix(period.frames * format.frameBytes))
            for ring in rings {
                ring.publish(
                    period, used, overruns: overruns, generation: generation, realtimeOffset: realtimeOffset)
            }
        }
        if !hadFailures, rings.contains(where: { $0.error != nil }) { onImpossible?() }
    }

    // By the sound's own time: a tenth of a second of it makes a message.
    private func measure(_ period: SoundPeriod) {
        guard level != nil else { return }
        payload.withUnsafeBytes { bytes in
            let used = UnsafeRawBufferPointer(rebasing: bytes.prefix(period.frames * format.frameBytes))
            level?.meter.add(used)
        }
        level?.frames += period.frames
        guard let measured = level?.frames, measured * Self.levelRate >= format.rate, var output = level else { return }
        level = nil
        let reading = output.meter.take()
        output.frames = 0
        output.writer.write(
            sequence: levelSequence,
            monotonic: period.monotonicTime + format.nanoseconds(frames: Int64(period.frames)),
            average: reading.average, peak: reading.peak)
        levelSequence += 1
        do throws(ZeroMQError) {
            try socket.publish(topic: output.topic, output.writer.bytes)
        } catch {
            onFailure?(error)
        }
        level = output
    }
}
