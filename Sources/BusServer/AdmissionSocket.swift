public import ZeroMQ

/// Where libzmq asks who may connect: the ZAP handler (ZeroMQ RFC 27) of a process, for all its sockets.
public final class AdmissionSocket {
    /// Who wants to come in.
    public struct Request {
        /// What the socket calls itself.
        public var domain: String
        /// On ipc `Peer-Address`, which the kernel vouches for; else the peer's host.
        public var address: String
        public var mechanism: String
        /// With CURVE the public key that the peer has proved to have.
        public var credential: [UInt8]?
    }

    private let socket: Socket
    private let admit: (Request) -> String?

    /// To be made before the sockets that it guards are bound.
    ///
    /// - Parameter admit: what is to be every message's `User-Id` of that connection; nil: it may not come in, not now.
    public init(
        _ context: Context, _ loop: Loop, admit: @escaping (Request) -> String?
    ) throws(ZeroMQError) {
        self.admit = admit
        socket = try Socket(context, .reply)
        try socket.bind("inproc://zeromq.zap.01")
        loop.watch(.socket(socket)) { [weak self] in self?.answer() }
    }

    private func answer() {
        while let frames = try? socket.receive() {
            // version, request id, domain, address, identity, mechanism, credentials…
            let text = frames.prefix(6).map { String(decoding: $0.bytes, as: UTF8.self) }
            var user: String?
            if text.count == 6, text[0] == "1.0" {
                user = admit(
                    Request(
                        domain: text[2], address: text[3], mechanism: text[5],
                        credential: frames.count == 7 ? Array(frames[6].bytes) : nil))
            }
            // After 300 the peer's socket tries again by itself, and comes in as soon as it may; 400 would turn it away
            // for good.
            let reply = [
                "1.0", text.count > 1 ? text[1] : "", user == nil ? "300" : "200", user == nil ? "not now" : "OK",
                user ?? "", "",
            ]
            _ = try? socket.send(frames: reply.map { Array($0.utf8) })
        }
    }
}
