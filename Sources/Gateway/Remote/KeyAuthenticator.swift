import BusServer
import ZeroMQ

/// Decides who may connect from another machine, by the public key that a peer has proved to have.
///
/// Every message of a connection that was let in has that key as its `User-Id`.
final class KeyAuthenticator {
    private var socket: AdmissionSocket?
    private let admits: (_ key: String) -> Bool
    /// Who came in vain.
    private(set) var refused = 0
    /// Called with each of them; no key: it could not prove to have one.
    var onRefused: ((_ address: String, _ key: String?) -> Void)?

    /// To be made before the sockets that it guards are bound.
    init(_ context: Context, _ loop: Loop, admits: @escaping (_ key: String) -> Bool) throws(ZeroMQError) {
        self.admits = admits
        socket = try AdmissionSocket(context, loop) { [weak self] in self?.admit($0) }
    }

    private func admit(_ request: AdmissionSocket.Request) -> String? {
        let key = request.mechanism == "CURVE" ? request.credential.flatMap { CurveKey(bytes: $0)?.text } : nil
        if let key, admits(key) { return key }
        refused += 1
        onRefused?(request.address, key)
        return nil
    }
}
