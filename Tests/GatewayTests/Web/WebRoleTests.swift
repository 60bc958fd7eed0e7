import BusProtocol
import BusServer
import CameraBusTesting
import Logging
import Testing

@testable import Gateway

/// What the bus is told of who has another role.
@Suite(.timeLimit(.minutes(5))) struct WebRoleTests {
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func remoteUser(_ role: Request.Principal.Role) -> RemoteUserList.Entry {
        RemoteUserList.Entry(role: role, key: String(repeating: "a", count: 40), name: "Ada")
    }

    @Test func `the role of now is told once what came late has come, by the next gateway if need be`() throws {
        let (scratch, loop) = (try TemporaryDirectory(), try Loop())
        var reading = RemoteUserStore.Reading(remoteUsers: [remoteUser(.control)], isWhole: true)
        var revoked: [() -> Void] = []
        var changed: [(remoteUser: RemoteUserList.Entry, told: () -> Void)] = []
        func store() -> RemoteUserStore {
            let store = RemoteUserStore(
                loop, of: "token", path: nil, keptPath: "\(scratch.path)/kept", afterthought: 1, logger: logger,
                source: { reading }, tell: { _, told in revoked.append(told) },
                change: { changed.append((remoteUser: $0, told: $1)) })
            store.read()
            return store
        }
        let first = store()
        reading.remoteUsers = [remoteUser(.view)]
        first.read()
        #expect(revoked.count == 1 && changed.isEmpty)
        revoked[0]()
        #expect(try loop.run { changed.count == 1 })
        #expect(changed[0].remoteUser == remoteUser(.view) && revoked.count == 1)
        // Until that is answered, too, it isn't done with.
        withExtendedLifetime(store()) {}
        #expect(revoked.count == 2)
        changed[0].told()
        withExtendedLifetime(store()) {}
        #expect(revoked.count == 2)
        withExtendedLifetime(first) {}
    }

    @Test func `the bus hears of the present role, also by what waited for it`() throws {
        let bus = try BusEnd()
        let departures = try DepartureReporter(bus.place, logger: logger)
        let view = Request.Principal(name: "web/Ada", role: .view)
        var told = 0
        // A bus that isn't there has nothing to be told.
        departures.changed(view) { told += 1 }
        #expect(told == 1)
        var role = Request.Principal.Role.control
        departures.left("web/Bo") { Request.Principal(name: "web/Bo", role: role) }
        role = .nobody
        try bus.open()
        #expect(try bus.loop.run { !bus.requests("bus.leave").isEmpty })
        let left = bus.requests("bus.leave").map { $0.request.onBehalfOf }
        #expect(left == [Request.Principal(name: "web/Bo", role: .nobody)])
        departures.changed(view) { told += 1 }
        #expect(try bus.loop.run { !bus.requests("bus.ping").isEmpty })
        let ping = try #require(bus.requests("bus.ping").first)
        #expect(ping.request.onBehalfOf == view && told == 1)
        bus.answer(ping)
        #expect(try bus.loop.run { told == 2 })
    }
}
