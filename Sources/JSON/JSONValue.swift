/// A JSON document as a value (RFC 8259).
///
/// Integers are kept apart from other numbers, so that nanosecond times and 64-bit counters survive unchanged.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

extension JSONValue {
    /// The member of that name; nil when this is no object or has no such member.
    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    /// The element at that index; nil when this is no array or is shorter.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The string, if it is one.
    public var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The integer: also a number without a fraction that a Double holds exactly (`1e3`, `2.0`).
    public var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value)
        default: nil
        }
    }

    /// The number as a Double; integers beyond 2^53 lose their last digits.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    public var bool: Bool? {
        guard case .bool(let value) = self else { return nil }
        return value
    }

    public var array: [JSONValue]? {
        guard case .array(let value) = self else { return nil }
        return value
    }

    public var object: [String: JSONValue]? {
        guard case .object(let value) = self else { return nil }
        return value
    }

    public var isNull: Bool {
        guard case .null = self else { return false }
        return true
    }

    /// JSON Schema's word for the kind of value this is.
    public var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .integer: "integer"
        case .number: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }
}

// Not by nil: `condition ? value : nil` would then mean a null where no value at all was meant.
extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}

extension JSONValue {
    public init(_ value: String) { self = .string(value) }
    public init(_ value: some BinaryInteger) { self = .integer(Int64(clamping: value)) }
    public init(_ value: Bool) { self = .bool(value) }
    public init(_ value: Double) { self = .number(value) }
    /// A number, an integer if it is one.
    public static func plain(_ value: Double) -> JSONValue { Int64(exactly: value).map(integer) ?? .number(value) }
    public init(_ values: [String]) { self = .array(values.map(JSONValue.string)) }

    /// An object of those members that are not nil.
    public static func members(_ pairs: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for (name, value) in pairs { members[name] = value }
        return .object(members)
    }
}
