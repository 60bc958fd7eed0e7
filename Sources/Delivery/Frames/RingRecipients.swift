import FrameRing

/// The users that received each ring, until no more frames are written to the ring. A user may still have a ring even
/// if the kernel reports no reader: it does not count descriptors with O_PATH.
struct RingRecipients<Form: Hashable> {
    struct User: Hashable {
        var uid: UInt32
        var gid: UInt32
    }

    private struct Entry {
        weak var ring: RingWriter?
        let rendition: Form
        var users: Set<User>

        var isOver: Bool { ring?.isClosed ?? true }
    }

    private var entries: [String: Entry] = [:]

    /// The user is given the ring.
    mutating func add(_ user: User, _ ring: RingWriter, _ rendition: Form) {
        entries[ring.plan.description.ring, default: Entry(ring: ring, rendition: rendition, users: [])]
            .users.insert(user)
    }

    /// Forgets the rings that are never written to again.
    mutating func sweep() { entries = entries.filter { !$0.value.isOver } }

    /// The rings that still get frames and that were given to a user without permission now.
    func rings(unless admits: (_ uid: UInt32, _ gid: UInt32) -> Bool) -> [(rendition: Form, ring: String)] {
        entries.filter { !$0.value.isOver && !$0.value.users.allSatisfy { admits($0.uid, $0.gid) } }
            .map { ($0.value.rendition, $0.key) }
    }
}
