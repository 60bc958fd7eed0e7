import CameraBusTesting
import Glibc
import LinuxIO

/// A peer that speaks ZMTP 3.0 byte by byte, so that it can say what libzmq's own sockets never would.
final class RawSubscriber {
    private let descriptor: FileDescriptor

    init(_ path: String) throws {
        descriptor = FileDescriptor(
            owning: try check("socket") { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) })
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        try check("connect", path) {
            withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor.rawValue, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        // The greeting: signature, version 3.0, mechanism NULL, no server.
        try write([0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 0])
        try write(Array("NULL".utf8) + [UInt8](repeating: 0, count: 16 + 32))
        let ready: [UInt8] =
            [5] + Array("READY".utf8) + [11] + Array("Socket-Type".utf8) + [0, 0, 0, 3] + Array("SUB".utf8)
        try write([4, UInt8(ready.count)] + ready)
        // The server's greeting, and the head of its READY: from then on it takes messages.
        try read(64 + 2)
    }

    func send(_ message: [UInt8]) throws { try write([0, UInt8(message.count)] + message) }

    private func write(_ bytes: [UInt8]) throws {
        let count = try check("write") { Glibc.write(descriptor.rawValue, bytes, bytes.count) }
        guard count == bytes.count else { throw TimedOut(what: "room to write") }
    }

    private func read(_ count: Int) throws {
        var buffer = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let part = try check("read") { Glibc.read(descriptor.rawValue, &buffer, count - done) }
            guard part > 0 else { throw TimedOut(what: "the handshake") }
            done += part
        }
    }
}
