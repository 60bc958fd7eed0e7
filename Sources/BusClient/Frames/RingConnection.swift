public import BusProtocol
public import FrameRing

/// The frames of a device from shared memory, without copies and messages: one rendition, from ring to ring. For a
/// microphone they are periods of sound, to be read one after the other.
///
/// It counts as a subscription as long as it lives. Its calls block: call it from a thread of your own, one call at a
/// time, never from a task. The device reuses the pixels of a frame after some more frames: see ``use(_:_:)``.
public final class RingConnection {
    private let subscription: RingSubscription

    /// - Parameters:
    ///   - directory: where the bus has its sockets (``Client/directory``).
    ///   - rendition: as for ``Client/frames(_:_:newest:silence:timeout:)``, of a microphone as for `audio/` topics.
    /// - Throws: ``ClientError/system(_:)`` when nobody answers there: no such device, or no bus.
    public init(
        _ directory: RuntimeDirectory, _ device: String, _ rendition: String = "native"
    ) throws(ClientError) {
        guard DeviceID.isValid(device) else {
            throw .refused(.invalidParams("device", "'\(device)' is not a device id"))
        }
        do throws(RingSubscriptionError) {
            subscription = try RingSubscription(
                directory.ringSocket(device), device: device, rendition: rendition)
        } catch {
            throw ClientError(error)
        }
    }

    /// The ring that frames come from now: what it says of itself and of all its frames. nil before the first.
    public var ring: RingDescription? { subscription.ring }

    /// What became of the frames so far.
    public var counters: RingReader.Counters { subscription.counters }

    /// Waits for a frame that is newer than the last one. Of a format whose frames build on one another they come one
    /// after the other, whatever the order, and after a loss go on with a key frame.
    ///
    /// - Parameter timeout: for how long.
    /// - Returns: nil when none came.
    /// - Throws: ``ClientError/refused(_:)`` with the worker's reason; a later call may succeed.
    ///   ``ClientError/system(_:)`` when the worker has ended: connect again.
    public func next(
        _ order: RingReader.Order = .newest, timeout: Duration = .seconds(10)
    ) throws(ClientError) -> RingFrame? {
        do throws(RingSubscriptionError) {
            return try subscription.next(order, until: monotonic(after: timeout))
        } catch {
            throw ClientError(error)
        }
    }

    /// Shows a frame's pixels, which lie as ``header(of:)`` says, to the body. What it made of them is good only if
    /// this returns it.
    ///
    /// - Returns: nil when the frame was overwritten meanwhile, or is of a former ring; throw away what was made of it.
    public func use<Result>(_ frame: RingFrame, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        try subscription.use(frame, body)
    }

    /// What a message of the same picture would say; nil: it is none. Costs some allocations.
    public func header(of frame: RingFrame) -> FrameHeader? {
        guard let ring, ring.sound == nil else { return nil }
        let record = frame.record
        var header = FrameHeader(
            device: ring.device, rendition: ring.rendition, stream: ring.stream, sequence: record.sequence,
            captureSequence: record.captureSequence, generation: record.generation, monotonic: record.monotonic,
            realtime: record.realtime, timestampSource: "\(record.timestampSource)", format: Self.name(ring.format),
            width: ring.width, height: ring.height,
            planes: ring.planes.map {
                FrameHeader.Plane(
                    offset: $0.offset, stride: $0.stride, bytes: ring.isCompressed ? record.bytes : $0.bytes)
            }, orientation: ring.orientation, mirrored: ring.isMirrored, dropped: record.dropped,
            keyframe: record.isKeyframe)
        header.presentation = record.monotonic &+ record.presentationDelay
        header.zoom = Double(record.zoom) / 1000
        header.extensions = ring.extensions
        return header
    }

    /// What a message of the same period of sound would say; nil: it is none. Costs some allocations.
    public func soundHeader(of period: RingFrame) -> SoundHeader? {
        guard let ring, let sound = ring.sound else { return nil }
        let record = period.record
        return SoundHeader(
            device: ring.device, rendition: ring.rendition, stream: ring.stream, sequence: record.sequence,
            firstFrame: record.firstFrame, frames: record.bytes / sound.frameBytes, sampleFormat: sound.sampleFormat,
            rate: sound.rate, channels: sound.channels, overruns: record.overruns, generation: record.generation,
            monotonic: record.monotonic, realtime: record.realtime,
            timestampSource: record.timestampSource == .read ? "read" : "status")
    }

    // V4L2's spelling of a code, without blanks at the end.
    private static func name(_ format: UInt32) -> String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: (format & 0x7FFF_FFFF) >> (8 * UInt32($0))) }
        var text = String(decoding: bytes, as: UTF8.self) + (format >> 31 == 1 ? "-BE" : "")
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }
}

extension ClientError {
    fileprivate init(_ error: RingSubscriptionError) {
        switch error {
        case .refused(let error): self = .refused(error)
        case .unreadable(let text): self = .unreadable(text)
        case .gone(let text): self = .system(text)
        }
    }
}
