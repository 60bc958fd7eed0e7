public import BusProtocol
public import ZeroMQ

/// Decides at the door who may connect: the ZAP handler (ZeroMQ RFC 27) of a process, for all its sockets.
///
/// On ipc the address of a request is libzmq's `Peer-Address`, which the kernel vouches for. Who can't be read from it is
/// never let in.
public final class Doorkeeper {
    /// What a policy says of a peer.
    public enum Admission {
        case admit
        /// Not now (status 300): the peer's socket tries again by itself. Status 400 would turn it away for good.
        case notNow
    }

    private let socket: Socket
    private let policy: (_ domain: String, _ peer: PeerAddress) -> Admission

    /// To be made before the sockets that it guards are bound.
    public init(
        _ context: Context, _ loop: Loop, policy: @escaping (_ domain: String, _ peer: PeerAddress) -> Admission
    ) throws(ZeroMQError) {
        self.policy = policy
        socket = try Socket(context, .reply)
        try socket.bind("inproc://zeromq.zap.01")
        loop.watch(.socket(socket)) { [weak self] in self?.answer() }
    }

    private func answer() {
        while let frames = try? socket.receive() {
            // version, request id, domain, address, identity, mechanism, credentials…
            let text = frames.prefix(6).map { String(decoding: $0.bytes, as: UTF8.self) }
            let status: String
            if text.count == 6, text[0] == "1.0", let peer = PeerAddress(zmqPeerAddress: text[3]),
                case .admit = policy(text[2], peer)
            {
                status = "200"
            } else {
                status = "300"
            }
            let reply = ["1.0", text.count > 1 ? text[1] : "", status, status == "200" ? "OK" : "not now", "", ""]
            _ = try? socket.send(frames: reply.map { Array($0.utf8) })
        }
    }
}
