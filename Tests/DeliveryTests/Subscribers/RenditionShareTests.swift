import Testing

@testable import Delivery

@Suite("How renditions are divided")
struct RenditionShareTests {
    private func shares(_ total: Int) -> RenditionShares {
        var shares = RenditionShares(total: total)
        shares.standing = { uid in
            switch uid {
            case 0: .administrator
            case 1: .bus
            case 2: .gateway
            default: .user
            }
        }
        return shares
    }

    private func client(_ uid: UInt32, _ connection: Int32) -> RenditionClient {
        RenditionClient(.subscriber(connection), uid: uid)
    }

    /// Clients that ask one after the other, each for as many as it gets.
    private func fill(_ total: Int, _ clients: [RenditionClient]) -> [Int] {
        let shares = shares(total)
        var taken: [RenditionClient] = []
        return clients.map { client in
            var count = 0
            while shares.obstacle(to: client, taken: taken) == nil {
                taken.append(client)
                count += 1
            }
            return count
        }
    }

    @Test("one connection gets half, and one user over many connections no more")
    func user() {
        #expect(fill(8, [client(1000, 1)]) == [4])
        #expect(fill(8, [client(1000, 1), client(1000, 2)]) == [4, 0])
    }

    @Test("other users and administrators get theirs when one has taken his share")
    func others() {
        #expect(fill(8, [client(1000, 1), client(1001, 2), client(1002, 3), client(0, 4)]) == [4, 2, 0, 2])
        #expect(fill(8, [client(0, 1), client(0, 2), client(1000, 3)]) == [4, 4, 0])
    }

    @Test("who works for others gets more")
    func services() {
        #expect(fill(8, [client(1, 1), client(1, 2), client(1, 3), client(0, 4)]) == [4, 2, 0, 2])
        #expect(fill(8, [client(2, 1), client(0, 2)]) == [6, 2])
    }

    @Test("with few places each gets one at least", arguments: [1, 2, 3, 4])
    func few(_ total: Int) {
        #expect(fill(total, [client(1000, 1)]) == [(total + 1) / 2])
        #expect(fill(total, [client(0, 1)]) == [(total + 1) / 2])
    }
}
