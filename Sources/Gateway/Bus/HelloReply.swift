import BusProtocol
import JSON

/// The answer of `bus.hello` for a client on another machine: with the gateway's sockets instead of the bus's.
enum HelloReply {
    /// - Parameter bytes: the reply as the bus gave it.
    /// - Returns: the same with the gateway's endpoints; as it came where it is no answer with endpoints.
    static func rewritten(_ bytes: [UInt8], _ address: TCPAddress) -> [UInt8] {
        guard let reply = try? JSONValue(parsing: bytes), var members = reply.object,
            var result = members["result"]?.object, var endpoints = result["endpoints"]?.object
        else { return bytes }
        // The client knows at which of this machine's addresses it is.
        func place(_ authenticator: TCPAddress.Door) -> JSONValue {
            .string("tcp://*:\(address.port + authenticator.rawValue)")
        }
        endpoints["command"] = place(.command)
        endpoints["events"] = place(.events)
        endpoints["media"] = .object((endpoints["media"]?.object ?? [:]).mapValues { _ in place(.media) })
        result["endpoints"] = .object(endpoints)
        members["result"] = withoutLocal(result)
        return JSONValue.object(members).serialized
    }

    /// The same for a page, which has all of it over its one connection.
    static func withoutPlaces(_ bytes: [UInt8]) -> [UInt8] {
        guard let reply = try? JSONValue(parsing: bytes), var members = reply.object,
            var result = members["result"]?.object
        else { return bytes }
        result["endpoints"] = nil
        members["result"] = withoutLocal(result)
        return JSONValue.object(members).serialized
    }

    // What lies in this machine's memory is not for others.
    private static func withoutLocal(_ result: [String: JSONValue]) -> JSONValue {
        let local: Set<String> = [Feature.rings.rawValue, Feature.sources.rawValue]
        var result = result
        let features = result["features"]?.array?.filter { feature in
            feature.string.map { !local.contains($0) } ?? true
        }
        if let features { result["features"] = .array(features) }
        return .object(result)
    }
}
