import CFFmpeg

/// What libavformat or libavcodec refuses.
public struct MediaError: Error, Hashable, Sendable, CustomStringConvertible {
    public var operation: String
    /// FFmpeg's error number: a negated `errno`, or a tag of its own.
    public var code: Int32
    public var message: String

    init(_ operation: String, _ code: Int32) {
        var text = [CChar](repeating: 0, count: 128)
        let isKnown = av_strerror(code, &text, text.count) == 0
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        self.init(
            operation, code: code, message: isKnown ? String(decoding: bytes, as: UTF8.self) : "error \(code)")
    }

    public init(_ operation: String, code: Int32 = 0, message: String) {
        self.operation = operation
        self.code = code
        self.message = message
    }

    /// It lacks memory or another resource, as far as FFmpeg says; what has come into its hands is not at fault.
    public var isOfResources: Bool { code == cffmpeg_no_memory() || code == cffmpeg_external() }

    public var description: String { "\(operation): \(message)" }
}
