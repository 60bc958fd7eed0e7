import Glibc

/// Both ends of a TCP connection, IPv4 or IPv6.
public enum InternetSocket {
    /// The port at this end; nil for what is no such connection.
    public static func localPort(of descriptor: Int32) -> Int? { end(of: descriptor, isPeer: false)?.port }

    /// The address at the other end, without its port: to tell machines apart, and for people; nil for what is no such
    /// connection.
    public static func peerAddress(of descriptor: Int32) -> String? { end(of: descriptor, isPeer: true)?.host }

    // Established, and closed by the other end for writing only (FIN_WAIT1, FIN_WAIT2).
    private static let openStates = ["01", "04", "05"]

    /// The uid of who has the other end, where that is on this machine, in this network namespace (`/proc/net/tcp`);
    /// nil where it is not, or has gone.
    public static func peerUser(of descriptor: Int32) -> UInt32? {
        guard let peer = kernelNames(of: descriptor, isPeer: true),
            let own = kernelNames(of: descriptor, isPeer: false)
        else { return nil }
        for (file, (theirs, ours)) in zip(["tcp", "tcp6"], zip(peer, own)) {
            guard let theirs, let ours, let bytes = try? File.read("/proc/self/net/\(file)", limit: 64 << 20) else {
                continue
            }
            for line in bytes.split(separator: UInt8(ascii: "\n")) {
                let fields = line.split(separator: UInt8(ascii: " "))
                // Its number, both ends, and in the eighth place whose it is.
                guard fields.count > 9, fields[1].elementsEqual(theirs.utf8), fields[2].elementsEqual(ours.utf8) else {
                    continue
                }
                // One that its process has closed already stands there as root's: without an inode in the tenth place.
                let isOpen = openStates.contains { fields[3].elementsEqual($0.utf8) }
                guard isOpen, !fields[9].elementsEqual("0".utf8) else { return nil }
                return UInt32(String(decoding: fields[7], as: UTF8.self))
            }
        }
        return nil
    }

    /// Whether a text is an address: of IPv6 in brackets, of IPv4 with dots.
    public static func isAddress(_ text: String) -> Bool {
        var address = in6_addr()
        guard text.hasPrefix("["), text.hasSuffix("]") else { return inet_pton(AF_INET, text, &address) == 1 }
        // Behind % stands the interface of one that is the link's alone.
        let plain = text.dropFirst().dropLast().prefix { $0 != "%" }
        return inet_pton(AF_INET6, String(plain), &address) == 1
    }

    // As the kernel's tables of IPv4 and of IPv6 call an end: the address in words of the machine's own order. An
    // address of IPv4 may be in both, as sockets of IPv6 are used for it, too.
    private static func kernelNames(of descriptor: Int32, isPeer: Bool) -> [String?]? {
        guard let end = end(of: descriptor, isPeer: isPeer) else { return nil }
        func hexadecimal(_ value: UInt32, _ digits: Int) -> String {
            let text = String(value, radix: 16, uppercase: true)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        let words = stride(from: 0, to: end.bytes.count, by: 4).map { start in
            hexadecimal(end.bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: UInt32.self) }, 8)
        }
        let port = hexadecimal(UInt32(end.port), 4)
        let mapped = "0000000000000000" + hexadecimal(UInt32(0xFFFF).bigEndian, 8)
        guard words.count == 4 else { return ["\(words.joined()):\(port)", "\(mapped)\(words.joined()):\(port)"] }
        let isMapped = words.joined().hasPrefix(mapped)
        return [isMapped ? "\(words[3]):\(port)" : nil, "\(words.joined()):\(port)"]
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
