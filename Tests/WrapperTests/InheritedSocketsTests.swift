import CameraBusTesting
import Glibc
import LinuxIO
import Testing

/// Sockets as a service manager hands them on, here under numbers that nobody else has.
@Suite(.serialized) struct HandedOnSockets {
    /// Has the descriptor at a number far up, without close-on-exec and blocking, as a service manager does.
    ///
    /// - Returns: the number.
    private func hand(_ descriptor: consuming FileDescriptor) throws -> Int32 {
        let raw = descriptor.rawValue
        // Not where PollSetTests has its own.
        let place = Int32(min(CurrentProcess.raiseDescriptorLimit(), 8192)) - 1024
        let number = try check("fcntl") { fcntl(raw, F_DUPFD, place) }
        _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) & ~O_NONBLOCK)
        _ = descriptor.rawValue
        return number
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
        let folder = try TemporaryDirectory()
        // What it is bound to is what it is known by: a socket of our own has another name in front of its place.
        let path = "\(folder.path)/~"
        let first = try hand(try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600))
        try check("rename") { rename("\(folder.path)/s", path) }
        let sockets = InheritedSockets(environment(1), first: first)
        #expect(sockets.has(path))
        guard let handed = try sockets.take(path, mode: 0o660) else {
            Issue.record("it was not found")
            return
        }
        let raw = handed.rawValue
        #expect(fcntl(raw, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(raw, F_GETFL) & O_NONBLOCK != 0)
        #expect(UnixSocket.isLive(path))
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o660)
        #expect(!sockets.has(path))
        let isTwice = try isThere(sockets, path)
        #expect(!isTwice)
        _ = handed.rawValue
    }

    @Test func `one whose file has gone is not taken`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/~"
        let first = try hand(try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600))
        let sockets = InheritedSockets(environment(1), first: first)
        #expect(sockets.has(path))
        let isTaken = try isThere(sockets, path)
        #expect(!isTaken)
        #expect(fcntl(first, F_GETFD) == -1)
    }

    @Test func `what is no listening socket is closed, and what is for another process is left alone`() throws {
        let first = try hand(try FileDescriptor(opening: "/dev/null", O_RDONLY))
        let other = InheritedSockets(environment(1, pid: 1), first: first)
        #expect(!other.has("/dev/null"))
        #expect(fcntl(first, F_GETFD) != -1)
        let own = InheritedSockets(environment(1), first: first)
        #expect(!own.has("/dev/null"))
        #expect(fcntl(first, F_GETFD) == -1)
        #expect(!InheritedSockets(environment(1_000_000), first: first).has(""))
    }

    @Test func `what nobody takes is closed in the end`() throws {
        let folder = try TemporaryDirectory()
        let first = try hand(try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600))
        do { _ = InheritedSockets(environment(1), first: first) }
        #expect(fcntl(first, F_GETFD) == -1)

        let second = try hand(try UnixSocket.listen(at: "\(folder.path)/s", mode: 0o600))
        let sockets = InheritedSockets(environment(1), first: second)
        #expect(sockets.closeRest() == ["\(folder.path)/~"])
        #expect(fcntl(second, F_GETFD) == -1)
        #expect(sockets.closeRest().isEmpty)
    }
}
