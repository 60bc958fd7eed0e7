public import Glibc
import LinuxIO

/// Ports of this machine, for servers that a test starts.
public enum LocalPort {
    /// One that nobody has.
    public static func free(_ type: __socket_type = SOCK_STREAM) throws -> Int {
        let socket = FileDescriptor(owning: Glibc.socket(AF_INET, Int32(type.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.rawValue, $0, length) | getsockname(socket.rawValue, $0, &length)
            }
        }
        guard result == 0 else { throw TestingError("no port") }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    /// The first of several in a row that nobody has. The kernel gives these to nobody who doesn't name them: of three that it did give one may be
    /// another's by the time that it is used.
    public static func free(inARow count: Int) throws -> Int {
        for _ in 0..<200 {
            let first = Int.random(in: 15_000..<32_768 - count)
            if (first..<first + count).allSatisfy(isFree) { return first }
        }
        throw TestingError("there are no \(count) free ports in a row")
    }

    private static func isFree(_ port: Int) -> Bool {
        let socket = FileDescriptor(owning: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket.rawValue, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        } == 0
    }

    /// Whether a server of TCP waits there for connections, as the kernel says: a connection to try it might be the only one that it takes.
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
