import CLinux
import Glibc

/// Both ends of a TCP connection, IPv4 or IPv6.
public enum InternetSocket {
    /// The port at this end; nil for what is no such connection.
    public static func localPort(of descriptor: Int32) -> Int? { end(of: descriptor, isPeer: false)?.port }

    /// The address at the other end, without its port: to tell machines apart, and for people; nil for what is no such
    /// connection.
    public static func peerAddress(of descriptor: Int32) -> String? { end(of: descriptor, isPeer: true)?.host }

    // Established, and closed by the other end for writing only (FIN_WAIT1, FIN_WAIT2).
    private static let openStates: [Int32] = [1, 4, 5]

    /// The uid of who has the other end, where that is on this machine, in this network namespace; nil where it is not,
    /// or has gone. The kernel looks that one socket up, however many there are.
    public static func peerUser(of descriptor: Int32) -> UInt32? {
        guard let peer = end(of: descriptor, isPeer: true), let own = end(of: descriptor, isPeer: false) else {
            return nil
        }
        var (state, user, inode): (Int32, UInt32, UInt32) = (0, 0, 0)
        let family = peer.bytes.count == 4 ? AF_INET : AF_INET6
        let result = clinux_tcp_socket(
            family, peer.bytes, UInt16(peer.port), own.bytes, UInt16(own.port), &state, &user, &inode)
        // One that its process has closed already stands there as root's, without an inode.
        guard result == 0, openStates.contains(state), inode != 0 else { return nil }
        return user
    }

    /// Whether a text is an address: of IPv6 in brackets, of IPv4 with dots.
    public static func isAddress(_ text: String) -> Bool {
        var address = in6_addr()
        guard text.hasPrefix("["), text.hasSuffix("]") else { return inet_pton(AF_INET, text, &address) == 1 }
        // Behind % stands the interface of one that is the link's alone.
        let plain = text.dropFirst().dropLast().prefix { $0 != "%" }
        return inet_pton(AF_INET6, String(plain), &address) == 1
    }

    private static func end(of descriptor: Int32, isPeer: Bool) -> (host: String, port: Int, bytes: [UInt8])? {
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
        return withUnsafeBytes(of: &storage) { bytes -> (host: String, port: Int, bytes: [UInt8])? in
            let port = Int(bytes[2]) << 8 | Int(bytes[3])
            switch family {
            case AF_INET: return (bytes[4..<8].map { "\($0)" }.joined(separator: "."), port, Array(bytes[4..<8]))
            case AF_INET6:
                let words = stride(from: 8, to: 24, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
                return (words.map { String($0, radix: 16) }.joined(separator: ":"), port, Array(bytes[8..<24]))
            default: return nil
            }
        }
    }
}
