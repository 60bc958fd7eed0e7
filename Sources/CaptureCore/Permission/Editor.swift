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

    /// Lets the editor add one more to what users store, if there is a place for it.
    ///
    /// - Parameters:
    ///   - what: `rigs`
    ///   - owners: the user of each stored item.
    ///   - maximum: how many there may be.
    ///   - maximumOfUser: the limit for a user without administrator rights, so that one user cannot fill the table.
    ///   - method: removes one.
    /// - Throws: `limitExceeded` {limit, maximum}.
    func checkPlace(
        for what: String, among owners: [UInt32?], maximum: Int, ofUser maximumOfUser: Int, delete method: String
    ) throws(BusError) {
        let own = owners.count { $0 == uid }
        if !isAdmin, own >= maximumOfUser {
            throw BusError(
                .limitExceeded, "You have \(own) \(what) already; delete one with \(method).",
                ["limit": .string(what), "maximum": JSONValue(maximumOfUser)])
        }
        guard owners.count >= maximum else { return }
        let remedy = isAdmin || own > 0 ? "delete one with \(method)" : "an administrator can delete one (\(method))"
        throw BusError(
            .limitExceeded, "There are \(maximum) \(what) already; \(remedy).",
            ["limit": .string(what), "maximum": JSONValue(maximum)])
    }
}
