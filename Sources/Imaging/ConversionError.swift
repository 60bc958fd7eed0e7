/// Why a frame could not be made into the picture asked for. The next frame may well be.
public enum ConversionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The device delivered fewer bytes than its layout says.
    case truncated(needed: Int, delivered: Int)
    /// The compressed picture is broken, or of another size than announced: the decoder's words.
    case damaged(String)
    /// Everything else: no memory, a library's refusal.
    case failed(String)

    public var description: String {
        switch self {
        case .truncated(let needed, let delivered): "the frame has \(delivered) bytes instead of \(needed)"
        case .damaged(let why): "the frame is damaged: \(why)"
        case .failed(let why): why
        }
    }
}
