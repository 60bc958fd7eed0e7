package import CaptureCore

/// Decides which users may connect to the sockets of a device or rig. The last access list holds, also when the
/// coordinator has ended.
package final class AccessControl {
    package private(set) var list: AccessList
    /// The users whose refusal was reported since the last change.
    private var reported: Set<UInt32> = []
    /// Called when a user is refused for the first time since the last change. It returns false if the report could
    /// not be sent; then it is called again at the user's next attempt.
    package var onRefused: ((_ uid: UInt32, _ gid: UInt32, _ pid: Int32) -> Bool)?
    /// Refused connections since the start of the process.
    package private(set) var refused: UInt64 = 0

    /// Other users than the bus's own and root may connect.
    private let hasOthers: Bool

    private static let maximumReported = 1024

    package init(_ list: AccessList, hasOthers: Bool = true) {
        self.list = list
        self.hasOthers = hasOthers
    }

    /// Whether the user may connect.
    package func admits(uid: UInt32, gid: UInt32) -> Bool { list.admits(uid: uid, gid: gid) }

    /// What a user is, as far as shares are concerned. Of the groups only those count that the user database has.
    package func standing(of uid: UInt32) -> RenditionShares.Standing {
        if uid == 0 || !hasOthers { return .administrator }
        if uid == list.policy.owner { return .bus }
        if uid == list.policy.gateway { return .gateway }
        return list.policy.role(uid: uid, groups: []) == .admin ? .administrator : .user
    }

    /// Whether the user may connect; a refusal is counted, and reported once for each user.
    package func admit(uid: UInt32, gid: UInt32, pid: Int32) -> Bool {
        if admits(uid: uid, gid: gid) { return true }
        refused += 1
        if reported.count < Self.maximumReported, !reported.contains(uid), onRefused?(uid, gid, pid) == true {
            reported.insert(uid)
        }
        return false
    }

    /// Replaces the access list.
    ///
    /// - Returns: whether the decision about a user has changed.
    package func change(_ list: AccessList) -> (_ uid: UInt32, _ gid: UInt32) -> Bool {
        let before = self.list
        self.list = list
        forgetReported()
        return { before.admits(uid: $0, gid: $1) != list.admits(uid: $0, gid: $1) }
    }

    /// Refusals are notified again, for a new coordinator.
    package func forgetReported() { reported = [] }
}
