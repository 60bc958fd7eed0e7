import BusProtocol
import BusServer
import CameraBusTesting
import JSON
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import Gateway

/// What the bus is told of who has gone, also where it wasn't there.
@Suite struct DepartureReporterTests {
    @Test func `what waits for a bus is the most of it, and what is still so`() throws {
        let scratch = try TemporaryDirectory()
        let (context, loop) = (try Context(), try Loop())
        let directory = try RuntimeDirectory(scratch.path)
        let departures = try DepartureReporter(
            BusEndpoints(context, loop, directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var here: Set<String> = []
        departures.whoIsHere { here.contains($0) }
        func principal(_ name: String) -> Request.Principal { Request.Principal(name: name, role: .control) }
        departures.revoked("revoked")
        departures.left(principal("revoked"))
        departures.left(principal("worse"))
        departures.revoked("worse")
        departures.left(principal("left"))
        departures.left(principal("back"))
        here = ["back", "revoked"]

        let bus = try Socket(context, .router)
        try bus.bind(RuntimeDirectory.endpoint(directory.commandSocket))
        var told: Set<String> = []
        loop.watch(.socket(bus)) {
            while let frames = try? bus.receive() {
                guard let body = frames.last, case .success(let request) = body.withUnsafeBytes({ Request.parse($0) })
                else {
                    continue
                }
                let name = request.onBehalfOf?.name ?? ""
                told.insert("\(request.method) \(name) \(request.onBehalfOf?.role.rawValue ?? "")")
                if name == "end" { loop.stop() }
            }
        }
        // What is told in one go comes before what is told later.
        loop.schedule(afterMilliseconds: 20_000) { loop.stop() }
        func end() {
            if told.isEmpty {
                loop.schedule(afterMilliseconds: 5) { end() }
            } else {
                departures.revoked("end")
            }
        }
        end()
        try loop.run()
        #expect(
            told == [
                "bus.hello  ", "bus.ping revoked none", "bus.ping worse none", "bus.leave left control",
                "bus.ping end none",
            ])
    }

    @Test func `a revocation that a bus has not answered is told to the next, until it does`() throws {
        let scratch = try TemporaryDirectory()
        let (context, loop) = (try Context(), try Loop())
        let directory = try RuntimeDirectory(scratch.path)
        let departures = try DepartureReporter(
            BusEndpoints(context, loop, directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var answers: [JSONValue?] = [nil, ["error": ["code": -32000, "message": "no"]], ["result": [:]]]
        var (asked, told) = (0, 0)
        let bus = try Socket(context, .router)
        try bus.bind(RuntimeDirectory.endpoint(directory.commandSocket))
        loop.watch(.socket(bus)) {
            while let frames = try? bus.receive() {
                guard let body = frames.last, case .success(let request) = body.withUnsafeBytes({ Request.parse($0) })
                else { continue }
                guard request.method != "bus.hello" else { continue }
                asked += 1
                #expect(told == 0 && request.onBehalfOf == Request.Principal(name: "desk", role: .nobody))
                if let answer = answers.removeFirst(), let id = request.id {
                    let members = answer.object?.merging(["jsonrpc": "2.0", "id": id]) { $1 } ?? [:]
                    let head = frames.dropLast().map { Array($0.bytes) }
                    _ = try? bus.send(frames: head + [JSONValue.object(members).serialized])
                }
                guard !answers.isEmpty, let connection = body.connection else { continue }
                // For who is connected the bus has gone, and another comes.
                loop.schedule(afterMilliseconds: 50) { UnixSocket.shutDown(connection) }
            }
        }
        departures.revoked("desk") {
            told += 1
            loop.stop()
        }
        loop.schedule(afterMilliseconds: 20_000) { loop.stop() }
        try loop.run()
        #expect(asked == 3 && told == 1 && answers.isEmpty)
        withExtendedLifetime(departures) {}
    }
}
