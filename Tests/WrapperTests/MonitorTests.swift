import Glibc
import Testing
import ZeroMQ

/// What libzmq tells of connections.
@Suite struct MonitorTests {
    @Test func `a socket whose monitor was stopped before its reader went holds up no other`() throws {
        let context = try Context()
        let endpoint = "ipc://@camerabus-monitor-\(getpid())"
        let server = try Socket(context, .router)
        try server.bind(endpoint)
        for round in 0..<500 {
            let client = try Socket(context, .dealer)
            try client.startMonitor(at: "inproc://monitor/\(round)", events: [.handshakeSucceeded, .disconnected])
            try withExtendedLifetime(client) {
                let monitor = try Socket(context, .pair)
                try monitor.connect("inproc://monitor/\(round)")
                // What comes of it would be told while its reader goes.
                try client.connect(endpoint)
                client.stopMonitor()
            }
            let other = try Socket(context, .dealer)
            try other.connect(endpoint)
            try other.send([1])
            let isHeard = try hasMessage(server)
            // The context's end would wait for libzmq's thread for ever.
            if !isHeard { _ = Unmanaged.passRetained(context) }
            try #require(isHeard, "round \(round)")
            while try server.receive() != nil {}
        }
    }

    private func hasMessage(_ socket: Socket) throws -> Bool {
        let set = try PollSet([.socket(socket)])
        try set.wait(timeout: 20_000)
        return set.isReady(0)
    }
}
