import FlyingSocks
import Glibc
import LinuxIO
import Synchronization
import ZeroMQ

/// A connection as bytes. It is read by one task and written by one; both wait without a thread (FlyingSocks).
final class WebStream: Sendable {
    /// Why nothing more comes or goes.
    struct Ended: Error {}

    private let socket: AsyncSocket
    private let pool: any AsyncSocketPool
    private let counters: WebCounters
    private let end: ConnectionEnd
    private var descriptor: Int32 { socket.socket.file.rawValue }

    private static let chunk = 4096
    /// Bytes that are read from who has been told already that nothing more is wanted.
    private static let drainedBytes = 1 << 20
    private static let filePart = 64 << 10

    init(_ socket: AsyncSocket, _ pool: any AsyncSocketPool, _ counters: WebCounters) {
        self.socket = socket
        self.pool = pool
        self.counters = counters
        end = ConnectionEnd(socket.socket.file.rawValue)
    }

    /// Some bytes, as soon as there are any.
    func read() async throws -> [UInt8] { try await socket.read(atMost: Self.chunk) }

    /// - Parameter more: something follows at once.
    func send(_ bytes: [UInt8], more: Bool = false) async throws {
        try await write(bytes.count) { start in
            bytes.withUnsafeBytes { sendSome($0, from: start, more: more) }
        }
    }

    /// The same without a copy of ours.
    func send(_ message: Message, more: Bool = false) async throws {
        try await write(message.count) { start in
            message.withUnsafeBytes { sendSome($0, from: start, more: more) }
        }
    }

    func send(_ outgoing: Outgoing) async throws {
        try await send(outgoing.head, more: !outgoing.frames.isEmpty)
        for (index, frame) in outgoing.frames.enumerated() {
            try await send(frame, more: index < outgoing.frames.count - 1)
        }
    }

    /// Sends so many bytes of a file, from where it stands, and waits for both the disk and the other end: not for a
    /// thread that others need.
    func sendNow(file: Int32, count: Int) throws(SystemError) {
        var left = count
        while left > 0 {
            let result = sendfile(descriptor, file, nil, min(left, Self.filePart))
            let code = errno
            if result > 0 {
                left -= result
                counters.sentBytes.add(result, ordering: .relaxed)
            } else if result < 0, code == EAGAIN {
                var wish = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                try check("poll") { poll(&wish, 1, -1) }
            } else if result == 0 || code != EINTR {
                // A file that has become shorter can't be sent any more.
                throw SystemError(code: result == 0 ? EPIPE : code, operation: "sendfile")
            }
        }
    }

    private func sendSome(_ bytes: UnsafeRawBufferPointer, from start: Int, more: Bool) -> Int {
        guard let base = bytes.baseAddress else { return 0 }
        return Glibc.send(
            descriptor, base + start, bytes.count - start, Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0))
    }

    private func write(_ count: Int, _ some: (_ start: Int) -> Int) async throws {
        var sent = 0
        while sent < count {
            let result = some(sent)
            let code = errno
            if result > 0 {
                sent += result
                counters.sentBytes.add(result, ordering: .relaxed)
            } else if result < 0, code == EAGAIN {
                try await pool.suspendSocket(socket.socket, untilReadyFor: .write)
            } else if result == 0 || code != EINTR {
                throw Ended()
            }
        }
    }

    /// Does that, and ends the connection when it takes longer.
    func within<Result: Sendable>(seconds: Int, _ body: () async throws -> Result) async throws -> Result {
        let patience = Task { [self] in
            try await Task.sleep(for: .seconds(seconds))
            shutDown()
        }
        defer { patience.cancel() }
        return try await body()
    }

    /// Nothing more is written.
    func finish() { end.finish() }

    /// Reads until the other end has said, too, that nothing more comes: what was written last gets there before the
    /// end.
    func drained() async {
        let patience = Task { [self] in
            try await Task.sleep(for: .seconds(2))
            shutDown()
        }
        var left = Self.drainedBytes
        while left > 0, let bytes = try? await read() { left -= bytes.count }
        patience.cancel()
    }

    /// Ends it: pending reads and writes end. The descriptor stays until ``close()``, so that nobody else's gets its
    /// number meanwhile.
    func shutDown() { end.shutDown() }

    /// Whether it was ended by ``shutDown()``.
    var isShutDown: Bool { end.isShutDown }

    /// Once nobody reads or writes any more.
    func close() { end.close { try? socket.close() } }
}
