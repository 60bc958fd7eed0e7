import CSodium

/// Encrypts for who has the one key, by who has the other (`crypto_box_easy`).
///
/// - Parameters:
///   - nonce: 24 bytes, never the same for the same keys.
///   - publicKey: of the one, 32 bytes.
///   - secretKey: of the other, 32 bytes.
/// - Returns: 16 bytes more than there were; nil where a key or the nonce has another length, or is none.
public func box(_ bytes: [UInt8], nonce: [UInt8], to publicKey: [UInt8], from secretKey: [UInt8]) -> [UInt8]? {
    guard nonce.count == crypto_box_NONCEBYTES, publicKey.count == crypto_box_PUBLICKEYBYTES,
        secretKey.count == crypto_box_SECRETKEYBYTES
    else { return nil }
    var boxed = [UInt8](repeating: 0, count: bytes.count + Int(crypto_box_MACBYTES))
    guard crypto_box_easy(&boxed, bytes, UInt64(bytes.count), nonce, publicKey, secretKey) == 0 else { return nil }
    return boxed
}
