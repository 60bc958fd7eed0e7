import CTurboJPEG

/// What libjpeg-turbo refuses, in its own words.
public struct JPEGError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The library's function: `tjDecompress2`.
    public var operation: String
    /// Its text (`tjGetErrorStr2`), or why it wasn't asked.
    public var message: String

    public init(operation: String, message: String) {
        self.operation = operation
        self.message = message
    }

    public var description: String { "\(operation): \(message)" }

    init(_ operation: String, _ handle: tjhandle?) {
        self.init(operation: operation, message: JPEGError.text(handle))
    }

    static func text(_ handle: tjhandle?) -> String {
        guard let text = tjGetErrorStr2(handle) else { return "unknown error" }
        return String(cString: text)
    }

    /// JPEG holds sizes up to 65500 pixels a side in this library.
    static func check(width: Int, height: Int, _ operation: String) throws(JPEGError) {
        guard (1...65500).contains(width), (1...65500).contains(height) else {
            throw JPEGError(operation: operation, message: "size \(width)x\(height) is outside of 1...65500")
        }
    }
}
