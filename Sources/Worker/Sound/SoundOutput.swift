import BusProtocol
import CaptureCore
import CaptureSources
import ZeroMQ

/// One rendition of a running microphone's sound, made once for all who are subscribed to it.
final class SoundOutput {
    /// How it comes about.
    private enum Making {
        /// The device's own bytes.
        case passThrough
        case converted(SoundRenditionWork)
        case impossible(BusError)
    }

    let subscribed: SubscriptionTable.Subscribed
    /// Messages so far within the stream.
    private(set) var sequence: UInt64
    private var making: Making
    private var writer: SoundHeaderWriter?
    private let payload = Message()

    init(
        _ subscribed: SubscriptionTable.Subscribed, _ rendition: SoundRendition, sequence: UInt64, device: String,
        stream: String, _ format: SoundFormat, _ timestampSource: SoundTimestampSource
    ) {
        self.subscribed = subscribed
        self.sequence = sequence
        var made = (sample: format.sampleFormat, rate: format.rate, channels: format.channels)
        do throws(BusError) {
            if SoundRenditionWork.isPassThrough(rendition, format) {
                making = .passThrough
            } else {
                let work = try SoundRenditionWork(rendition, from: format)
                made = (work.sampleFormat, work.rate, work.channels)
                making = .converted(work)
            }
        } catch {
            making = .impossible(error)
            return
        }
        writer = SoundHeaderWriter(
            SoundHeaderWriter.Sound(
                device: device, rendition: subscribed.text, stream: stream, sampleFormat: made.sample.rawValue,
                rate: made.rate, channels: made.channels, timestampSource: timestampSource.rawValue))
    }

    /// Why there is none, if so.
    var error: BusError? { if case .impossible(let error) = making { error } else { nil } }

    /// Publishes what comes of a period.
    ///
    /// - Parameters:
    ///   - native: the device's own bytes, of which the period's count.
    ///   - realtimeOffset: from the monotonic time to that of the wall, nanoseconds.
    /// - Returns: whether the native message's bytes are shared with libzmq now.
    func publish(
        _ period: SoundPeriod, _ native: Message, bytes: Int, overruns: UInt64, generation: UInt64,
        realtimeOffset: Int64, _ socket: MediaSocket
    ) throws(ZeroMQError) -> Bool {
        switch making {
        case .impossible: return false
        case .passThrough:
            write(
                period.firstFrame, period.frames, overruns, generation, period.monotonicTime, realtimeOffset)
            if let writer { try socket.publish(topic: subscribed.topic, writer.bytes, payload: native) }
            return true
        case .converted(let work):
            let piece: SoundRenditionWork.Piece?
            do throws(BusError) {
                piece = try native.withUnsafeBytes { all throws(BusError) in
                    try work.convert(UnsafeRawBufferPointer(rebasing: all.prefix(bytes)), period)
                }
            } catch {
                making = .impossible(error)
                return false
            }
            guard let piece else { return false }
            try payload.allocate(count: piece.samples.count)
            payload.withUnsafeMutableBytes { $0.copyMemory(from: piece.samples) }
            write(piece.firstFrame, piece.frames, overruns, generation, piece.monotonic, realtimeOffset)
            if let writer { try socket.publish(topic: subscribed.topic, writer.bytes, payload: payload) }
            return false
        }
    }

    private func write(
        _ firstFrame: UInt64, _ frames: Int, _ overruns: UInt64, _ generation: UInt64, _ monotonic: Int64,
        _ realtimeOffset: Int64
    ) {
        writer?.write(
            sequence: sequence, firstFrame: firstFrame, frames: frames, overruns: overruns, generation: generation,
            monotonic: monotonic, realtime: monotonic + realtimeOffset)
        sequence += 1
    }
}
