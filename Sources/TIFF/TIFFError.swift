/// What libtiff refuses, in its own words.
public struct TIFFError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library's function: `TIFFWriteDirectory`.
    public var operation: String
    /// What it said, or why it wasn't asked.
    public var message: String

    public var description: String { "\(operation): \(message)" }
}
