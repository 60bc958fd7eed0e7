public import BusProtocol
public import FrameRing
import JSON
import LinuxIO

/// A device's frames from shared memory, without a copy and without a message: one rendition, from ring to ring.
///
/// It counts as a subscription as long as it lives. Its calls block: it is for a thread of your own, one at a time, and never for
/// a task. The pixels of a frame are the device's again after some frames more: see ``use(_:_:)``.
public final class RingConnection {
    private let socket: PacketSocket
    private let device: String
    private var reader: RingReader?
    private var wantsRing = true
    private var past = RingReader.Counters()
    private var continuity = FrameContinuity()
    /// Its frames build on one another: each is needed.
    private var isChained = false

    private static let maximumMessageBytes = 65536
    /// Nanoseconds without a frame after which the connection is looked at.
    private static let patience: Int64 = 1_000_000_000

    /// - Parameters:
    ///   - directory: where the bus has its sockets (``Client/directory``).
    ///   - rendition: as for ``Client/frames(_:_:newest:silence:timeout:)``.
    /// - Throws: ``ClientError/system(_:)`` when nobody answers there: no such device, or no bus.
    public init(
        _ directory: RuntimeDirectory, _ device: String, _ rendition: String = "native"
    ) throws(ClientError) {
        guard DeviceID.isValid(device) else {
            throw .refused(.invalidParams("device", "'\(device)' is no device id"))
        }
        self.device = device
        let request: JSONValue = ["rendition": .string(rendition)]
        do throws(SystemError) {
            socket = try PacketSocket(connectingTo: directory.ringSocket(device))
            _ = try socket.send(request.serialized)
        } catch {
            throw .system(error.description)
        }
    }

    /// The ring that frames come from now: what it says of itself and of all its frames. nil before the first.
    public var ring: RingDescription? { reader?.plan.description }

    /// What became of the frames so far.
    public var counters: RingReader.Counters { past.adding(reader?.counters ?? RingReader.Counters()) }

    /// Waits for a frame that is newer than the last one. Of a format whose frames build on one another they come one after the
    /// other, whatever the order, and after a loss go on with a key frame.
    ///
    /// - Parameter timeout: for how long.
    /// - Returns: nil when none came.
    /// - Throws: ``ClientError/refused(_:)`` with the worker's reason; a later call may succeed. ``ClientError/system(_:)`` when
    ///   the worker has gone: connect again.
    public func next(
        _ order: RingReader.Order = .newest, timeout: Duration = .seconds(10)
    ) throws(ClientError) -> RingFrame? {
        let deadline = monotonic(after: timeout)
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
                isChained = record.isKeyframe != nil
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

    /// Shows a frame's pixels, which lie as ``header(of:)`` says, to the body. What it made of them is good only if this returns it.
    ///
    /// - Returns: nil when the frame was overwritten meanwhile, or is of a former ring; throw away what was made of it.
    public func use<Result>(_ frame: RingFrame, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        let result = try reader?.use(frame, body)
        if result == nil { continuity.interrupt() }
        return result
    }

    /// What a message of the same frame would say. Costs some allocations.
    public func header(of frame: RingFrame) -> FrameHeader? {
        guard let ring else { return nil }
        let record = frame.record
        var header = FrameHeader(
            device: ring.device, rendition: ring.rendition, stream: ring.stream, sequence: record.sequence,
            captureSequence: record.captureSequence, generation: record.generation, monotonic: record.monotonic,
            realtime: record.realtime, timestampSource: "\(record.timestampSource)", format: Self.name(ring.format),
            width: ring.width, height: ring.height,
            planes: ring.planes.map {
                FrameHeader.Plane(
                    offset: $0.offset, stride: $0.stride, bytes: ring.isCompressed ? record.bytes : $0.bytes)
            }, orientation: record.orientation, mirrored: record.isMirrored, dropped: record.dropped,
            keyframe: record.isKeyframe)
        header.zoom = Double(record.zoom) / 1000
        return header
    }

    private func receive() throws(ClientError) {
        let packet: Packet?
        do throws(SystemError) {
            packet = try socket.receive(maximumBytes: Self.maximumMessageBytes)
        } catch {
            throw .system(error.description)
        }
        guard let packet else { return }
        if packet.isEnd { throw .system("The worker of \(device) has gone, or has ended the connection.") }
        if let descriptor = packet.descriptor {
            let new: RingReader
            do throws(RingError) { new = try RingReader(descriptor) } catch { throw .unreadable(error.description) }
            past = counters
            reader = new
            wantsRing = false
            return
        }
        guard let json = packet.bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), let error = json["error"] else {
            throw .unreadable("The worker of \(device) sent neither a ring nor an error.")
        }
        throw .refused(BusError(header: error))
    }

    // V4L2's spelling of a code, without blanks at the end.
    private static func name(_ format: UInt32) -> String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: (format & 0x7FFF_FFFF) >> (8 * UInt32($0))) }
        var text = String(decoding: bytes, as: UTF8.self) + (format >> 31 == 1 ? "-BE" : "")
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }
}
