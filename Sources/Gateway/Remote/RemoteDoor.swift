import BusServer
import ZeroMQ

/// Decides who may connect from another machine, by the public key that a peer has proved to have: the ZAP handler (ZeroMQ RFC 27) of
/// the process.
///
/// Every message of a connection that was let in has that key as its `User-Id`.
final class RemoteDoor {
    private let socket: Socket
    private let admits: (_ key: String) -> Bool
    /// Who came in vain.
    private(set) var refused = 0

    /// To be made before the sockets that it guards are bound.
    init(_ context: Context, _ loop: Loop, admits: @escaping (_ key: String) -> Bool) throws(ZeroMQError) {
        self.admits = admits
        socket = try Socket(context, .reply)
        try socket.bind("inproc://zeromq.zap.01")
        loop.watch(.socket(socket)) { [weak self] in self?.answer() }
    }

    private func answer() {
        while let frames = try? socket.receive() {
            // version, request id, domain, address, identity, mechanism, and the key.
            let text = frames.prefix(6).map { String(decoding: $0.bytes, as: UTF8.self) }
            let key = frames.count == 7 ? CurveKey(bytes: frames[6].bytes)?.text : nil
            let isIn = text.count == 6 && text[0] == "1.0" && text[5] == "CURVE" && key.map(admits) ?? false
            if !isIn { refused += 1 }
            // After 300 the peer tries again by itself, and comes in as soon as its key is added; after 400 it never would.
            let reply = [
                "1.0", text.count > 1 ? text[1] : "", isIn ? "200" : "300", isIn ? "OK" : "not now",
                isIn ? key ?? "" : "", "",
            ]
            _ = try? socket.send(frames: reply.map { Array($0.utf8) })
        }
    }
}
