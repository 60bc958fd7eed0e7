import Glibc

/// A TCP connection to another machine, of which nothing is waited for beyond a deadline. Used by one thread at a time.
public final class InternetConnection: Sendable {
    /// Why there is none.
    public enum Failure: Error, Hashable, Sendable {
        /// No address belongs to the name; the resolver's words.
        case noAddress(String)
        /// `ECONNREFUSED`, `ETIMEDOUT` and others.
        case system(SystemError)
    }

    private let owner: FileDescriptor

    /// Connects to the first of the host's addresses that takes connections.
    ///
    /// - Parameters:
    ///   - host: a name, or an address without brackets. Names are asked for by the system's resolver, which has time
    ///     limits of its own.
    ///   - deadline: monotonic nanoseconds.
    public init(host: String, port: Int, by deadline: Int64) throws(Failure) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        guard code == 0 else { throw .noAddress(String(cString: gai_strerror(code))) }
        defer { freeaddrinfo(found) }
        var failure = SystemError(code: EHOSTUNREACH, operation: "connect", subject: host)
        var next = found
        while let address = next?.pointee {
            switch Self.connect(address, host, by: deadline) {
            case .success(let descriptor):
                owner = descriptor
                return
            case .failure(let error): failure = error
            }
            next = address.ai_next
        }
        throw .system(failure)
    }

    private static func connect(
        _ address: addrinfo, _ host: String, by deadline: Int64
    ) -> Result<FileDescriptor, SystemError> {
        func failure(_ code: Int32) -> Result<FileDescriptor, SystemError> {
            .failure(SystemError(code: code, operation: "connect", subject: host))
        }
        let flags = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.ai_family, flags, 0)
        guard descriptor >= 0 else { return failure(errno) }
        let owner = FileDescriptor(owning: descriptor)
        if Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 { return .success(owner) }
        guard errno == EINPROGRESS else { return failure(errno) }
        guard wait(descriptor, POLLOUT, until: deadline) else { return failure(ETIMEDOUT) }
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return failure(errno) }
        return code == 0 ? .success(owner) : failure(code)
    }

    /// Sends what is short enough to lie in the kernel at once.
    ///
    /// - Returns: false: the connection has ended, or more lies there already.
    public func send(_ bytes: [UInt8]) -> Bool {
        Glibc.send(owner.rawValue, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// So many bytes, or as many as come before the connection ends or the deadline (monotonic nanoseconds) is over.
    ///
    /// - Returns: the bytes, and whether the other end has ended the connection.
    public func receive(_ count: Int, by deadline: Int64) -> (bytes: [UInt8], hasEnded: Bool) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            let read = recv(owner.rawValue, &buffer, count - bytes.count, 0)
            if read > 0 {
                bytes += buffer[..<read]
            } else if read < 0, errno == EINTR {
                continue
            } else if read < 0, errno == EAGAIN {
                guard Self.wait(owner.rawValue, POLLIN, until: deadline) else { return (bytes, false) }
            } else {
                return (bytes, true)
            }
        }
        return (bytes, false)
    }

    private static func wait(_ descriptor: Int32, _ event: Int32, until deadline: Int64) -> Bool {
        while true {
            let left = deadline - MonotonicClock.now()
            guard left > 0 else { return false }
            var item = pollfd(fd: descriptor, events: Int16(event), revents: 0)
            let count = poll(&item, 1, Int32(clamping: left / 1_000_000 + 1))
            if count > 0 { return true }
            if count < 0, errno != EINTR { return false }
        }
    }
}
