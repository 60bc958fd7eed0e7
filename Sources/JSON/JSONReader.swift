import CJansson

/// Why a text is no JSON that this reader takes.
public struct JSONError: Error, Hashable, CustomStringConvertible {
    /// What is wrong, in the parser's words.
    public var message: String
    /// The offset of the byte at which it was noticed.
    public var offset: Int

    public var description: String { "\(message) at byte \(offset)" }
}

extension JSONValue {
    /// Reads one JSON document: UTF-8, no member twice, integers within 64 bits, nothing behind it.
    ///
    /// - Parameter maximumDepth: how deeply arrays and objects may be nested; a deeper text is refused before it is
    ///   parsed.
    public init(parsing bytes: UnsafeRawBufferPointer, maximumDepth: Int = 64) throws(JSONError) {
        if bytes.count <= PlainJSON.shortBytes, let plain = PlainJSON.read(bytes, maximumDepth: maximumDepth) {
            self = plain
            return
        }
        try Self.checkDepth(bytes, maximumDepth)
        do throws(Failure) {
            self = try Self.parsed(bytes) { $0 }
        } catch .nameWithNUL {
            let escaped = EscapedNUL(bytes)
            let result = escaped.bytes.withUnsafeBytes { bytes in
                Result { () throws(Failure) in try Self.parsed(bytes, EscapedNUL.original) }
            }
            do throws(Failure) {
                self = try result.get()
            } catch {
                throw error.json(escaped.offset)
            }
        } catch {
            throw error.json { $0 }
        }
    }

    private enum Failure: Error {
        case text(JSONError)
        case nameWithNUL

        func json(_ offset: (Int) -> Int) -> JSONError {
            switch self {
            case .text(let error): JSONError(message: error.message, offset: offset(error.offset))
            case .nameWithNUL: JSONError(message: "a member's name has a NUL", offset: 0)
            }
        }
    }

    /// - Parameter text: makes the document's text of a parsed one.
    private static func parsed(
        _ bytes: UnsafeRawBufferPointer, _ text: (String) -> String
    ) throws(Failure) -> JSONValue {
        var error = json_error_t()
        let flags = Int(JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL)
        guard let root = json_loadb(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, flags, &error)
        else {
            guard json_error_code(&error) != json_error_null_byte_in_key else { throw .nameWithNUL }
            let message = withUnsafeBytes(of: &error.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            throw .text(JSONError(message: message, offset: max(0, Int(error.position))))
        }
        defer { json_decref(root) }
        return copy(root, text)
    }

    /// Reads the members of a document that is an object of at most six, in their order: where each of them is looked
    /// up once, that is cheaper than a dictionary.
    ///
    /// - Returns: nil for any other document, and for some of these (with escapes, for one), right or wrong: it is to
    ///   be read as any other.
    public static func fewMembers(
        parsing bytes: UnsafeRawBufferPointer, maximumDepth: Int = 64
    ) -> [(name: String, value: JSONValue)]? { PlainJSON.members(bytes, maximumDepth: maximumDepth) }

    /// Reads one JSON document; see ``init(parsing:maximumDepth:)-(UnsafeRawBufferPointer,_)``.
    public init(parsing bytes: some Collection<UInt8>, maximumDepth: Int = 64) throws(JSONError) {
        let result = bytes.withContiguousStorageIfAvailable { bytes in
            Result { () throws(JSONError) in
                try JSONValue(parsing: UnsafeRawBufferPointer(bytes), maximumDepth: maximumDepth)
            }
        }
        guard let result else {
            self = try JSONValue(parsing: Array(bytes), maximumDepth: maximumDepth)
            return
        }
        self = try result.get()
    }

    /// Reads one JSON document; see ``init(parsing:maximumDepth:)-(UnsafeRawBufferPointer,_)``.
    public init(parsing text: String, maximumDepth: Int = 64) throws(JSONError) {
        var text = text
        let result = text.withUTF8 { bytes in
            Result { () throws(JSONError) in
                try JSONValue(parsing: UnsafeRawBufferPointer(bytes), maximumDepth: maximumDepth)
            }
        }
        self = try result.get()
    }

    // The parser recurses; a bound of our own keeps its stack, and ours below, small.
    private static func checkDepth(_ bytes: UnsafeRawBufferPointer, _ maximum: Int) throws(JSONError) {
        var depth = 0
        var inString = false
        var escaped = false
        for (offset, byte) in bytes.enumerated() {
            if inString {
                if escaped {
                    escaped = false
                } else if byte == UInt8(ascii: "\\") {
                    escaped = true
                } else if byte == UInt8(ascii: "\"") {
                    inString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): inString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > maximum { throw JSONError(message: "nested deeper than \(maximum) levels", offset: offset) }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
    }

    private static func copy(_ value: UnsafeMutablePointer<json_t>, _ text: (String) -> String) -> JSONValue {
        switch value.pointee.type {
        case JSON_OBJECT:
            var members: [String: JSONValue] = [:]
            members.reserveCapacity(json_object_size(value))
            var iterator = json_object_iter(value)
            while let current = iterator {
                // A parsed name holds no NUL: jansson refuses one.
                if let key = json_object_iter_key(current), let member = json_object_iter_value(current) {
                    members[text(String(cString: key))] = copy(member, text)
                }
                iterator = json_object_iter_next(value, current)
            }
            return .object(members)
        case JSON_ARRAY:
            return .array(
                (0..<json_array_size(value)).compactMap { index in
                    json_array_get(value, index).map { copy($0, text) }
                })
        case JSON_STRING:
            let bytes = UnsafeRawBufferPointer(start: json_string_value(value), count: json_string_length(value))
            return .string(text(String(decoding: bytes, as: UTF8.self)))
        case JSON_INTEGER: return .integer(json_integer_value(value))
        case JSON_REAL: return .number(json_real_value(value))
        case JSON_TRUE: return .bool(true)
        case JSON_FALSE: return .bool(false)
        default: return .null
        }
    }
}
