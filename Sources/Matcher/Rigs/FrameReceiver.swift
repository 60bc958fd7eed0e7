import BusProtocol
import BusServer
import Delivery
import JSON
import ZeroMQ

/// Receives the frames of one device in one rendition, as any subscriber does.
final class FrameReceiver {
    /// A received frame.
    struct Frame {
        let header: Message
        let payload: Message
        /// CLOCK_MONOTONIC, nanoseconds.
        let time: Int64
        /// The distance from the previous frame of its stream, in sequence numbers.
        let step: Int64
        /// Whether it is the first of its stream.
        let beginsStream: Bool
    }

    private let socket: Socket
    private let loop: Loop
    private var token: Loop.Token?
    private let memory: PayloadMemory
    private var stream: [UInt8] = []
    private var sequence: Int64 = 0
    var onFrame: ((Frame) -> Void)?
    /// Called with the reason when there are no frames.
    var onError: ((BusError) -> Void)?
    /// Frames that were lost here because memory was short, or because they cannot be read.
    private(set) var lost: UInt64 = 0

    /// Messages that may wait to be read: the frames of a set arrive at about the same time.
    private static let waitingMessages = 4
    private static let messagesPerTurn = 8

    init(
        _ context: Context, _ loop: Loop, _ memory: PayloadMemory, path: String, device: String, rendition: String
    ) throws(ZeroMQError) {
        self.loop = loop
        self.memory = memory
        socket = try Socket(context, .subscribe)
        try socket.set(.receiveHighWaterMark, Self.waitingMessages)
        try socket.set(.reconnectInterval, 100)
        try socket.subscribe(Topic.frame(device, rendition).text)
        try socket.connect(RuntimeDirectory.endpoint(path))
        token = loop.watch(.socket(socket)) { [weak self] in self?.read() }
    }

    func end() {
        loop.cancel(token)
        token = nil
    }

    private func read() {
        for _ in 0..<Self.messagesPerTurn where token != nil {
            guard let frames = try? socket.receive(maximumFrames: 3) else { return }
            switch frames.count {
            case 2: refused(frames[1])
            case 3: received(frames[1], frames[2])
            default: lost += 1
            }
        }
    }

    private func refused(_ header: Message) {
        guard let error = (try? JSONValue(parsing: header.bytes))?["error"] else {
            lost += 1
            return
        }
        onError?(BusError(header: error))
    }

    private func received(_ header: Message, _ source: Message) {
        let read = header.withUnsafeBytes { bytes -> (time: Int64, step: Int64, begins: Bool)? in
            guard bytes.first == UInt8(ascii: "{"), bytes.count > 2, let time = FrameHeaderScan.monotonic(bytes),
                let stream = FrameHeaderScan.stream(bytes), let sequence = FrameHeaderScan.sequence(bytes)
            else { return nil }
            let name = bytes[stream]
            let step = sequence.subtractingReportingOverflow(self.sequence).partialValue
            self.sequence = sequence
            if self.stream.elementsEqual(name) { return (time, step, false) }
            self.stream = Array(name)
            return (time, 1, true)
        }
        let payload = Message()
        guard let read, memory.lend(payload, source) else {
            lost += 1
            return
        }
        onFrame?(
            Frame(header: header, payload: payload, time: read.time, step: read.step, beginsStream: read.begins))
    }
}
