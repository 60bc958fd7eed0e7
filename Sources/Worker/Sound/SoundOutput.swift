import BusProtocol
import CaptureCore
import CaptureSources
import Delivery
import ZeroMQ

/// One rendition of a running microphone's sound, made once for all who are subscribed to it.
final class SoundOutput {
    let subscribed: SubscribedTopic
    /// Messages so far within the stream.
    private(set) var sequence: UInt64
    private let maker: SoundMaker
    private var writer: SoundHeaderWriter
    private let payload = Message()

    init(
        _ subscribed: SubscribedTopic, _ rendition: SoundRendition, sequence: UInt64, device: String,
        stream: String, _ format: SoundFormat, _ timestampSource: SoundTimestampSource
    ) {
        self.subscribed = subscribed
        self.sequence = sequence
        maker = SoundMaker(rendition, format)
        let made = maker.format
        writer = SoundHeaderWriter(
            SoundHeaderWriter.Sound(
                device: device, rendition: subscribed.text, stream: stream, sampleFormat: made.sampleFormat.rawValue,
                rate: made.rate, channels: made.channels, timestampSource: timestampSource.rawValue))
    }

    /// Why there is none, if so.
    var error: BusError? { maker.error }

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
        guard !maker.isPassThrough else {
            write(period.firstFrame, period.frames, overruns, generation, period.monotonicTime, realtimeOffset)
            try socket.publish(topic: subscribed.topic, writer.bytes, payload: native)
            return true
        }
        let piece = native.withUnsafeBytes { all in
            maker.make(period, UnsafeRawBufferPointer(rebasing: all.prefix(bytes)))
        }
        guard let piece else { return false }
        try payload.allocate(count: piece.samples.count)
        payload.withUnsafeMutableBytes { $0.copyMemory(from: piece.samples) }
        write(piece.firstFrame, piece.frames, overruns, generation, piece.monotonic, realtimeOffset)
        try socket.publish(topic: subscribed.topic, writer.bytes, payload: payload)
        return false
    }

    private func write(
        _ firstFrame: UInt64, _ frames: Int, _ overruns: UInt64, _ generation: UInt64, _ monotonic: Int64,
        _ realtimeOffset: Int64
    ) {
        writer.write(
            sequence: sequence, firstFrame: firstFrame, frames: frames, overruns: overruns, generation: generation,
            monotonic: monotonic, realtime: monotonic + realtimeOffset)
        sequence += 1
    }
}
