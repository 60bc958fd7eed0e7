public import BusProtocol
public import JSON

/// The user that a change of somebody's resource comes from.
public struct Editor: Hashable, Sendable {
    public var uid: UInt32
    public var isAdmin: Bool

    public init(uid: UInt32, isAdmin: Bool) {
        self.uid = uid
        self.isAdmin = isAdmin
    }

    /// Lets its user and administrators change something.
    ///
    /// - Parameters:
    ///   - what: as a sentence begins with it: `The rig 'stereo'`.
    ///   - owner: its user; nil: it belongs to the administrators.
    ///   - name: what the program that made it calls itself; nil: unknown.
    ///   - verb: what the editor wants to do with it.
    ///   - data: further members of the error.
    /// - Throws: `unauthorized` {status, needed, owner}.
    public func check(
        _ what: String, of owner: UInt32?, named name: String? = nil, to verb: String = "change it",
        _ data: [String: JSONValue] = [:]
    ) throws(BusError) {
        guard !isAdmin, uid != owner else { return }
        let message: String =
            if let owner {
                "\(what) belongs to \(name.map { "\($0) (uid \(owner))" } ?? "uid \(owner)"); only that user and "
                    + "administrators may \(verb)."
            } else {
                "\(what) belongs to the administrators; only they may \(verb)."
            }
        let members: [String: JSONValue] = [
            "status": "denied", "needed": "admin", "owner": owner.map { JSONValue($0) } ?? .null,
        ]
        throw BusError(.unauthorized, message, members.merging(data) { _, own in own })
    }
}
