public import BusProtocol
public import ZeroMQ

/// Decides at the door who of this machine may connect, for all sockets of a process.
///
/// Who can't be read from what the kernel says of a peer is never let in.
public final class Doorkeeper {
    /// What a policy says of a peer.
    public enum Admission {
        case admit
        /// Not now: the peer's socket tries again by itself.
        case notNow
    }

    private let socket: AdmissionSocket

    /// To be made before the sockets that it guards are bound.
    ///
    /// - Parameter connections: numbers the connections; nil: they have no numbers.
    public init(
        _ context: Context, _ loop: Loop, _ connections: ConnectionGuard? = nil,
        policy: @escaping (_ domain: String, _ peer: PeerAddress) -> Admission
    ) throws(ZeroMQError) {
        socket = try AdmissionSocket(context, loop) { request in
            guard let peer = PeerAddress(zmqPeerAddress: request.address), case .admit = policy(request.domain, peer)
            else { return nil }
            return connections.map { "\($0.number())" } ?? ""
        }
    }
}
