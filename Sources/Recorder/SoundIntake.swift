import BusProtocol
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Takes a microphone's sound from its topic, on a thread of its own, and puts it where it waits to be written.
final class SoundIntake: @unchecked Sendable {
    // Made by one thread, used by the one that calls `run()`.

    private let path: String
    private let microphone: MovieRequest.Device
    private let queue: SampleQueue
    private let exchange: Exchange
    private let logger: Logger
    private var plan: SoundPlan?
    /// That of the messages that ``plan`` is for.
    private var stream: [UInt8] = []
    private var streamText = ""
    private var continuity = SoundContinuity()
    private var wait: DeviceWait
    private var frames: [Message] = []

    /// Messages that wait to be taken: minutes of them, so that none is lost while this process is held up.
    private static let highWaterMark = 20_000
    /// Milliseconds without sound after which is looked at for how long.
    private static let patience = 1000

    /// - Parameter patience: milliseconds that the microphone is waited for at first, and when it has gone.
    init(
        _ path: String, _ microphone: MovieRequest.Device, _ queue: SampleQueue, _ exchange: Exchange,
        patience: (first: Int64, later: Int64), logger: Logger
    ) {
        wait = DeviceWait(patience)
        self.path = path
        self.microphone = microphone
        self.queue = queue
        self.exchange = exchange
        self.logger = logger
    }

    /// Returns when the movie ends, or the sound may not be had any more.
    func run() {
        do throws(ZeroMQError) {
            let socket = try Socket(try Context(), .subscribe)
            try socket.set(.receiveHighWaterMark, Self.highWaterMark)
            try socket.set(.reconnectInterval, 100)
            try socket.connect(RuntimeDirectory.endpoint(path))
            try socket.subscribe(MediaTopic(.audio, device: microphone.id, renditionText: "native").text)
            let set = try PollSet([.socket(socket), .descriptor(exchange.stop.rawValue)])
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
            exchange.end(.deviceLost, BusError(.internalError, "The sound of \(microphone.id) can't be had: \(error)."))
        }
    }

    private var isWanted: Bool { !exchange.isEnding && !exchange.isWithdrawn(.audio) }

    private func lost() {
        exchange.end(
            .deviceLost,
            wait.reason
                ?? BusError(
                    .deviceDisconnected, "\(microphone.id) has given no sound for \(wait.limit) ms."))
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
            guard learn(header, Array(header[place])) else { return }
        }
        guard let plan, let time = FrameHeaderScan.monotonic(header),
            let sequence = FrameHeaderScan.sequence(header).flatMap({ UInt64(exactly: $0) }),
            let first = FrameHeaderScan.firstFrame(header).flatMap({ UInt64(exactly: $0) }), plan.format.frameBytes > 0
        else { return }
        let count = samples.count / plan.format.frameBytes
        guard count > 0,
            continuity.receive(stream: streamText, sequence: sequence, firstFrame: first, frames: count) != nil
        else { return }
        wait.end()
        let whole = UnsafeRawBufferPointer(rebasing: samples[..<(count * plan.format.frameBytes)])
        let sample = Sample(time: time, duration: plan.nanoseconds(frames: count), sequence: sequence)
        // What finds no room is silence in the movie.
        _ = queue.push(sample, count: plan.bytes(frames: count)) { room in
            plan.copy(whole, to: room)
            return true
        }
    }

    private func learn(_ header: UnsafeRawBufferPointer, _ stream: [UInt8]) -> Bool {
        do throws(BusError) {
            guard let json = try? JSONValue(parsing: header) else { return false }
            let new = try SoundPlan(try SoundHeader(json))
            if let plan, plan != new {
                exchange.end(
                    .formatChanged,
                    BusError(
                        .formatUnsupported,
                        "\(microphone.id) gives \(new.format.sampleFormat.rawValue) at \(new.format.rate) Hz with \(new.format.channels) channels now, on which this movie can't go on.",
                        ["nearest": .null]))
                return false
            }
            self.stream = stream
            streamText = String(decoding: stream, as: UTF8.self)
            if plan == nil {
                plan = new
                exchange.set(new)
            }
            return true
        } catch {
            exchange.end(.writeFailed, error)
            return false
        }
    }
}
