import Glibc

/// Both ends of a TCP connection, IPv4 or IPv6.
public enum InternetSocket {
    /// The port at this end; nil for what is no such connection.
    public static func localPort(of descriptor: Int32) -> Int? { end(of: descriptor, isPeer: false)?.port }

    /// The address at the other end, without its port: to tell machines apart, and for people; nil for what is no such connection.
    public static func peerAddress(of descriptor: Int32) -> String? { end(of: descriptor, isPeer: true)?.host }

    private static func end(of descriptor: Int32, isPeer: Bool) -> (host: String, port: Int)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                isPeer ? getpeername(descriptor, address, &length) : getsockname(descriptor, address, &length)
            }
        }
        guard result == 0 else { return nil }
        let family = Int32(storage.ss_family)
        // Both have the port behind the family; an IPv4 address follows it, and one of IPv6 four bytes later.
        return withUnsafeBytes(of: &storage) { bytes -> (host: String, port: Int)? in
            let port = Int(bytes[2]) << 8 | Int(bytes[3])
            switch family {
            case AF_INET: return (bytes[4..<8].map { "\($0)" }.joined(separator: "."), port)
            case AF_INET6:
                let words = stride(from: 8, to: 24, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
                return (words.map { String($0, radix: 16) }.joined(separator: ":"), port)
            default: return nil
            }
        }
    }
}
