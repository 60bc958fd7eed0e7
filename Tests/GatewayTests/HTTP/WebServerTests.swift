import BusProtocol
import CameraBusTesting
import Logging
import Synchronization
import Testing

@testable import Gateway

/// What a connection may make the web server hold.
@Suite(.timeLimit(.minutes(5))) struct WebServerTests {
    private let bus: BusEnd
    private let busAccess: WebBusAccess
    private let server: WebServer
    private let port: Int

    init() async throws {
        bus = try BusEnd()
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let events = try BusEvents(bus.place)
        busAccess = try WebBusAccess(
            bus.place, MediaDistributor(bus.place, events, logger: logger), events,
            try DepartureReporter(bus.place, logger: logger), GatewayConfiguration.Web(), logger: logger,
            others: { [] })
        port = try LocalPort.free()
        let address = try #require(WebAddress("127.0.0.1:\(port)"))
        let access = WebAuthorization(
            HostCheck(listen: address, hosts: [], origins: []), localRole: nil, localUsers: nil)
        server = try WebServer(
            address, WebRouter(busAccess, access, TokenConnections()), total: 64, perAddress: 64, busAccess.counters,
            logger: logger)
        Task.detached { [server] in await server.run() }
    }

    /// Requests that need no bus, answered with 404 and 200 by turns.
    private static let pair =
        "GET /page/none HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /login HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private var answered: Int { busAccess.counters.requests.load(ordering: .relaxed) }

    @Test func `who takes no answers gets no more than the kernel holds, and all of them when they are taken`() throws {
        let silent = try RawConnection(port: port, receiveBuffer: 4096)
        let pairs = 5000
        var left = Array(String(repeating: Self.pair, count: pairs).utf8)[...]
        func sendOn() { left = left.dropFirst(silent.send(atOnce: left)) }
        // Meanwhile others are answered.
        let other = try RawConnection(port: port)
        let others = 3000
        for _ in 0..<others {
            sendOn()
            other.send("HEAD /login HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try #require(other.receiveHead().hasPrefix("HTTP/1.1 200"))
        }
        #expect((1..<2000).contains(answered - others))
        var statuses: [Substring] = []
        while statuses.count < 2 * pairs {
            sendOn()
            let head = silent.receiveHead()
            guard let status = head.split(separator: " ").dropFirst().first else { break }
            statuses.append(status)
            if status == "404" { _ = silent.receive(exactly: "Not found.\n".utf8.count) }
        }
        #expect(statuses.count == 2 * pairs && answered - others == 2 * pairs)
        #expect(statuses.indices.allSatisfy { statuses[$0] == ($0 % 2 == 0 ? "404" : "200") })
    }

    @Test func `what comes behind the last request is read and dropped, and the answer gets there`() throws {
        for request in [
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n\r\n",
        ] {
            let connection = try RawConnection(port: port)
            // More than is read at once.
            connection.send(request + String(repeating: Self.pair, count: 2000))
            let head = connection.receiveHead()
            #expect(head.hasPrefix("HTTP/1.1 ") && head.contains("close\r\n"), "\(request.prefix(60))")
            while !connection.receive().isEmpty {}
        }
        #expect(answered == 1)
    }
}
