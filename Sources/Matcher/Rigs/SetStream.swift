import BusProtocol
import BusServer
import CaptureCore
import Delivery
import JSON
import LinuxIO
import ZeroMQ

/// Matches and publishes the sets of one rig in one rendition, while they are subscribed to.
final class SetStream {
    private typealias Matcher = FrameMatcher<FrameReceiver.Frame>

    private struct Output {
        let topic: SubscribedTopic
        var writer: SetHeaderWriter
        var sequence: UInt64 = 0
    }

    private struct Seat {
        let device: RigReader.Device
        var receiver: FrameReceiver?
        /// Why the device has given no frames since its last one.
        var absence: BusError?
    }

    private let name: String
    private let loop: Loop
    private let socket: MediaSocket
    private let stream = hexadecimal(randomBytes(8))
    private var matcher: Matcher
    private var seats: [Seat]
    private var outputs: [Output] = []
    private var payloads: [Message] = []
    private var timer: Loop.Token?
    private var armed = Instant.max
    private var hasEnded = false
    /// CLOCK_MONOTONIC of the last set.
    private(set) var lastSet: Int64?
    private(set) var sets: UInt64 = 0
    /// Called when ``failures`` has changed.
    var onFailures: (() -> Void)?
    /// Called when the socket has failed for good.
    var onFailure: ((ZeroMQError) -> Void)?

    init(
        _ name: String, _ rig: RigReader.Rig, _ rendition: Rendition, _ context: Context, _ loop: Loop,
        _ directory: RuntimeDirectory, _ socket: MediaSocket, _ memory: PayloadMemory
    ) throws(ZeroMQError) {
        self.name = name
        self.loop = loop
        self.socket = socket
        matcher = Matcher(devices: rig.devices.count, options: .init(tolerance: rig.tolerance))
        seats = rig.devices.map { Seat(device: $0) }
        for index in seats.indices {
            guard let id = seats[index].device.id else {
                away(
                    index,
                    BusError(
                        .deviceNotFound, "\(seats[index].device.uniqueID) is not there.",
                        ["device": .string(seats[index].device.uniqueID)]))
                continue
            }
            let receiver = try FrameReceiver(
                context, loop, memory, path: directory.mediaSocket(id), device: id,
                rendition: rendition.description)
            receiver.onFrame = { [weak self] in self?.received($0, index) }
            receiver.onError = { [weak self] in self?.away(index, $0) }
            seats[index].receiver = receiver
        }
    }

    /// Whether the rig has these devices, so that at most the tolerance differs.
    func isOf(_ rig: RigReader.Rig) -> Bool {
        seats.map { [$0.device.id, $0.device.uniqueID] } == rig.devices.map { [$0.id, $0.uniqueID] }
    }

    func setTolerance(_ tolerance: Int64?) { matcher.options.tolerance = tolerance }

    /// Sets the subscribed topics.
    func setTopics(_ topics: [SubscribedTopic]) {
        outputs.removeAll { !topics.contains($0.topic) }
        for topic in topics where !outputs.contains(where: { $0.topic == topic }) {
            outputs.append(
                Output(topic: topic, writer: SetHeaderWriter(set: name, rendition: topic.text, stream: stream)))
        }
    }

    func end() {
        hasEnded = true
        for seat in seats { seat.receiver?.end() }
        loop.cancel(timer)
    }

    /// The lead's error for each topic: without the lead there are no sets.
    var failures: [ErrorPublisher.Refusal] {
        guard let error = seats.first?.absence else { return [] }
        return outputs.map { ($0.topic, error) }
    }

    var lost: UInt64 { seats.reduce(0) { $0 + ($1.receiver?.lost ?? 0) } }

    // MARK: Frames

    private func received(_ frame: FrameReceiver.Frame, _ index: Int) {
        if frame.beginsStream { matcher.restart(index) }
        if seats[index].absence != nil {
            seats[index].absence = nil
            if index == 0 { onFailures?() }
        }
        let held = Matcher.Frame(frame, time: frame.time, step: frame.step, bytes: frame.payload.count)
        send(matcher.receive(held, of: index, at: MonotonicClock.now()))
    }

    private func away(_ index: Int, _ error: BusError) {
        let isNews = seats[index].absence != error
        seats[index].absence = error
        send(matcher.setAbsent(index, at: MonotonicClock.now()))
        if index == 0, isNews { onFailures?() }
    }

    private func arm() {
        guard let next = matcher.nextDeadline, next < armed, !hasEnded else { return }
        loop.cancel(timer)
        armed = next
        timer = loop.schedule(at: next) { [weak self] in
            guard let self else { return }
            armed = .max
            send(matcher.advance(to: MonotonicClock.now()))
        }
    }

    private func send(_ results: [Matcher.Output]) {
        for result in results {
            switch result {
            case .set(let set):
                lastSet = MonotonicClock.now()
                sets += 1
                for index in outputs.indices { write(set, to: index) }
                payloads.removeAll(keepingCapacity: true)
                for frame in set.frames { if let frame { payloads.append(frame.content.payload) } }
            case .late(let late):
                for index in outputs.indices { write(late, to: index) }
                payloads.removeAll(keepingCapacity: true)
                payloads.append(late.frame.content.payload)
            }
            publish()
        }
        payloads.removeAll(keepingCapacity: true)
        arm()
    }

    private func write(_ set: Matcher.FrameSet, to index: Int) {
        outputs[index].writer.begin(
            sequence: outputs[index].sequence, number: set.sequence, isLate: false, monotonic: set.time,
            spread: set.spread, tolerance: set.tolerance)
        for (place, frame) in set.frames.enumerated() {
            if let frame {
                add(frame, place, lead: set.time, to: index)
            } else {
                let absence = seats[place].absence
                outputs[index].writer.add(
                    missing: seats[place].device.title, reason: absence?.reason.rawValue ?? "late",
                    message: absence?.message ?? "It has delivered no frame of that time "
                        + "yet.", counts(place, offset: 0))
            }
        }
        outputs[index].writer.end()
    }

    private func write(_ late: Matcher.LateFrame, to index: Int) {
        let offset = late.frame.time - late.time
        outputs[index].writer.begin(
            sequence: outputs[index].sequence, number: late.set, isLate: true, monotonic: late.time,
            spread: abs(offset), tolerance: late.tolerance)
        add(late.frame, late.device, lead: late.time, to: index)
        outputs[index].writer.end()
    }

    private func add(_ frame: Matcher.Frame, _ place: Int, lead: Int64, to index: Int) {
        let counts = counts(place, offset: frame.time - lead)
        frame.content.header.withUnsafeBytes { outputs[index].writer.add(header: $0, counts) }
    }

    private func counts(_ place: Int, offset: Int64) -> SetHeaderWriter.Place {
        .init(offset: offset, unmatched: matcher.dropped[place], late: matcher.late[place])
    }

    private func publish() {
        for index in outputs.indices {
            do throws(ZeroMQError) {
                try socket.publish(topic: outputs[index].topic.topic, outputs[index].writer.bytes, payloads: payloads)
                outputs[index].sequence += 1
            } catch {
                onFailure?(error)
            }
        }
    }
}
