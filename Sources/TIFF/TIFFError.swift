/// What libtiff refuses, in its own words.
public struct TIFFError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library's function: `TIFFWriteDirectory`.
    public var operation: String
    /// Its text, or why it wasn't asked.
    public var message: String

    public init(operation: String, message: String) {
        self.operation = operation
        self.message = message
    }

    public var description: String { "\(operation): \(message)" }
}
