import BusProtocol
import CameraBusTesting
import Testing

@testable import Gateway

/// How users without a WebSocket share the connection to the bus.
@Suite(.timeLimit(.minutes(5))) struct WebServiceTests {
    private let bus: BusEnd
    private let service: WebService

    init() throws {
        bus = try BusEnd()
        try bus.open()
        service = try WebService(bus.place)
    }

    /// Milliseconds that no test lasts.
    private static let long: Int64 = 600_000

    private func read(
        of owner: String, within patience: Int64 = long, _ tell: @escaping (BusError?) -> Void = { _ in }
    ) {
        service.ask("library.read", of: owner, within: patience) { result in
            if case .failure(let error) = result { tell(error) } else { tell(nil) }
        }
    }

    @Test func `one question serves all who ask whether the bus answers, also when others have all places`() throws {
        for number in 0..<100 { read(of: "user \(number)") }
        var answers: [Bool] = []
        for _ in 0..<500 { service.checkHealth { answers.append($0) } }
        #expect(try bus.loop.run { !bus.requests("bus.ping").isEmpty })
        #expect(bus.requests("library.read").count == RemoteCaller.maximumPending - 1)
        bus.answer(bus.requests("bus.ping")[0])
        #expect(try bus.loop.run { answers.count == 500 })
        #expect(answers.allSatisfy { $0 } && bus.requests("bus.ping").count == 1)
        service.checkHealth { answers.append($0) }
        #expect(try bus.loop.run { bus.requests("bus.ping").count == 2 })
    }

    @Test func `a user whose downloads are slow keeps none of the others waiting`() throws {
        for _ in 0..<100 { read(of: "Ada") }
        service.ask("device.get", of: "Bo") { _ in }
        #expect(try bus.loop.run { !bus.requests("device.get").isEmpty })
        #expect(bus.requests("library.read").count == WebService.maximumPerOwner)
        // As soon as one of a user's requests is answered, the next one goes.
        bus.answer(bus.requests("library.read")[0])
        #expect(try bus.loop.run { bus.requests("library.read").count == WebService.maximumPerOwner + 1 })
    }

    @Test func `what has waited too long for its turn is refused, and not carried out`() throws {
        var (told, isAnswered): ([BusError.Reason?], Bool) = ([], false)
        for _ in 1..<WebService.maximumPerOwner { read(of: "Ada") }
        read(of: "Ada") { _ in isAnswered = true }
        for _ in 0..<2 { read(of: "Ada", within: 50) { told.append($0?.reason) } }
        #expect(try bus.loop.run { told.count == 2 })
        #expect(told == [.limitExceeded, .limitExceeded])
        bus.answer(bus.requests("library.read")[WebService.maximumPerOwner - 1])
        #expect(try bus.loop.run { isAnswered })
        service.checkHealth { _ in }
        #expect(try bus.loop.run { !bus.requests("bus.ping").isEmpty })
        #expect(bus.requests("library.read").count == WebService.maximumPerOwner)
    }
}
