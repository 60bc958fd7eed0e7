public import BusProtocol
import JSON
import LinuxIO

/// Why a subscription to rings gives no frames.
public enum RingSubscriptionError: Error, Hashable, Sendable {
    /// The publisher's reason; a later call may succeed.
    case refused(BusError)
    /// What came is neither a ring nor a reason.
    case unreadable(String)
    /// Nobody answers, or not any more: connect again.
    case gone(String)
}

/// The frames of one rendition of a device, from ring to ring as its publisher makes new ones.
///
/// The camera streams for it as long as it lives. Its calls block: it is for a thread of your own, one at a time.
public final class RingSubscription {
    private let socket: PacketSocket
    private let device: String
    private var reader: RingReader?
    private var wantsRing = true
    private var past = RingReader.Counters()
    private var continuity = FrameContinuity()
    /// Its frames build on one another, or are periods of sound: each is needed.
    private var isChained = false
    private var isSound = false

    private static let maximumMessageBytes = 65536
    /// Nanoseconds without a frame after which the connection is looked at.
    private static let patience: Int64 = 1_000_000_000

    /// - Parameters:
    ///   - path: the device's socket for rings.
    ///   - device: its id, for messages.
    ///   - rendition: as in topics.
    ///   - owner: the user in whose share of the device's renditions it is; nil: the user of this process. It counts
    ///     only if the bus's user sends it.
    /// - Throws: ``RingSubscriptionError/gone(_:)`` when nobody answers there.
    public init(
        _ path: String, device: String, rendition: String, owner: UInt32? = nil
    ) throws(RingSubscriptionError) {
        self.device = device
        var request: [String: JSONValue] = ["rendition": .string(rendition)]
        request["owner"] = owner.map { JSONValue($0) }
        do throws(SystemError) {
            socket = try PacketSocket(connectingTo: path)
            _ = try socket.send(JSONValue.object(request).serialized)
        } catch {
            throw .gone(error.description)
        }
    }

    /// The ring that frames come from now: what it says of itself and of all its frames. nil before the first.
    public var ring: RingDescription? { reader?.plan.description }

    /// What became of the frames so far.
    public var counters: RingReader.Counters { past.adding(reader?.counters ?? RingReader.Counters()) }

    /// Waits for a frame that is newer than the last one. Periods of sound come one after the other, whatever the
    /// order. Of a format whose frames build on one another they come one after the other, whatever the order, and
    /// after a loss go on with a key frame.
    ///
    /// - Parameter deadline: CLOCK_MONOTONIC, nanoseconds.
    /// - Returns: nil when none came.
    public func next(_ order: RingReader.Order, until deadline: Int64) throws(RingSubscriptionError) -> RingFrame? {
        while true {
            if wantsRing {
                guard socket.waitUntilReadable(until: deadline) else { return nil }
                try receive()
                continue
            }
            guard let reader else { return nil }
            switch reader.wait(isChained ? .next : order, until: min(deadline, MonotonicClock.now() + Self.patience)) {
            case .frame(let frame):
                let record = frame.record
                isChained = isSound || record.isKeyframe != nil
                let lost = continuity.receive(
                    stream: reader.plan.description.stream, sequence: record.sequence, isKeyframe: record.isKeyframe)
                if lost != nil { return frame }
            case .closed: wantsRing = true
            case .timedOut:
                // A worker that was killed has closed no ring: its end shows at the connection only.
                if socket.waitUntilReadable(until: 0) {
                    try receive()
                } else if MonotonicClock.now() >= deadline {
                    return nil
                }
            }
        }
    }

    /// Shows a frame's pixels to the body. What it made of them is good only if this returns it.
    ///
    /// - Returns: nil when the frame was overwritten meanwhile, or is of a former ring; throw away what was made of it.
    public func use<Result>(_ frame: RingFrame, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        let result = try reader?.use(frame, body)
        if result == nil { interrupt() }
        return result
    }

    /// As ``RingReader/look(at:_:)``; after a loss ``interrupt()`` is to be called.
    public func look<Result>(
        at frame: RingFrame, _ body: (_ bytes: UnsafeRawBufferPointer, _ isIntact: () -> Bool) throws -> Result
    ) rethrows -> Result? { try reader?.look(at: frame, body) }

    /// The device gives no frames now: its ring is closed, or there has been none.
    public var hasNoRing: Bool { wantsRing }

    /// The frame that was given last could not be used: of a format whose frames build on one another a key frame comes
    /// next.
    public func interrupt() { continuity.interrupt() }

    private func receive() throws(RingSubscriptionError) {
        let packet: Packet?
        do throws(SystemError) {
            packet = try socket.receive(maximumBytes: Self.maximumMessageBytes)
        } catch {
            throw .gone(error.description)
        }
        guard let packet else { return }
        if packet.isEnd { throw .gone("The worker of \(device) has ended, or has closed the connection.") }
        if let descriptor = packet.descriptor {
            let new: RingReader
            do throws(RingError) { new = try RingReader(descriptor) } catch { throw .unreadable(error.description) }
            past = counters
            reader = new
            isSound = new.plan.description.sound != nil
            isChained = isSound
            wantsRing = false
            return
        }
        guard let json = packet.bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), let error = json["error"] else {
            throw .unreadable("The worker of \(device) sent neither a ring nor an error.")
        }
        throw .refused(BusError(header: error))
    }
}
