import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

@testable import BusClient

@Suite struct DiscoveryTests {
    @Test func `the session's bus is found before others`() throws {
        let bus = try FakeBus()
        let session = try TemporaryDirectory()
        symlink(bus.path, "\(session.path)/camerabus")
        let found = try BusDiscovery.find(flag: nil, environment: ["XDG_RUNTIME_DIR": session.path], uid: 0)
        #expect(found.path == "\(session.path)/camerabus")
    }

    @Test func `what is named is looked at, and nothing else`() throws {
        let bus = try FakeBus()
        let empty = try TemporaryDirectory()
        let environment = ["CAMERABUS_RUNTIME_DIR": empty.path, "XDG_RUNTIME_DIR": bus.path]
        #expect(throws: ClientError.noBus(lookedAt: [.init(directory: empty.path, why: "no bus in it")])) {
            try BusDiscovery.find(flag: nil, environment: environment)
        }
        #expect(try BusDiscovery.find(flag: bus.path, environment: environment).path == bus.path)
        #expect(throws: ClientError.self) { try BusDiscovery.find(flag: "relative", environment: [:]) }
    }

    @Test func `a socket that is left over is told as such`() throws {
        let home = try TemporaryDirectory()
        // Bound, and nobody listens any more.
        _ = try UnixSocket.listen(at: "\(home.path)/command.sock", mode: 0o600)
        #expect(
            throws: ClientError.noBus(
                lookedAt: [.init(directory: home.path, why: "no process answers at its socket")])
        ) { try BusDiscovery.find(flag: home.path, environment: [:]) }
    }

    @Test func `a bus that somebody else has put into tmp is not taken`() throws {
        // Nobody has this number, so the directory is not theirs.
        let uid: UInt32 = 3_999_999_999
        let path = "/tmp/camerabus-\(uid)"
        let bus = try FakeBus()
        #expect(symlink(bus.path, path) == 0)
        defer { unlink(path) }
        let error = #expect(throws: ClientError.self) { try BusDiscovery.find(flag: nil, environment: [:], uid: uid) }
        guard case .noBus(let places)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(places.last == .init(directory: path, why: "belongs to another user"))
    }
}
