public import JSON

/// The shape of a JSON value: what a method takes and answers. It checks values, and prints itself as JSON Schema
/// 2020-12.
public indirect enum Schema: Hashable, Sendable {
    /// A member of an object.
    public struct Property: Hashable, Sendable {
        public var name: String
        public var schema: Schema
        public var isRequired: Bool

        public static func required(_ name: String, _ schema: Schema) -> Property {
            Property(name: name, schema: schema, isRequired: true)
        }

        public static func optional(_ name: String, _ schema: Schema) -> Property {
            Property(name: name, schema: schema, isRequired: false)
        }
    }

    case any
    case null
    case boolean
    /// Also a number without a fraction (`2.0`), as JSON Schema has it.
    case integer(min: Int64? = nil, max: Int64? = nil)
    case number(min: Double? = nil, max: Double? = nil)
    /// Lengths count Unicode code points.
    case string(minLength: Int = 0, maxLength: Int? = nil)
    /// One of these strings.
    case choice([String])
    case constant(JSONValue)
    case array(of: Schema, min: Int = 0, max: Int? = nil)
    /// `additional`: members that are not listed are let through; otherwise they are refused by name.
    case object([Property], additional: Bool = false)
    /// An object whose members all have the same shape and any name.
    case map(of: Schema, max: Int? = nil)
    /// At least one of these.
    case anyOf([Schema])
    /// One of ``Schema/definitions``, by name.
    case reference(String)
    case described(String, Schema)

    /// What it may also be: null.
    public var orNull: Schema { .anyOf([self, .null]) }

    public func described(_ text: String) -> Schema { .described(text, self) }
}

extension Schema {
    /// The schema as JSON Schema 2020-12; references are to `#/$defs/<name>`.
    public var json: JSONValue {
        switch self {
        case .any: [:]
        case .null: ["type": "null"]
        case .boolean: ["type": "boolean"]
        case .integer(let low, let high):
            .members(["type": "integer", "minimum": low.map(JSONValue.integer), "maximum": high.map(JSONValue.integer)])
        case .number(let low, let high):
            .members(["type": "number", "minimum": low.map(Self.plain), "maximum": high.map(Self.plain)])
        case .string(let low, let high):
            .members([
                "type": "string", "minLength": Self.unlessZero(low), "maxLength": high.map { JSONValue($0) },
            ])
        case .choice(let words): ["type": "string", "enum": JSONValue(words)]
        case .constant(let value): ["const": value]
        case .array(let element, let low, let high):
            .members([
                "type": "array", "items": element.json, "minItems": Self.unlessZero(low),
                "maxItems": high.map { JSONValue($0) },
            ])
        case .object(let properties, let additional):
            .members([
                "type": "object",
                "properties": .object(
                    Dictionary(properties.map { ($0.name, $0.schema.json) }, uniquingKeysWith: { _, last in last })),
                "required": JSONValue(properties.filter(\.isRequired).map(\.name)),
                "additionalProperties": additional ? Optional.none : false,
            ])
        case .map(let element, let high):
            .members([
                "type": "object", "additionalProperties": element.json, "maxProperties": high.map { JSONValue($0) },
            ])
        case .anyOf(let choices): ["anyOf": .array(choices.map(\.json))]
        case .reference(let name): ["$ref": .string("#/$defs/\(name)")]
        case .described(let text, let schema):
            .object((schema.json.object ?? [:]).merging(["description": .string(text)]) { _, last in last })
        }
    }

    // Written out: in a ternary, nil would become the JSON value null.
    private static func unlessZero(_ value: Int) -> JSONValue? {
        guard value > 0 else { return Optional.none }
        return JSONValue(value)
    }

    // 1000, not 1000.0: the same bound, in the spelling that people write.
    private static func plain(_ value: Double) -> JSONValue {
        Int64(exactly: value).map(JSONValue.integer) ?? .number(value)
    }
}
