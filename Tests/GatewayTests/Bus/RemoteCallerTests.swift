import BusProtocol
import BusServer
import CameraBusTesting
import JSON
import Testing

@testable import Gateway

/// How much is asked of the bus at a time, and what becomes of what it doesn't answer.
@Suite(.timeLimit(.minutes(5))) struct RemoteCallerTests {
    private let bus: BusEnd

    init() throws {
        bus = try BusEnd()
        try bus.open()
    }

    private func connected(longest: Int64 = 60_000) throws -> RemoteCaller {
        let caller = try RemoteCaller(bus.place, maximumMessageBytes: 1 << 20, principal: nil, longest: longest)
        try #require(try bus.loop.run { caller.isConnected })
        return caller
    }

    private func envelope(_ number: UInt8) -> [[UInt8]] { [[number]] }

    private func ask(
        _ caller: RemoteCaller, _ number: UInt8, _ method: String = "device.get", _ params: JSONValue = [:]
    ) -> Bool {
        caller.ask(
            Request(id: .integer(Int64(number)), method: method, params: params), envelope: envelope(number))
    }

    @Test func `the bus has no more at a time than it has room to answer, in their order`() throws {
        let (caller, other) = (try connected(), try connected())
        var answers = 0
        caller.onAnswer = { _, _, _ in answers += 1 }
        for number in 1...20 { #expect(ask(caller, UInt8(number))) }
        #expect(ask(caller, 21, "photo.capture"))
        #expect(try bus.loop.run { bus.requests("device.get").count == 16 })
        // What had gone with these would have come with them.
        #expect(ask(other, 1, "bus.ping"))
        #expect(try bus.loop.run { !bus.requests("bus.ping").isEmpty })
        #expect(bus.requests("device.get").count == 16 && bus.requests("photo.capture").isEmpty)
        for one in bus.requests("device.get").prefix(4) { bus.answer(one) }
        #expect(try bus.loop.run { !bus.requests("photo.capture").isEmpty })
        let order = bus.asked.filter { $0.request.method != "bus.ping" }.compactMap { $0.request.id?.integer }
        #expect(order == Array(Int64(1)...21) && answers == 4)
    }

    @Test func `what takes long keeps nothing else from the bus`() throws {
        let caller = try connected()
        for number in 1...30 { #expect(ask(caller, UInt8(number), "movie.stop")) }
        #expect(ask(caller, 31, "device.lock", ["devices": "cam0", "wait": 60_000]))
        #expect(ask(caller, 32, "device.unlock"))
        #expect(try bus.loop.run { !bus.requests("device.unlock").isEmpty })
        #expect(bus.asked.count == 32)
    }

    @Test func `what nobody waits for any more takes up no place, and what has not gone does not go`() throws {
        let caller = try connected()
        var answers: [[[UInt8]]] = []
        caller.onAnswer = { envelope, _, _ in answers.append(envelope) }
        for number in 1...64 { #expect(ask(caller, UInt8(number))) }
        #expect(!ask(caller, 65))
        caller.giveUp(envelope(1))
        caller.giveUp(envelope(64))
        #expect(ask(caller, 66) && ask(caller, 67) && !ask(caller, 68))
        var answered = 0
        let isDone = try bus.loop.run {
            for one in bus.asked.dropFirst(answered) { bus.answer(one) }
            answered = bus.asked.count
            return answers.count == 64
        }
        #expect(isDone && answered == 65)
        let expected = (Array(UInt8(2)...63) + [66, 67]).map { envelope($0) }
        #expect(answers == expected)
    }

    @Test func `an answer that doesn't come is given up, unless it may take long`() throws {
        let caller = try connected(longest: 50)
        var given: [[[UInt8]]] = []
        var answers: [[[UInt8]]] = []
        caller.onGivenUp = { given.append($0) }
        caller.onAnswer = { envelope, _, _ in answers.append(envelope) }
        #expect(ask(caller, 1, "device.set") && ask(caller, 2, "photo.capture"))
        #expect(try bus.loop.run { !given.isEmpty && bus.asked.count == 2 })
        for one in bus.asked { bus.answer(one) }
        #expect(try bus.loop.run { !answers.isEmpty })
        #expect(given == [envelope(1)] && answers == [envelope(2)])
    }

    @Test func `which answers may take long is known by what is asked`() {
        func mayTakeLong(_ method: String, _ params: JSONValue = [:]) -> Bool {
            RemoteRequest.mayTakeLong(Request(id: 1, method: method, params: params))
        }
        #expect(mayTakeLong("take.finish") && mayTakeLong("library.get") && mayTakeLong("device.lock", ["wait": 1]))
        #expect(!mayTakeLong("device.lock") && !mayTakeLong("bus.snapshot") && !mayTakeLong("takes"))
    }
}
