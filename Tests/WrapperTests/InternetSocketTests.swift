import Glibc
import LinuxIO
import Testing

/// Connections of this machine.
@Suite struct InternetSocketTests {
    @Test func `it is known whose the other end is`() throws {
        func made() throws -> FileDescriptor {
            FileDescriptor(owning: try #require([socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)].first { $0 >= 0 }))
        }
        let listener = try made()
        let client = try made()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener.rawValue, address, length) == 0 && listen(listener.rawValue, 1) == 0
                    && getsockname(listener.rawValue, address, &length) == 0
                    && connect(client.rawValue, address, length) == 0
            }
        }
        #expect(result)
        let server = FileDescriptor(owning: accept(listener.rawValue, nil, nil))
        #expect(InternetSocket.peerUser(of: server.rawValue) == geteuid())
        #expect(InternetSocket.peerUser(of: client.rawValue) == geteuid())
        #expect(InternetSocket.peerAddress(of: server.rawValue) == "127.0.0.1")
        #expect(InternetSocket.peerUser(of: listener.rawValue) == nil)
    }
}
