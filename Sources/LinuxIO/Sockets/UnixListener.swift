import CLinux
import Glibc

/// Who is at the other end of a Unix socket (`SO_PEERCRED`): the process that called `connect`, as the kernel saw it
/// then.
public struct PeerCredentials: Hashable, Sendable {
    public var uid: UInt32
    public var gid: UInt32
    /// 0 when that process lives in another pid namespace.
    public var pid: Int32

    /// nil when the descriptor is no connected Unix socket.
    public init?(of descriptor: Int32) {
        var (uid, gid, pid): (UInt32, UInt32, Int32) = (0, 0, 0)
        guard clinux_peer_credentials(descriptor, &uid, &gid, &pid) == 0 else { return nil }
        (self.uid, self.gid, self.pid) = (uid, gid, pid)
    }
}

/// Unix sockets by path.
public enum UnixSocket {
    /// Bytes that a path may have (`sun_path` less its final zero).
    public static let maximumPathBytes = 107

    /// What goes over a connection: bytes, or messages that stay whole.
    public enum Kind: Sendable {
        case stream, packets
    }

    /// A listening socket at that path, with that mode, and that group where it isn't nil.
    ///
    /// A socket left behind at the path is replaced: the caller holds a lock that says that nobody lives behind it. The
    /// path is there all the while (a missing one tells clients that its owner ended in order), and whoever finds the
    /// new one can connect. So it is bound beside its place first, which is what the kernel calls it for ever:
    /// ``localPath(of:)``.
    public static func listen(
        at path: String, _ kind: Kind = .stream, mode: UInt32, group: UInt32? = nil, backlog: Int32 = 128
    ) throws(SystemError) -> FileDescriptor {
        _ = try address(path)
        var status = stat()
        guard lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFSOCK else {
            throw SystemError(code: EEXIST, operation: "bind", subject: path)
        }
        // Not longer than the path itself, which may be as long as can be.
        let beside = String(path.dropLast()) + "~"
        var address = try address(beside)
        unlink(beside)
        let descriptor = FileDescriptor(owning: try check("socket", path) { openSocket(kind) })
        try check("bind", path) {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor.rawValue, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        do {
            // Nobody can connect before listen(), so the mode is in force before the first peer.
            try check("chmod", path) { chmod(beside, mode) }
            if let group { try check("chown", path) { chown(beside, uid_t.max, group) } }
            try check("listen", path) { Glibc.listen(descriptor.rawValue, backlog) }
            try check("rename", path) { rename(beside, path) }
        } catch {
            unlink(beside)
            throw error
        }
        return descriptor
    }

    /// True if somebody accepts connections at that path.
    public static func isLive(_ path: String) -> Bool {
        guard var address = try? address(path), let raw = try? check("socket", path, { openSocket(.stream) }) else {
            return false
        }
        let descriptor = FileDescriptor(owning: raw)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor.rawValue, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        // A full backlog (EAGAIN) is a sign of life too.
        return result == 0 || errno == EAGAIN
    }

    /// Who listens at that path: the process that called `listen`. nil when nobody accepts connections there.
    public static func listener(at path: String) -> PeerCredentials? {
        guard let descriptor = try? connect(to: path, .stream) else { return nil }
        return PeerCredentials(of: descriptor.rawValue)
    }

    /// Ends both directions of a connection, whoever owns the descriptor (`shutdown(2)`).
    public static func shutDown(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Another descriptor of the same socket, close-on-exec; nil when the descriptor is open no more.
    public static func duplicate(_ descriptor: Int32) -> FileDescriptor? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        return copy >= 0 ? FileDescriptor(owning: copy) : nil
    }

    /// The path that this end of a connected socket is bound to; nil if it is none.
    public static func localPath(of descriptor: Int32) -> String? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        return withUnsafeBytes(of: &address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// Connects to a listening socket; a full backlog is an error (`EAGAIN`).
    static func connect(to path: String, _ kind: Kind) throws(SystemError) -> FileDescriptor {
        var address = try address(path)
        let descriptor = FileDescriptor(owning: try check("socket", path) { openSocket(kind) })
        try check("connect", path) {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(descriptor.rawValue, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        return descriptor
    }

    private static func openSocket(_ kind: Kind) -> Int32 {
        let type = kind == .stream ? SOCK_STREAM : SOCK_SEQPACKET
        return socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    }

    private static func address(_ path: String) throws(SystemError) -> sockaddr_un {
        let bytes = Array(path.utf8)
        guard bytes.count <= maximumPathBytes, !bytes.contains(0) else {
            throw SystemError(code: ENAMETOOLONG, operation: "bind", subject: path)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return address
    }
}
