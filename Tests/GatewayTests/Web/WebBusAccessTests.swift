import BusProtocol
import BusServer
import CameraBusTesting
import JSON
import Logging
import Synchronization
import Testing

@testable import Gateway

/// What the bus is asked for who uses the web side, and what it is told of who has gone.
@Suite(.timeLimit(.minutes(5))) struct WebBusAccessTests {
    private let bus: BusEnd
    private let departures: DepartureReporter
    private let busAccess: WebBusAccess

    init() throws {
        bus = try BusEnd()
        try bus.open()
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let events = try BusEvents(bus.place)
        departures = try DepartureReporter(bus.place, logger: logger)
        var settings = GatewayConfiguration.Web()
        settings.requestsPerSecond = 1
        busAccess = try WebBusAccess(
            bus.place, MediaDistributor(bus.place, events, logger: logger), events, departures, settings, absence: 50,
            logger: logger, others: { [] })
        let isHere = try bus.loop.run { [bus, busAccess] in !bus.requests("bus.hello").isEmpty && busAccess.isBusHere }
        try #require(isHere)
    }

    /// What was told from other threads, or may be.
    private final class Told<Value: Sendable>: Sendable {
        private let all = Mutex<[Value]>([])

        var values: [Value] { all.withLock { $0 } }
        func add(_ value: Value) { all.withLock { $0.append(value) } }
    }

    private func page(_ name: String, cut: @escaping @Sendable () -> Void = {}) -> WebSession {
        WebSession(busAccess, WebAuthorization.Visitor(name: name, role: .control, address: "192.0.2.1"), cut: cut)
    }

    private var request: [UInt8] { Request(id: 1, method: "device.list").serialized }

    private func asked(_ method: String) -> [String] {
        bus.requests(method).map { asked in
            "\(asked.request.onBehalfOf?.name ?? "") \(asked.request.onBehalfOf?.role.rawValue ?? "")"
        }
    }

    @Test func `who comes back and goes again has all of the time again`() throws {
        busAccess.roleNow = { _ in .control }
        for name in ["Ada", "Ada", "Bo"] {
            let page = page(name)
            #expect(page.open())
            page.close()
        }
        #expect(try bus.loop.run { asked("bus.leave").contains("web/Bo control") })
        #expect(asked("bus.leave") == ["web/Ada control", "web/Bo control"])
    }

    @Test func `who has gone leaves with the role of now`() throws {
        busAccess.roleNow = { $0 == "web/Ada" ? .view : .nobody }
        for name in ["Ada", "Bo"] {
            let page = page(name)
            #expect(page.open())
            page.close()
        }
        #expect(try bus.loop.run { asked("bus.leave").count == 2 })
        #expect(Set(asked("bus.leave")) == ["web/Ada view", "web/Bo none"])
    }

    @Test func `what was sent by who is let in no more is not carried out`() throws {
        let (gone, stays) = (page("Ada"), page("Bo"))
        #expect(gone.open() && stays.open())
        #expect(try bus.loop.run { asked("bus.ping").count == 2 })
        busAccess.cut([gone.principal])
        #expect(!gone.take(text: request) && stays.take(text: request))
        let told = Told<Bool>()
        gone.take(binary: MediaAsk(.next, topic: Topic.frame("cam0", "jpeg").bytes).bytes) { told.add($0) }
        #expect(told.values == [false] && busAccess.media.topicCount == 0)
        #expect(try bus.loop.run { !asked("device.list").isEmpty })
        #expect(asked("device.list") == ["web/Bo control"])
        stays.close()
    }

    @Test func `nothing is asked for who has another role now, and what isn't answered is told as that`() throws {
        busAccess.roleNow = { $0 == "web/Ada" ? .view : .nobody }
        let told = Told<BusError.Reason?>()
        Task.detached { [busAccess] in
            for role in [Request.Principal.Role.control, .view] {
                let visitor = WebAuthorization.Visitor(name: "Ada", role: role, address: "192.0.2.1")
                let answer = await busAccess.ask(
                    "library.get", ["id": "a"], for: visitor.principal, of: visitor, within: 50)
                if case .failure(let error) = answer { told.add(error.reason) } else { told.add(nil) }
            }
        }
        #expect(try bus.loop.run { told.values.count == 2 && !asked("library.get").isEmpty })
        let expected: [BusError.Reason?] = [.unauthorized, WebService.late.reason]
        #expect(told.values == expected && asked("library.get") == ["web/Ada view"])
    }

    @Test func `each page has its own measure of requests, also of one token`() throws {
        let pages = [page("Ada"), page("Ada")]
        for page in pages { #expect(page.open()) }
        for page in pages { for _ in 0..<3 { #expect(page.take(text: request)) } }
        #expect(try bus.loop.run { asked("device.list").count == 4 })
        for page in pages { page.close() }
    }

    @Test func `a page that asks for media too often is read more slowly, and not cut`() throws {
        let (told, cuts) = (Told<Bool>(), Told<Bool>())
        let page = page("Ada") { cuts.add(true) }
        #expect(page.open())
        var asked = 0
        while told.values.count == asked, asked < 20_000 {
            page.take(binary: [9]) { told.add($0) }
            asked += 1
        }
        #expect(asked > 2000 && told.values.count == asked - 1)
        let isTold = try bus.loop.run { [asked] in told.values.count == asked }
        #expect(isTold)
        #expect(told.values.allSatisfy { $0 } && cuts.values.isEmpty)
        page.close()
    }
}
