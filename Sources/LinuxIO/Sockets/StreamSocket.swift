import Glibc

/// A connected Unix socket over which bytes go as they come (`SOCK_STREAM`). Used by one thread at a time.
public final class StreamSocket: Sendable {
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    /// Connects to a socket that ``UnixSocket/listen(at:_:mode:group:backlog:)`` made.
    public init(connectingTo path: String) throws(SystemError) {
        owner = try UnixSocket.connect(to: path, .stream)
    }

    /// Sends all of it, waiting for the other end to take it until that time.
    ///
    /// - Parameter deadline: monotonic nanoseconds.
    /// - Throws: `ETIMEDOUT` when it was not taken by then: a part of it may have been.
    public func send(_ bytes: UnsafeRawBufferPointer, by deadline: Int64) throws(SystemError) {
        var sent = 0
        while sent < bytes.count {
            let count = Glibc.send(
                rawValue, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            if count > 0 {
                sent += count
                continue
            }
            let code = errno
            if count < 0, code == EINTR { continue }
            guard count < 0, code == EAGAIN else { throw SystemError(code: code, operation: "send") }
            let left = deadline - MonotonicClock.now()
            guard left > 0 else { throw SystemError(code: ETIMEDOUT, operation: "send") }
            var wait = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
            poll(&wait, 1, Int32(clamping: left / 1_000_000 + 1))
        }
    }

    /// What has come and was not read yet, without waiting.
    public func received(maximumBytes: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: max(1, maximumBytes))
        let count = recv(rawValue, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count > 0 ? Array(buffer[..<count]) : []
    }
}
