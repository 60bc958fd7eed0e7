public import BusProtocol
public import JSON

extension ControlValue {
    /// true, 5, "text" or [1, 2].
    public var json: JSONValue {
        switch self {
        case .boolean(let flag): .bool(flag)
        case .integer(let number): .integer(number)
        case .string(let text): .string(text)
        case .integers(let numbers): .array(numbers.map(JSONValue.integer))
        }
    }

    /// Reads what ``json`` writes. Not for what a client asks to set: there the control's type decides what it means.
    public init(json: JSONValue, path: String = "") throws(BusError) {
        switch json {
        case .bool(let flag): self = .boolean(flag)
        case .string(let text): self = .string(text)
        case .array(let elements):
            let numbers = elements.compactMap(\.integer)
            guard numbers.count == elements.count else { throw .invalidParams(path, "must be an array of integers") }
            self = .integers(numbers)
        default:
            guard let number = json.integer else {
                throw .invalidParams(path, "must be a control's value, not \(json.typeName)")
            }
            self = .integer(number)
        }
    }
}

extension CaptureControl {
    /// {name, title, id, type, category, minimum, maximum, step, defaultValue, flags, aliases?, menu?, dimensions?,
    /// bounds?, defaultRectangle?, value}.
    ///
    /// `menu` is [{index, name}] or, for an integer menu, [{index, value}]; it, `dimensions` and `aliases` (other names
    /// that requests may use) are only there where they mean something. `value` is null where it can't be read.
    public func json(value: ControlValue?) -> JSONValue {
        let aliases = ControlNames.aliases(of: self)
        return .members([
            "name": .string(name), "title": .string(title), "id": JSONValue(id), "type": .string(type.rawValue),
            "category": .string(category), "minimum": .integer(minimum), "maximum": .integer(maximum),
            "step": .integer(step), "defaultValue": defaultValue.map(JSONValue.integer) ?? .null,
            "flags": JSONValue(flags.map(\.rawValue).sorted()),
            "aliases": aliases.isEmpty ? .none : .some(JSONValue(aliases)), "menu": hasMenu ? .some(menuJSON) : .none,
            "dimensions": dimensions.isEmpty ? .none : .some(.array(dimensions.map { JSONValue($0) })),
            "bounds": bounds?.json, "defaultRectangle": defaultRectangle?.json,
            "value": value?.json ?? .null,
        ])
    }

    /// Reads what ``json(value:)`` writes, but for the value, which ``value(in:)`` reads.
    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        var menu: [Int64: ControlMenuItem] = [:]
        if let items = reader.known("menu") {
            let path = reader.path(of: "menu")
            guard let items = items.array else { throw .invalidParams(path, "must be an array") }
            for (index, item) in items.enumerated() {
                var item = try MemberReader(item, path: "\(path)[\(index)]")
                let index = try item.integer("index")
                menu[index] =
                    item.value("name") == nil ? .value(try item.integer("value")) : .name(try item.string("name"))
            }
        }
        var dimensions: [Int] = []
        if reader.known("dimensions") != nil {
            let path = reader.path(of: "dimensions")
            for length in try reader.array("dimensions") {
                guard let length = length.integer, (0...Int64(UInt32.max)).contains(length) else {
                    throw .invalidParams(path, "must be an array of lengths")
                }
                dimensions.append(Int(length))
            }
        }
        // A flag that only a newer writer knows is no reason to lose the control.
        let flags = try reader.array("flags").compactMap(\.string).compactMap(ControlFlag.init(rawValue:))
        let defaultValue = reader.known("defaultValue") == nil ? nil : try reader.integer("defaultValue")
        self.init(
            name: try reader.string("name"), title: try reader.string("title"),
            id: UInt32(truncatingIfNeeded: try reader.integer("id", in: 0...Int64(UInt32.max))),
            type: try reader.word("type"), minimum: try reader.integer("minimum"),
            maximum: try reader.integer("maximum"), step: try reader.integer("step"), defaultValue: defaultValue,
            menu: menu, flags: Set(flags), dimensions: dimensions, category: try reader.string("category"))
        bounds = reader.known("bounds").flatMap { PixelRectangle(json: $0) }
        defaultRectangle = reader.known("defaultRectangle").flatMap { PixelRectangle(json: $0) }
    }

    /// The `value` of what ``json(value:)`` writes; nil where it couldn't be read.
    public static func value(in json: JSONValue, path: String = "") throws(BusError) -> ControlValue? {
        guard let value = json["value"], !value.isNull else { return nil }
        return try ControlValue(json: value, path: path.isEmpty ? "value" : "\(path).value")
    }

    var hasMenu: Bool { type == .menu || type == .integerMenu }

    private var menuJSON: JSONValue {
        .array(
            menu.sorted { $0.key < $1.key }.map { index, item in
                switch item {
                case .name(let name): .object(["index": .integer(index), "name": .string(name)])
                case .value(let value): .object(["index": .integer(index), "value": .integer(value)])
                }
            })
    }
}
