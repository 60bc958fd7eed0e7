import BusProtocol
import BusServer
import CameraBusTesting
import Logging
import Testing

@testable import Gateway

/// What the bus is told of who has another role.
@Suite(.timeLimit(.minutes(5))) struct WebRoleTests {
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func guest(_ role: Request.Principal.Role) -> GuestList.Entry {
        GuestList.Entry(role: role, key: String(repeating: "a", count: 40), name: "Ada")
    }

    @Test func `the role of now is told once what came late has come, by the next gateway if need be`() throws {
        let (scratch, loop) = (try TemporaryDirectory(), try Loop())
        var reading = GuestBook.Reading(guests: [guest(.control)], isWhole: true)
        var revoked: [() -> Void] = []
        var changed: [(guest: GuestList.Entry, told: () -> Void)] = []
        func book() -> GuestBook {
            let book = GuestBook(
                loop, of: "token", path: nil, keptPath: "\(scratch.path)/kept", afterthought: 1, logger: logger,
                source: { reading }, tell: { _, told in revoked.append(told) },
                change: { changed.append((guest: $0, told: $1)) })
            book.read()
            return book
        }
        let first = book()
        reading.guests = [guest(.view)]
        first.read()
        #expect(revoked.count == 1 && changed.isEmpty)
        revoked[0]()
        #expect(try loop.run { changed.count == 1 })
        #expect(changed[0].guest == guest(.view) && revoked.count == 1)
        // Until that is answered, too, it isn't done with.
        withExtendedLifetime(book()) {}
        #expect(revoked.count == 2)
        changed[0].told()
        withExtendedLifetime(book()) {}
        #expect(revoked.count == 2)
        withExtendedLifetime(first) {}
    }

    @Test func `the bus hears of the present role, also by what waited for it`() throws {
        let bus = try BusEnd()
        let herald = try Herald(bus.place, logger: logger)
        let view = Request.Principal(name: "web/Ada", role: .view)
        var told = 0
        // A bus that isn't there has nothing to be told.
        herald.changed(view) { told += 1 }
        #expect(told == 1)
        var role = Request.Principal.Role.control
        herald.left("web/Bo") { Request.Principal(name: "web/Bo", role: role) }
        role = .nobody
        try bus.open()
        #expect(try bus.loop.run { !bus.requests("bus.leave").isEmpty })
        let left = bus.requests("bus.leave").map { $0.request.onBehalfOf }
        #expect(left == [Request.Principal(name: "web/Bo", role: .nobody)])
        herald.changed(view) { told += 1 }
        #expect(try bus.loop.run { !bus.requests("bus.ping").isEmpty })
        let ping = try #require(bus.requests("bus.ping").first)
        #expect(ping.request.onBehalfOf == view && told == 1)
        bus.answer(ping)
        #expect(try bus.loop.run { told == 2 })
    }
}
