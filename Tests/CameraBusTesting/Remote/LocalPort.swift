public import Glibc
import LinuxIO

/// Ports of this machine, for servers that a test starts.
public enum LocalPort {
    /// One that nobody has, or the first of several in a row. The kernel gives these to nobody who doesn't name them:
    /// one that it did give may be another's by the time that it is used.
    public static func free(inARow count: Int = 1, _ type: __socket_type = SOCK_STREAM) throws -> Int {
        for _ in 0..<200 {
            let first = Int.random(in: 15_000..<32_768 - count)
            if (first..<first + count).allSatisfy({ isFree($0, type) }) { return first }
        }
        throw TestingError("there are no \(count) free ports in a row")
    }

    private static func isFree(_ port: Int, _ type: __socket_type) -> Bool {
        let socket = FileDescriptor(owning: Glibc.socket(AF_INET, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.rawValue, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        } == 0
    }

    /// Whether a server of TCP waits there for connections, as the kernel says: a connection to try it might be the
    /// only one that it takes.
    public static func isListening(_ port: Int) -> Bool {
        guard let table = try? File.read("/proc/net/tcp", limit: 16 << 20) else { return false }
        let digits = String(port, radix: 16, uppercase: true)
        let place = ":" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        return String(decoding: table, as: UTF8.self).split(separator: "\n").contains { line in
            let fields = line.split(separator: " ")
            return fields.count > 3 && fields[1].hasSuffix(place) && fields[3] == "0A"
        }
    }
}
