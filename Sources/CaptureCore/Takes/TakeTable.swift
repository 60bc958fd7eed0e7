public import BusProtocol
public import JSON

/// The takes that have not ended, in their stored form. A value; its owner decides when to write it to disk.
public struct TakeTable: Hashable, Sendable, StoredTable {
    public static let version = 1
    public static let maximumTakes = 64
    public static let maximumOfUser = 16

    /// By id.
    private var byID: [String: KeptTake] = [:]
    public private(set) var leftOut: [String] = []

    public init() {}

    public subscript(id: String) -> KeptTake? { byID[id] }

    /// In the order in which they were made.
    public var takes: [KeptTake] { byID.values.sorted { ($0.made, $0.id) < ($1.made, $1.id) } }

    /// The take of that id.
    ///
    /// - Throws: `takeNotFound`.
    public func take(_ id: String) throws(BusError) -> KeptTake {
        guard let take = byID[id] else {
            throw BusError(
                .takeNotFound,
                "There is no take '\(id.prefix(64))', or it has ended; take.list lists the takes.",
                ["take": .string(id)])
        }
        return take
    }

    /// Adds a take.
    ///
    /// - Throws: `limitExceeded`.
    public mutating func add(_ take: KeptTake) throws(BusError) {
        let ofUser = byID.values.count { $0.owner.uid == take.owner.uid }
        guard byID.count < Self.maximumTakes, ofUser < Self.maximumOfUser else {
            let maximum = ofUser < Self.maximumOfUser ? Self.maximumTakes : Self.maximumOfUser
            throw BusError(
                .limitExceeded, "There are \(maximum) takes already; finish or discard one.",
                ["limit": "takes", "maximum": JSONValue(maximum)])
        }
        byID[take.id] = take
    }

    /// Changes a take.
    ///
    /// - Throws: `takeNotFound`, and what the body throws; nothing is changed then.
    public mutating func change<Value>(
        _ id: String, _ body: (inout KeptTake) throws(BusError) -> Value
    ) throws(BusError) -> Value {
        var take = try take(id)
        let value = try body(&take)
        byID[id] = take
        return value
    }

    /// Removes a take that has ended.
    public mutating func remove(_ id: String) { byID[id] = nil }

    // MARK: As JSON

    public var json: JSONValue {
        ["version": JSONValue(Self.version), "takes": .object(byID.mapValues(\.keptJSON))]
    }

    /// Reads what ``json`` writes. A take that cannot be read is left out; the others are kept.
    public init(json: JSONValue) throws(StoredTableError) {
        let members = try StoredTableError.members("takes", of: json, version: Self.version)
        guard members.count <= 4 * Self.maximumTakes else {
            throw StoredTableError(description: "it has too many entries")
        }
        for (id, value) in members {
            guard DeviceID.isValid(id) else {
                leftOut.append("'\(id.prefix(64))' is no take's id")
                continue
            }
            do throws(BusError) {
                byID[id] = try KeptTake(id: id, keptJSON: value)
            } catch {
                leftOut.append("the take '\(id)' can't be read: \(error.message)")
            }
        }
    }
}
