import LinuxIO
import Testing
import ZeroMQ

/// CURVE as libzmq has it.
@Suite struct CurveKeyTests {
    @Test func `pairs are made, and keys are the same as bytes and as text`() throws {
        let (one, other) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        #expect(one.publicKey != other.publicKey && one.publicKey != one.secretKey)
        for key in [one.publicKey, one.secretKey] { #expect(CurveKey(key.text) == key && key.text.utf8.count == 40) }
        let text = try #require(CurveKey(bytes: [UInt8](repeating: 0, count: 32)))
        #expect(text.text == String(repeating: "0", count: 40))
        #expect(
            CurveKey(bytes: [1]) == nil && CurveKey("") == nil && CurveKey(String(repeating: "~", count: 40)) == nil)
    }

    @Test func `a client with the server's key is heard, and one with another is not`() throws {
        let (server, client, other) = (try CurveKeyPair.make(), try CurveKeyPair.make(), try CurveKeyPair.make())
        let context = try Context()
        let router = try Socket(context, .router)
        try router.setCurveServer(server.secretKey)
        let endpoint = try #require(
            (20_000..<30_000).lazy.map { "tcp://127.0.0.1:\($0)" }.first { (try? router.bind($0)) != nil })
        let (right, wrong) = (try Socket(context, .dealer), try Socket(context, .dealer))
        try right.setCurveClient(server: server.publicKey, own: client)
        try wrong.setCurveClient(server: other.publicKey, own: client)
        for socket in [wrong, right] { try socket.connect(endpoint) }
        try wrong.send([1])
        try right.send([2])
        let set = try PollSet([.socket(router)])
        try set.wait(timeout: 20_000)
        let message = try #require(try router.receive())
        #expect(message.last.map { Array($0.bytes) } == [2])
        let connection = try #require(message.last?.connection)
        #expect(InternetSocket.peerAddress(of: connection) == "127.0.0.1")
        #expect(InternetSocket.localPort(of: connection) == endpoint.split(separator: ":").last.flatMap { Int($0) })
        #expect(InternetSocket.localPort(of: -1) == nil)
    }

    @Test func `the clock's error is known or not, and never negative`() {
        let state = ClockState.now()
        #expect(state.isSynchronized == (state.maximumError != nil) && state.maximumError ?? 0 >= 0)
    }
}
