import NIOCore
import NIOWebSocket
import Synchronization
import ZeroMQ

/// A message of a WebSocket, or of a topic: bytes of our own before frames of the bus, which are not copied before it
/// is sent.
struct Outgoing: @unchecked Sendable {
    // The messages are this one's alone, and nobody touches them once it is put into an outbox.
    let opcode: WebSocketOpcode
    let head: [UInt8]
    let frames: [Message]
    let isMedia: Bool

    init(_ opcode: WebSocketOpcode, _ head: [UInt8] = [], frames: [Message] = [], isMedia: Bool = false) {
        self.opcode = opcode
        self.head = head
        self.frames = frames
        self.isMedia = isMedia
    }

    var bytes: Int { frames.reduce(head.count) { $0 + $1.count } }

    /// As a frame of a WebSocket.
    var frame: WebSocketFrame {
        var data = ByteBufferAllocator().buffer(capacity: bytes)
        data.writeBytes(head)
        for frame in frames { data.write(frame) }
        return WebSocketFrame(fin: true, opcode: opcode, data: data)
    }
}

extension ByteBuffer {
    /// Appends the bytes of a message of the bus.
    mutating func write(_ message: Message) { message.withUnsafeBytes { _ = writeBytes($0) } }
}

/// The data that waits to be written to one connection. Media is fetched only when it can be written; the rest is
/// bounded.
final class Outbox: Sendable {
    private struct State {
        var waiting: [Outgoing] = []
        var bytes = 0
        /// Media that were put in and are not written.
        var media = 0
        var isEnded = false
        var reader: CheckedContinuation<Outgoing?, Never>?
    }

    private let state = Mutex(State())
    private let maximumBytes: Int
    private let maximumCount: Int

    /// - Parameters:
    ///   - maximumBytes: that wait, beside the newest.
    ///   - maximumCount: messages that wait.
    init(maximumBytes: Int, maximumCount: Int) {
        self.maximumBytes = maximumBytes
        self.maximumCount = maximumCount
    }

    /// Whether media put in now would be written next but for what is no media.
    var hasRoomForMedia: Bool { state.withLock { $0.media == 0 && !$0.isEnded } }

    /// Whether nothing more is put in.
    var hasEnded: Bool { state.withLock { $0.isEnded } }

    /// - Parameter isPart: of what was begun when there was room, and has its own bound.
    /// - Returns: false: there is no room, or it has ended.
    func put(_ outgoing: Outgoing, isPart: Bool = false) -> Bool {
        let (isIn, reader) = state.withLock { state -> (Bool, CheckedContinuation<Outgoing?, Never>?) in
            let hasRoom = isPart || (state.bytes < maximumBytes && state.waiting.count < maximumCount)
            guard !state.isEnded, hasRoom else { return (false, nil) }
            if outgoing.isMedia { state.media += 1 }
            if let reader = state.reader.take() { return (true, reader) }
            state.waiting.append(outgoing)
            state.bytes += outgoing.bytes
            return (true, nil)
        }
        reader?.resume(returning: outgoing)
        return isIn
    }

    /// The next to be written, as soon as there is one; nil: it has ended.
    func next() async -> Outgoing? {
        await withCheckedContinuation { continuation in
            let found = state.withLock { state -> Outgoing?? in
                if !state.waiting.isEmpty {
                    let first = state.waiting.removeFirst()
                    state.bytes -= first.bytes
                    return .some(first)
                }
                if state.isEnded { return .some(nil) }
                state.reader = continuation
                return nil
            }
            if let found { continuation.resume(returning: found) }
        }
    }

    /// That is written.
    func wrote(_ outgoing: Outgoing) { if outgoing.isMedia { state.withLock { $0.media -= 1 } } }

    /// Nothing comes any more.
    ///
    /// - Parameter dropping: nor what waits.
    func end(dropping: Bool = true) {
        let reader = state.withLock { state in
            state.isEnded = true
            if dropping {
                state.waiting = []
                state.bytes = 0
            }
            return state.reader.take()
        }
        reader?.resume(returning: nil)
    }
}
