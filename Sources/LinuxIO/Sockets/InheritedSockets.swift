import Glibc

/// Listening Unix sockets that a service manager has made and handed on (`sd_listen_fds(3)`): who connects before the
/// service runs starts it, and waits meanwhile. Each is known by the path that it is bound to. What nobody takes is
/// closed when this ends.
///
/// Made once, before there is a second thread: the variables that tell of the sockets are taken out of the environment,
/// so that no child believes them to be its own.
public final class InheritedSockets {
    /// Those that were not taken yet, by path.
    private var descriptors: [String: Int32] = [:]

    /// No sockets.
    public init() {}

    /// Takes what was handed on to this process; nothing, if nobody did so.
    ///
    /// - Parameter first: the first descriptor, which is 3 (`SD_LISTEN_FDS_START`) except in tests.
    public init(_ environment: [String: String], first: Int32 = 3) {
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == getpid(),
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), (1...64).contains(count)
        else { return }
        for descriptor in first..<(first + count) { adopt(descriptor) }
    }

    /// The standard input, if it is a listening socket (as of `inetd(8)`); it stays open.
    ///
    /// - Parameter path: where peers connect. The kernel may know the socket by another name
    ///   (``UnixSocket/listen(at:_:mode:group:backlog:)``).
    public init(standardInputAt path: String) {
        guard Self.isListeningStream(0), let copy = UnixSocket.duplicate(0) else { return }
        descriptors[path] = copy.release()
    }

    deinit { _ = closeRest() }

    /// Whether a socket for that path was handed on and not taken yet.
    public func has(_ path: String) -> Bool { descriptors[path] != nil }

    /// The listening socket of that path, close-on-exec and non-blocking, with that mode, and that group where it isn't
    /// nil. nil if none was handed on, or its file is gone: then nobody could connect to it.
    ///
    /// - Throws: when mode or group can't be given to it.
    public func take(
        _ path: String, mode: UInt32, group: UInt32? = nil
    ) throws(SystemError) -> FileDescriptor? {
        guard let raw = descriptors.removeValue(forKey: path) else { return nil }
        let descriptor = FileDescriptor(owning: raw)
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        // The manager's own settings have them right, as a rule; then there is nothing that one might not be allowed to
        // do.
        if let group, status.st_gid != group { try check("chown", path) { chown(path, uid_t.max, group) } }
        if status.st_mode & 0o777 != mode { try check("chmod", path) { chmod(path, mode) } }
        return descriptor
    }

    /// Closes those that nobody took: else who connects to them waits for ever.
    ///
    /// - Returns: their paths.
    public func closeRest() -> [String] {
        defer { descriptors = [:] }
        for descriptor in descriptors.values { _ = close(descriptor) }
        return descriptors.keys.sorted()
    }

    private func adopt(_ descriptor: Int32) {
        let flags = fcntl(descriptor, F_GETFL)
        // There is no such descriptor.
        guard flags >= 0 else { return }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        // libzmq accepts as long as somebody waits: a peer that has gone meanwhile must not have it wait for the next.
        _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
        guard Self.isListeningStream(descriptor), let path = UnixSocket.localPath(of: descriptor), !path.isEmpty,
            descriptors[path] == nil
        else {
            _ = close(descriptor)
            return
        }
        descriptors[path] = descriptor
    }

    private static func isListeningStream(_ descriptor: Int32) -> Bool {
        option(SO_ACCEPTCONN, of: descriptor) == 1 && option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
