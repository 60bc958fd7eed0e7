import BusProtocol
import Glibc
import LinuxIO

/// A gateway beside a bus that serves the page on a port of this machine, and curl to ask it.
public final class WebGateway {
    public let port: Int
    public let program: RunningProgram
    private let bus: BusHarness

    /// Starts it, and returns when it listens.
    ///
    /// - Parameters:
    ///   - settings: further lines of `[web]`.
    ///   - user: whom it runs as; nil: this process's.
    public init(_ bus: BusHarness, settings: String = "", as user: OtherUser? = nil) async throws {
        self.bus = bus
        let port = try LocalPort.free()
        self.port = port
        let configuration = try bus.write(
            "[web]\nlisten = \"127.0.0.1:\(port)\"\n\(settings)\n", to: "gateway.toml")
        let state = "\(bus.scratchPath)/gateway"
        mkdir(state, 0o700)
        let arguments = ["--config", configuration, "--runtime-dir", bus.directory.path]
        if let user {
            // What it reads lies where others pass through.
            chmod(bus.scratchPath, 0o711)
            chmod(configuration, 0o644)
            chown(state, user.uid, user.gid)
            program = try bus.start(
                "camerabus-gateway", arguments, as: user, environment: ["STATE_DIRECTORY": state])
        } else {
            program = try bus.start("camerabus-gateway", arguments, environment: ["STATE_DIRECTORY": state])
        }
        try await eventually { LocalPort.isListening(port) }
    }

    /// The status and what was answered; of a request that was not answered 0.
    public func get(_ path: String, _ options: [String] = []) async throws -> (status: Int, body: [UInt8], head: String)
    {
        let head = "\(bus.scratchPath)/head-\(hexadecimal(randomBytes(4)))"
        let result = try await bus.run(
            "curl",
            ["-s", "--path-as-is", "-m", "20", "-D", head] + options + ["http://127.0.0.1:\(port)\(path)"])
        let text = String(decoding: (try? File.read(head, limit: 1 << 20)) ?? [], as: UTF8.self)
        let status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return (status, result.standardOutputBytes, text)
    }

    /// A connection that says what a test tells it to, and reads when that says so.
    ///
    /// - Parameter receiveBuffer: bytes that the kernel takes for it; nil: as many as it likes.
    public func connect(receiveBuffer: Int32? = nil) throws -> RawConnection {
        try RawConnection(port: port, receiveBuffer: receiveBuffer)
    }

    /// Bytes of memory that it has in use now.
    public var residentBytes: Int { Int(ProcessUsage.residentBytes(of: program.process.pid) ?? 0) }
}

/// A connection of bytes to a port of this machine, or to a Unix socket.
public final class RawConnection {
    private let descriptor: FileDescriptor

    public init(port: Int, receiveBuffer: Int32? = nil) throws {
        let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard raw >= 0 else { throw TestingError("there is no socket") }
        descriptor = FileDescriptor(owning: raw)
        if var receiveBuffer {
            setsockopt(raw, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw TestingError("nobody listens on port \(port)") }
    }

    /// - Returns: false: the other end takes nothing any more.
    /// To a Unix socket.
    public init(path: String) throws {
        let raw = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard raw >= 0 else { throw TestingError("there is no socket") }
        descriptor = FileDescriptor(owning: raw)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw TestingError("nobody listens at \(path)") }
    }

    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool {
        Glibc.send(descriptor.rawValue, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    @discardableResult
    public func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends what the kernel takes now, without waiting.
    ///
    /// - Returns: how many bytes that are.
    public func send(atOnce bytes: ArraySlice<UInt8>) -> Int {
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        return bytes.withUnsafeBytes {
            max(0, Glibc.send(descriptor.rawValue, $0.baseAddress, $0.count, flags))
        }
    }

    /// Says that nothing more comes.
    public func finish() { shutdown(descriptor.rawValue, Int32(SHUT_WR)) }

    /// What comes next, at most so many bytes; empty: the end, or nothing for long.
    public func receive(atMost count: Int = 65536) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let found = recv(descriptor.rawValue, &buffer, count, 0)
        return found > 0 ? Array(buffer[..<found]) : []
    }

    /// Exactly so many bytes; fewer: that was the end.
    public func receive(exactly count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = receive(atMost: count - bytes.count)
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }

    /// All up to and with an empty line.
    public func receiveHead() -> String {
        var bytes: [UInt8] = []
        while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
            let more = receive(atMost: 1)
            if more.isEmpty { break }
            bytes += more
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
