import CZeroMQ

/// A key of CURVE, libzmq's encryption (ZeroMQ RFC 26), public or secret: 32 bytes, written as 40 characters of Z85
/// (RFC 32).
public struct CurveKey: Hashable, Sendable {
    /// Bytes of a key.
    public static let byteCount = 32

    /// In Z85.
    public let text: String

    /// nil for what is no Z85 of 32 bytes.
    public init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        guard text.utf8.count == Self.byteCount / 4 * 5, !text.utf8.contains(0), zmq_z85_decode(&bytes, text) != nil
        else { return nil }
        self.text = text
    }

    /// From its bytes, as a ZAP request has them; nil for another number of them.
    public init?(bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        var text = [CChar](repeating: 0, count: Self.byteCount / 4 * 5 + 1)
        guard bytes.count == Self.byteCount, zmq_z85_encode(&text, bytes, bytes.count) != nil else { return nil }
        self.text = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The key itself.
    public var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        zmq_z85_decode(&bytes, text)
        return bytes
    }

    fileprivate init(trusted text: [CChar]) {
        self.text = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Both keys of one end of a connection.
public struct CurveKeyPair: Hashable, Sendable {
    /// For everybody.
    public var publicKey: CurveKey
    /// Whoever has it is who the public one stands for.
    public var secretKey: CurveKey

    public init(publicKey: CurveKey, secretKey: CurveKey) {
        self.publicKey = publicKey
        self.secretKey = secretKey
    }

    /// A new pair (`zmq_curve_keypair`).
    ///
    /// - Throws: `ENOTSUP` where libzmq was built without CURVE.
    public static func make() throws(ZeroMQError) -> CurveKeyPair {
        var (open, secret) = ([CChar](repeating: 0, count: 41), [CChar](repeating: 0, count: 41))
        guard zmq_curve_keypair(&open, &secret) == 0 else { throw ZeroMQError("zmq_curve_keypair") }
        return CurveKeyPair(publicKey: CurveKey(trusted: open), secretKey: CurveKey(trusted: secret))
    }
}
