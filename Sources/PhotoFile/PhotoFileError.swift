public import Imaging

/// Why a frame could not be made into a photo's file. The next frame may well be.
public enum PhotoFileError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The frame ends too early, or is broken: the device's doing.
    case damaged(String)
    /// Everything else: no memory, a library's refusal.
    case failed(String)

    public init(_ error: ConversionError) {
        switch error {
        case .truncated, .damaged: self = .damaged(error.description)
        case .failed(let why): self = .failed(why)
        }
    }

    public var description: String {
        switch self {
        case .damaged(let why): why
        case .failed(let why): why
        }
    }
}
