import BusServer
import ZeroMQ

/// Decides by its public key which client may connect from another machine (a ZAP handler).
///
/// Every message of an accepted connection has this key as its `User-Id`.
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
