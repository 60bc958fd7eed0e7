/// What libexif can't do. It has no words of its own: what it can't read it leaves out, and without memory it gives
/// nothing.
public struct EXIFError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library's function: `exif_data_save_data`.
    public var operation: String
    public var message: String

    public var description: String { "\(operation): \(message)" }
}
