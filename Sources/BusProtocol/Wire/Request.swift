public import JSON

/// Why a message is no request that can be carried out, with the id to answer under.
public struct RequestFailure: Error, Hashable, Sendable {
    /// null where it could not be read.
    public var id: JSONValue
    public var error: BusError

    public init(id: JSONValue, error: BusError) {
        self.id = id
        self.error = error
    }
}

/// A JSON-RPC 2.0 request, well-formed, its method and parameters not yet looked at.
public struct Request: Hashable, Sendable {
    /// On whose behalf a gateway asks: the member `for`. Only to be believed of the configured gateway's user.
    public struct Principal: Hashable, Sendable {
        public enum Role: String, Hashable, Sendable, CaseIterable {
            case view, control, admin
            /// Any more: what that name has ends.
            case nobody = "none"
        }

        public var name: String
        public var role: Role

        public init(name: String, role: Role) {
            self.name = name
            self.role = role
        }
    }

    /// A string, a number or null, mirrored in the response; nil for a notification, which gets none.
    public var id: JSONValue?
    public var method: String
    /// Always an object.
    public var params: JSONValue
    /// Names the request, so that asking again does not do it again.
    public var key: String?
    public var onBehalfOf: Principal?

    public init(
        id: JSONValue?, method: String, params: JSONValue = [:], key: String? = nil, onBehalfOf: Principal? = nil
    ) {
        self.id = id
        self.method = method
        self.params = params
        self.key = key
        self.onBehalfOf = onBehalfOf
    }

    public var isNotification: Bool { id == nil }

    /// The request as it goes over the bus.
    public var serialized: [UInt8] {
        JSONValue.members([
            "jsonrpc": "2.0", "id": id, "method": .string(method), "params": params, "key": key.map(JSONValue.string),
            "for": onBehalfOf.map { ["name": .string($0.name), "role": .string($0.role.rawValue)] },
        ]).serialized
    }
}

extension Request {
    /// Reads the one frame of a request.
    ///
    /// - Parameter limit: bytes; a longer frame is refused unread with `limitExceeded`.
    public static func parse(
        _ bytes: UnsafeRawBufferPointer, limit: Int = BusLimits.maxRequestBytes
    ) -> Result<Request, RequestFailure> {
        guard bytes.count <= limit else {
            let message = "A request may have \(limit) bytes, this one has \(bytes.count)."
            return .failure(RequestFailure(id: .null, error: .limitExceeded(.requestBytes, message, maximum: limit)))
        }
        if let members = JSONValue.fewMembers(parsing: bytes, maximumDepth: BusLimits.maxDepth) {
            return parse(.few(members))
        }
        let document: JSONValue
        do {
            document = try JSONValue(parsing: bytes, maximumDepth: BusLimits.maxDepth)
        } catch {
            return .failure(
                RequestFailure(id: .null, error: BusError(.parseError, "The request is not JSON: \(error).")))
        }
        return parse(document)
    }

    /// Reads a request that is a value already.
    public static func parse(_ document: JSONValue) -> Result<Request, RequestFailure> {
        guard case .object(let members) = document else {
            let why =
                document.array == nil
                ? "a request is a JSON object" : "batches are not taken; send each request as a message of its own"
            return .failure(RequestFailure(id: .null, error: .invalidRequest(why)))
        }
        return parse(.any(members))
    }

    /// A request's members, by name.
    private enum Members {
        case few([(name: String, value: JSONValue)])
        case any([String: JSONValue])

        subscript(name: String) -> JSONValue? {
            switch self {
            case .few(let members): members.first { $0.name == name }?.value
            case .any(let members): members[name]
            }
        }
    }

    private static func parse(_ members: Members) -> Result<Request, RequestFailure> {
        let id: JSONValue?
        switch members["id"] {
        case nil: id = nil
        case .string(let text)? where text.utf8.count > BusLimits.maxIDBytes:
            let why = "id may have \(BusLimits.maxIDBytes) bytes"
            return .failure(RequestFailure(id: .null, error: .invalidRequest(why)))
        case let value? where value.string != nil || value.double != nil || value.isNull: id = value
        case .some:
            return .failure(RequestFailure(id: .null, error: .invalidRequest("id must be a string, a number or null")))
        }
        do {
            return .success(try Request(id: id, members: members))
        } catch {
            return .failure(RequestFailure(id: id ?? .null, error: error))
        }
    }

    /// The refusal of a message whose envelope isn't followed by exactly one frame.
    public static func wrongFrameCount(_ count: Int) -> RequestFailure {
        RequestFailure(id: .null, error: .invalidRequest("a request is one frame behind the envelope, not \(count)"))
    }

    private init(id: JSONValue?, members: Members) throws(BusError) {
        guard case .string("2.0")? = members["jsonrpc"] else { throw .invalidRequest("jsonrpc must be \"2.0\"") }
        guard let method = members["method"]?.string else { throw .invalidRequest("method must be a string") }
        let params = members["params"] ?? .object([:])
        guard case .object = params else {
            throw .invalidRequest("params must be an object: members are given by name")
        }
        self.init(
            id: id, method: method, params: params, key: try Self.key(members["key"]),
            onBehalfOf: try Self.principal(members["for"]))
    }

    private static func key(_ value: JSONValue?) throws(BusError) -> String? {
        guard let value else { return nil }
        guard let key = value.string, (1...BusLimits.maxKeyCharacters).contains(key.unicodeScalars.count) else {
            throw .invalidRequest("key must be a string of 1 to \(BusLimits.maxKeyCharacters) characters")
        }
        return key
    }

    private static func principal(_ value: JSONValue?) throws(BusError) -> Principal? {
        guard let value else { return nil }
        guard let name = value["name"]?.string, (1...128).contains(name.unicodeScalars.count),
            let role = value["role"]?.string.flatMap(Principal.Role.init(rawValue:))
        else {
            throw .invalidRequest(
                "for must hold a name of 1 to 128 characters and a role: view, control, admin or none")
        }
        return Principal(name: name, role: role)
    }
}

extension BusError {
    /// JSON-RPC's -32600.
    public static func invalidRequest(_ why: String) -> BusError {
        BusError(.invalidRequest, "This is not a request: \(why).")
    }

    /// JSON-RPC's -32601. The name is cut: it came from outside.
    public static func methodNotFound(_ method: String) -> BusError {
        BusError(.methodNotFound, "There is no method '\(method.prefix(64))'; bus.methods lists the methods.")
    }
}
