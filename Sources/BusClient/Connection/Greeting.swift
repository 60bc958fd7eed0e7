public import JSON

/// What the bus reports about itself to a new client: the result of `bus.hello`.
public struct Greeting: Hashable, Sendable {
    /// The server's version.
    public var version: String
    /// What it can do, beside what every bus can.
    public var features: Set<String>
    /// Who this client is to it. A pid of 0: a process that it can't see, whose locks last only as long as they are
    /// renewed.
    public var uid: Int64
    public var gid: Int64
    public var pid: Int64
    /// By media type: `notDetermined`, `restricted`, `denied` or `authorized`.
    public var authorization: [String: String]
    /// Of this run of the coordinator.
    public var epoch: String
    /// By name: `requestBytes` and others.
    public var limits: [String: Int64]
    /// All of it, as it came.
    public var json: JSONValue

    init(_ json: JSONValue) throws(ClientError) {
        guard json["server"]?.string == "CameraBus", let version = json["version"]?.string,
            let epoch = json["epoch"]?.string
        else { throw .unreadable("The server at the command socket is not a CameraBus.") }
        self.version = version
        self.epoch = epoch
        self.json = json
        features = Set(json["features"]?.array?.compactMap(\.string) ?? [])
        uid = json["you"]?["uid"]?.integer ?? -1
        gid = json["you"]?["gid"]?.integer ?? -1
        pid = json["you"]?["pid"]?.integer ?? 0
        authorization = json["authorization"]?.object?.compactMapValues(\.string) ?? [:]
        limits = json["limits"]?.object?.compactMapValues(\.integer) ?? [:]
    }
}
