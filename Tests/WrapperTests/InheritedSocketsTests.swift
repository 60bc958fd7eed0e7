import Glibc
import LinuxIO
import Testing

/// Sockets as a service manager hands them on, here under numbers that nobody else has.
@Suite struct HandedOnSockets {
    private static let first: Int32 = 200

    /// Puts the descriptor at the next of the numbers, without close-on-exec and blocking, as a service manager does.
    private func hand(_ descriptor: consuming FileDescriptor, at number: Int32) throws {
        let raw = descriptor.rawValue
        try check("dup2") { dup2(raw, number) }
        _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) & ~O_NONBLOCK)
        _ = descriptor.rawValue
    }

    private func isThere(_ sockets: InheritedSockets, _ path: String) throws -> Bool {
        if let descriptor = try sockets.take(path, mode: 0o600) {
            _ = descriptor.rawValue
            return true
        }
        return false
    }

    private func environment(_ count: Int, pid: Int32 = CurrentProcess.pid) -> [String: String] {
        ["LISTEN_PID": "\(pid)", "LISTEN_FDS": "\(count)", "LISTEN_FDNAMES": "a:b"]
    }

    @Test func `a listening socket is found by its path, once, and accepts`() throws {
        let folder = TemporaryFolder()
        // What it is bound to is what it is known by: a socket of our own has another name in front of its place.
        let path = "\(folder.path)/~"
        do {
            let listener = try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600)
            try check("rename") { rename("\(folder.path)/s", path) }
            try hand(listener, at: Self.first)
        }
        let sockets = InheritedSockets(environment(1), first: Self.first)
        #expect(sockets.has(path))
        guard let handed = try sockets.take(path, mode: 0o660) else {
            Issue.record("it was not found")
            return
        }
        #expect(fcntl(handed.rawValue, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(handed.rawValue, F_GETFL) & O_NONBLOCK != 0)
        #expect(UnixSocket.isLive(path))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o660)
        #expect(!sockets.has(path))
        let isTwice = try isThere(sockets, path)
        #expect(!isTwice)
        _ = handed.rawValue
    }

    @Test func `one whose file has gone is not taken`() throws {
        let folder = TemporaryFolder()
        let path = "\(folder.path)/~"
        do { try hand(try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600), at: Self.first + 1) }
        let sockets = InheritedSockets(environment(1), first: Self.first + 1)
        #expect(sockets.has(path))
        let isTaken = try isThere(sockets, path)
        #expect(!isTaken)
        #expect(fcntl(Self.first + 1, F_GETFD) == -1)
    }

    @Test func `what is no listening socket is closed, and what is for another process is left alone`() throws {
        try hand(try FileDescriptor(opening: "/dev/null", O_RDONLY), at: Self.first + 2)
        let other = InheritedSockets(environment(1, pid: 1), first: Self.first + 2)
        #expect(!other.has("/dev/null"))
        #expect(fcntl(Self.first + 2, F_GETFD) != -1)
        let own = InheritedSockets(environment(1), first: Self.first + 2)
        #expect(!own.has("/dev/null"))
        #expect(fcntl(Self.first + 2, F_GETFD) == -1)
        #expect(!InheritedSockets(environment(1_000_000), first: Self.first + 2).has(""))
    }

    @Test func `what nobody takes is closed in the end`() throws {
        let folder = TemporaryFolder()
        do { try hand(try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600), at: Self.first + 3) }
        do { _ = InheritedSockets(environment(1), first: Self.first + 3) }
        #expect(fcntl(Self.first + 3, F_GETFD) == -1)
    }
}
