import Glibc
import LinuxIO
import Testing

/// Connections of this machine.
@Suite struct InternetSocketTests {
    /// A connection from IPv4 to IPv4, to a socket of IPv6 that takes both, and from IPv6 to IPv6.
    @Test(arguments: [(AF_INET, AF_INET), (AF_INET6, AF_INET), (AF_INET6, AF_INET6)])
    func `it is known whose the other end is, as long as somebody has it`(server: Int32, client: Int32) throws {
        let listener = FileDescriptor(owning: socket(server, Int32(SOCK_STREAM.rawValue), 0))
        var isOnlyIPv6: Int32 = 0
        if server == AF_INET6 {
            let length = socklen_t(MemoryLayout<Int32>.size)
            setsockopt(listener.rawValue, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &isOnlyIPv6, length)
        }
        let isListening =
            Self.withAddress(server, 0, isAny: true) { bind(listener.rawValue, $0, $1) } == 0
            && listen(listener.rawValue, 1) == 0
        // A machine may have no IPv6.
        guard isListening else {
            #expect(server == AF_INET6)
            return
        }
        let port = try #require(InternetSocket.localPort(of: listener.rawValue))
        #expect(InternetSocket.peerUser(of: listener.rawValue) == nil)
        let near = socket(client, Int32(SOCK_STREAM.rawValue), 0)
        #expect(Self.withAddress(client, port) { connect(near, $0, $1) } == 0)
        let far = FileDescriptor(owning: accept(listener.rawValue, nil, nil))
        #expect(InternetSocket.peerUser(of: far.rawValue) == geteuid())
        #expect(InternetSocket.peerUser(of: near) == geteuid())
        if server == AF_INET { #expect(InternetSocket.peerAddress(of: far.rawValue) == "127.0.0.1") }
        // It says nothing more, and still waits for the answer.
        shutdown(near, Int32(SHUT_WR))
        #expect(InternetSocket.peerUser(of: far.rawValue) == geteuid())
        close(near)
        #expect(InternetSocket.peerUser(of: far.rawValue) == nil)
    }

    /// The loopback address, or all of them.
    private static func withAddress(
        _ family: Int32, _ port: Int, isAny: Bool = false,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var storage = sockaddr_storage()
        return withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.storeBytes(of: sa_family_t(family), as: sa_family_t.self)
            bytes.storeBytes(of: UInt16(port).bigEndian, toByteOffset: 2, as: UInt16.self)
            if !isAny {
                if family == AF_INET {
                    bytes.storeBytes(of: UInt32(0x7F00_0001).bigEndian, toByteOffset: 4, as: UInt32.self)
                } else {
                    bytes[23] = 1
                }
            }
            let size = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
            return body(bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(size))
        }
    }
}
