import BusClient
import BusProtocol
import Doctor
import JSON
import LinuxIO

/// Checks the connection to a bus on another machine step by step, then reads the report of that bus.
struct RemoteReportReader {
    private let options: GlobalOptions
    private let address: String

    /// The number of requests; the fastest one counts.
    private static let tries = 5

    init(_ options: GlobalOptions, _ address: String) { (self.options, self.address) = (options, address) }

    /// - Parameter ask: asks the bus itself.
    func hold(_ ask: (Client) async -> BusReport) async -> (report: BusReport, remote: RemoteFacts) {
        var facts = RemoteFacts(address: address, host: TCPAddress(address)?.host ?? address)
        let place: BusPlace
        do throws(ClientError) {
            place = try Client.place(runtimeDirectory: options.runtimeDir)
        } catch {
            return failed(facts, .settings, error.description)
        }
        guard case .remote(let bus) = place else { return failed(facts, .settings, "This is not an address.") }
        facts.key = bus.publicKey
        if let obstacle = await bus.obstacle() {
            return failed(facts, Self.problem(obstacle), obstacle.sentence(address))
        }
        let client: Client
        do throws(ClientError) {
            client = try await Client.connect(to: place, name: "camerabus", timeout: options.timeout.duration)
        } catch {
            return failed(
                facts, .silence, "The gateway accepts this client, but no bus answers behind it: \(error.description)")
        }
        facts.name = client.greeting.json["remote"]?["name"]?.string
        facts.role = client.greeting.json["remote"]?["role"]?.string
        do throws(ClientError) {
            try await time(client, &facts)
        } catch {
            // Each further question would wait as long, and none be answered.
            return failed(
                facts, .silence,
                "The gateway accepts this client, but the bus behind it does not answer: \(error.description)")
        }
        facts.closedPorts = await bus.closedPorts()
        return (await ask(client), facts)
    }

    private func failed(
        _ facts: RemoteFacts, _ problem: RemoteFacts.Problem, _ meaning: String
    ) -> (report: BusReport, remote: RemoteFacts) {
        var facts = facts
        (facts.problem, facts.meaning) = (problem, meaning)
        return (BusReport(), facts)
    }

    private static func problem(_ obstacle: GatewayObstacle) -> RemoteFacts.Problem {
        switch obstacle {
        case .noAddress: .name
        case .refused: .refused
        case .noConnection, .noAnswer, .silent, .noReply: .silence
        case .closedAtOnce, .noGateway, .eventsPort: .port
        case .wrongServerKey: .serverKey
        case .notLetIn: .key
        }
    }

    /// - Throws: when the bus is silent or gone. A bus that refuses `bus.clock` is no error.
    private func time(_ client: Client, _ facts: inout RemoteFacts) async throws(ClientError) {
        let tellsTime = client.greeting.features.contains(Feature.remote.rawValue)
        let own = ClockState.now()
        for _ in 0..<Self.tries {
            let (start, realtime) = (MonotonicClock.now(), MonotonicClock.realtime())
            let answer: JSONValue
            do throws(ClientError) {
                answer = try await client.call(
                    tellsTime ? "bus.clock" : "bus.ping", timeout: options.timeout.duration)
            } catch {
                guard case .refused = error else { throw error }
                return
            }
            let time = MonotonicClock.now() - start
            guard time < facts.roundTrip ?? .max else { continue }
            facts.roundTrip = time
            guard let there = answer["realtime"]?.integer else { continue }
            facts.clock = RemoteFacts.Clock(
                offset: there &- (realtime + time / 2), uncertainty: time / 2,
                isKeptThere: answer["synchronized"]?.bool ?? false, isKeptHere: own.isSynchronized)
        }
    }
}
