public import JSON

/// Makes the JSON frame of a reply.
public enum Response {
    public static func success(id: JSONValue, result: JSONValue) -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        write(id: id, .success(result), to: &writer)
        return writer.bytes
    }

    public static func failure(id: JSONValue, error: BusError) -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        write(id: id, .failure(error), to: &writer)
        return writer.bytes
    }

    /// Writes it behind what a writer holds already.
    public static func write(id: JSONValue, _ result: Result<JSONValue, BusError>, to writer: inout JSONWriter) {
        writer.raw(#"{"jsonrpc":"2.0","id":"#)
        writer.value(id)
        switch result {
        case .success(let value):
            writer.raw(#","result":"#)
            writer.value(value)
        case .failure(let error):
            writer.raw(#","error":"#)
            writer.value(error.json)
        }
        writer.raw("}")
    }
}

/// A reply as a client reads it.
public struct Reply: Hashable, Sendable {
    public var id: JSONValue
    public var result: Result<JSONValue, BusError>

    public init(id: JSONValue, result: Result<JSONValue, BusError>) {
        self.id = id
        self.result = result
    }

    /// Reads the JSON frame of a reply; unknown members are ignored.
    ///
    /// - Throws: `internalError` when it is no JSON-RPC response: then this is no CameraBus.
    public init(parsing bytes: some Collection<UInt8>) throws(BusError) {
        let document: JSONValue
        do {
            document = try JSONValue(parsing: bytes)
        } catch {
            throw BusError(.internalError, "The answer of the bus is not JSON: \(error).")
        }
        guard document["jsonrpc"] == "2.0", let id = document["id"] else {
            throw BusError(.internalError, "The answer of the bus is not a JSON-RPC 2.0 response.")
        }
        switch (document["result"], document["error"]) {
        case (let result?, nil): self.init(id: id, result: .success(result))
        case (nil, let error?): self.init(id: id, result: .failure(BusError(wire: error)))
        default: throw BusError(.internalError, "The answer of the bus has neither or both of result and error.")
        }
    }
}

extension BusError {
    /// An `error` object as it came over the bus.
    ///
    /// A reason that this library doesn't know, of a later server, becomes `internalError`, or JSON-RPC's own by the
    /// code; its word stays in `data.reason`.
    public init(wire error: JSONValue) {
        var data = error["data"]?.object ?? [:]
        let word = data["reason"]?.string
        if let reason = word.flatMap(Reason.init(rawValue:)) {
            data["reason"] = nil
            self.init(reason, error["message"]?.string ?? reason.rawValue, data)
            return
        }
        let reason: Reason =
            switch error["code"]?.integer {
            case -32700: .parseError
            case -32600: .invalidRequest
            case -32601: .methodNotFound
            case -32602: .invalidParams
            default: .internalError
            }
        self.init(reason, error["message"]?.string ?? word ?? reason.rawValue, data)
    }

    /// The `error` member of an error header on a media topic: {reason, message, data}.
    public var headerJSON: JSONValue {
        ["reason": .string(reason.rawValue), "message": .string(message), "data": .object(data)]
    }

    /// Reads the `error` member of an error header.
    public init(header error: JSONValue) {
        var data = error["data"]?.object ?? [:]
        data["reason"] = error["reason"]
        self.init(wire: .members(["message": error["message"], "data": .object(data)]))
    }
}
