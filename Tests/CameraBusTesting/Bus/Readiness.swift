import Glibc
import LinuxIO

/// Plays the service manager: hears when a service is ready (`NOTIFY_SOCKET`, sd_notify(3)).
final class Readiness: Sendable {
    let path: String
    private let socket: Int32

    init(_ directory: TemporaryDirectory) throws {
        path = "\(directory.path)/notify"
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw TestingError("socket: \(String(cString: strerror(errno)))") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw TestingError("bind \(path): \(String(cString: strerror(errno)))") }
    }

    deinit { close(socket) }

    /// Waits for `READY=1`; false when the process ends before, or the time is over.
    func wait(for process: ProcessDescriptor, by deadline: Deadline) async -> Bool {
        await withCheckedContinuation { continuation in
            let thread = try? NamedThread(name: "wait-for-ready") { [self] in
                continuation.resume(returning: hears("READY=1", from: process, by: deadline))
            }
            if thread == nil { continuation.resume(returning: false) }
        }
    }

    /// Lets go of what an earlier process has said.
    func forget() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT)) > 0 {}
    }

    private func hears(_ word: String, from process: ProcessDescriptor, by deadline: Deadline) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while waitUntilReadable(socket, orEnd: process.rawValue, by: deadline) {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            let lines = String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n")
            if lines.contains(Substring(word)) { return true }
        }
        return false
    }
}
