public import BusProtocol
public import JSON

/// A line that `camerabus-librarian` writes: one JSON object.
public enum LibrarianReport: Hashable, Sendable {
    /// So much of a ``LibrarianRequest/Action/join(_:)`` is done, from 0 to 1, and never less than before. At most ten
    /// times a second.
    case progress(Double)
    /// The last line.
    case answer(Result<JSONValue, BusError>)

    /// {progress}, {result}, or {error}
    public var json: JSONValue {
        switch self {
        case .progress(let part): ["progress": .number(part)]
        case .answer(.success(let result)): ["result": result]
        case .answer(.failure(let error)): ["error": error.json]
        }
    }

    /// nil when it is none that this version knows.
    public init?(json: JSONValue) {
        if let result = json["result"] {
            self = .answer(.success(result))
        } else if let error = json["error"] {
            self = .answer(.failure(BusError(wire: error)))
        } else if let part = json["progress"]?.double {
            self = .progress(part)
        } else {
            return nil
        }
    }
}
