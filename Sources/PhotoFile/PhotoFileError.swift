public import Imaging

/// Why a frame could not be made into a photo's file. The next frame may well be, but for ``unsupported(_:)``.
public enum PhotoFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No such file can be made of the device's format.
    case unsupported(String)
    /// The device delivered fewer bytes than its layout says.
    case truncated(needed: Int, delivered: Int)
    /// The device's compressed picture is broken, or of another size than announced.
    case damaged(String)
    /// Everything else: no memory, a library's refusal.
    case failed(String)

    public init(_ error: ConversionError) {
        switch error {
        case .truncated(let needed, let delivered): self = .truncated(needed: needed, delivered: delivered)
        case .damaged(let why): self = .damaged(why)
        case .failed(let why): self = .failed(why)
        }
    }

    /// True if it lies with this one frame: the device's doing.
    public var isOfFrame: Bool {
        switch self {
        case .truncated, .damaged: true
        case .unsupported, .failed: false
        }
    }

    public var description: String {
        switch self {
        case .truncated(let needed, let delivered): "the frame has \(delivered) bytes instead of \(needed)"
        case .damaged(let why): "the frame is damaged: \(why)"
        case .unsupported(let why), .failed(let why): why
        }
    }
}
