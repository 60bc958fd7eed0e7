import CLinux
import Glibc

/// A message that came over a ``PacketSocket``, and what was handed over with it.
public final class Packet: Sendable {
    public let bytes: [UInt8]
    /// A descriptor that the other end gave away (`SCM_RIGHTS`): open as long as this lives.
    public let descriptor: Int32?

    fileprivate init(_ bytes: [UInt8], _ descriptor: Int32?) {
        self.bytes = bytes
        self.descriptor = descriptor
    }

    deinit { if let descriptor { close(descriptor) } }

    /// The other end has closed the connection: a message of nothing, of which there are none else.
    public var isEnd: Bool { bytes.isEmpty && descriptor == nil }
}

/// A connected Unix socket on which each message is whole, and may hand over a descriptor (`SOCK_SEQPACKET`). Never
/// blocks.
public final class PacketSocket: Sendable {
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    /// A connection that was accepted, or one end of a pair.
    public init(owning descriptor: consuming FileDescriptor) { owner = descriptor }

    /// Connects to a socket that ``UnixSocket/listen(at:_:mode:group:backlog:)`` made.
    public convenience init(connectingTo path: String) throws(SystemError) {
        self.init(owning: try UnixSocket.connect(to: path, .packets))
    }

    /// Sends a message, and a copy of a descriptor with it.
    ///
    /// - Returns: false when the other end has too many unread: nothing was sent.
    public func send(_ bytes: [UInt8], descriptor: Int32? = nil) throws(SystemError) -> Bool {
        do throws(SystemError) {
            try check("sendmsg") {
                clinux_send_with_descriptor(rawValue, bytes, Int32(clamping: bytes.count), descriptor ?? -1)
            }
            return true
        } catch {
            if error.isWouldBlock { return false }
            throw error
        }
    }

    /// The next message, if one is there.
    ///
    /// - Throws: `EMSGSIZE` for a longer one, which is lost.
    public func receive(maximumBytes: Int) throws(SystemError) -> Packet? {
        var buffer = [UInt8](repeating: 0, count: max(1, maximumBytes))
        var descriptor: Int32 = -1
        let count: Int32
        do throws(SystemError) {
            count = try check("recvmsg") {
                clinux_receive_with_descriptor(rawValue, &buffer, Int32(clamping: buffer.count), &descriptor)
            }
        } catch {
            if error.isWouldBlock { return nil }
            throw error
        }
        buffer.removeSubrange(Int(count)...)
        return Packet(buffer, descriptor >= 0 ? descriptor : nil)
    }

    /// Whether the other end has not read all that was sent (`SIOCOUTQ`).
    public var hasUnread: Bool { UnixSocket.unreadBytes(rawValue) > 0 }

    /// Waits until something can be received, or the time has come.
    ///
    /// - Parameter deadline: CLOCK_MONOTONIC, nanoseconds.
    /// - Returns: false when the time is over.
    public func waitUntilReadable(until deadline: Int64) -> Bool {
        while true {
            let (rest, overflow) = deadline.subtractingReportingOverflow(MonotonicClock.now())
            let milliseconds =
                overflow ? (deadline < 0 ? 0 : Int64(Int32.max)) : max(0, rest / 1_000_000 + (rest > 0 ? 1 : 0))
            var item = pollfd(fd: rawValue, events: Int16(POLLIN), revents: 0)
            let result = poll(&item, 1, Int32(clamping: milliseconds))
            if result > 0 { return true }
            if result == 0 || errno != EINTR { return false }
        }
    }
}

extension UnixSocket {
    /// Bytes, with what the kernel adds, that the other end of a connection has not read (`SIOCOUTQ`); 0 for what is
    /// none.
    public static func unreadBytes(_ descriptor: Int32) -> Int { Int(max(0, clinux_unread_bytes(descriptor))) }

    /// A connection that waits at a listening socket which doesn't block; nil when none does.
    public static func accept(_ listening: Int32) throws(SystemError) -> FileDescriptor? {
        do throws(SystemError) {
            return FileDescriptor(owning: try check("accept") { clinux_accept(listening) })
        } catch {
            // A peer that has gone again is none.
            if error.isWouldBlock || error.code == ECONNABORTED { return nil }
            throw error
        }
    }
}
