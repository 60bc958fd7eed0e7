import CALSA

/// A call of ALSA's that failed.
public struct ALSAError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call: `snd_pcm_open`.
    public var operation: String
    /// What it was about: `hw:CARD=PCH,DEV=0`.
    public var device: String
    /// The kernel's error number, positive, or one of ALSA's own, above 500000.
    public var code: Int32

    public init(operation: String, device: String, code: Int32) {
        self.operation = operation
        self.device = device
        self.code = code
    }

    /// ALSA's words for the number.
    public var reason: String { String(cString: snd_strerror(-code)) }

    public var description: String { "\(operation) \(device): \(reason)" }
}

/// The result of a call that says a negative error number on failure.
@discardableResult
func check(_ operation: String, _ device: String, _ result: Int32) throws(ALSAError) -> Int32 {
    guard result >= 0 else { throw ALSAError(operation: operation, device: device, code: -result) }
    return result
}

enum ALSALibrary {
    /// To be looked at before anything else is asked of the library: keeps it from printing what it also returns.
    static let isSilent: Bool = {
        calsa_silence()
        return true
    }()
}
