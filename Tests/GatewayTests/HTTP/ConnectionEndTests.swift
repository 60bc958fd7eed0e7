import Glibc
import LinuxIO
import Testing

@testable import Gateway

/// The end of connections, which others bring about, too.
@Suite struct ConnectionEndTests {
    private func pair() throws -> (mine: Int32, other: Int32) {
        var ends: [Int32] = [-1, -1]
        try check("socketpair") {
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends)
        }
        return (ends[0], ends[1])
    }

    /// The descriptor again, under a number from that on.
    private func copy(_ descriptor: Int32, from place: Int32) throws -> Int32 {
        try check("fcntl") { fcntl(descriptor, F_DUPFD_CLOEXEC, place) }
    }

    @Test func `what is closed already is not shut down any more, whosever its number is now`() throws {
        let (first, second) = (try pair(), try pair())
        // Where nobody else of this process has any.
        let number = try copy(first.mine, from: 900)
        let end = ConnectionEnd(number)
        var closings = 0
        for _ in 0..<2 {
            end.close {
                closings += 1
                _ = close(number)
            }
        }
        let next = try copy(second.mine, from: 900)
        try #require(next == number && closings == 1)
        end.shutDown()
        end.finish()
        #expect(!end.isShutDown)
        var byte: UInt8 = 7
        let (written, found) = (write(next, &byte, 1), read(second.other, &byte, 1))
        #expect(written == 1 && found == 1)
        for descriptor in [next, first.mine, first.other, second.mine, second.other] { _ = close(descriptor) }
    }

    @Test func `the other end is told that it has ended`() throws {
        let (mine, other) = try pair()
        let end = ConnectionEnd(mine)
        #expect(!end.isShutDown)
        end.shutDown()
        var byte: UInt8 = 0
        let found = read(other, &byte, 1)
        #expect(end.isShutDown && found == 0)
        end.close { _ = close(mine) }
        #expect(end.isShutDown)
        _ = close(other)
    }
}
