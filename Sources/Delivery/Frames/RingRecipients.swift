import FrameRing

/// Who was given which ring, as long as frames may still come in it. Whoever was given a ring once may have it still:
/// a descriptor of its memory can be kept so that the kernel counts no reader.
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

    /// The rings in which frames may still come, and which a user was given who is not admitted any more.
    func rings(unless admits: (_ uid: UInt32, _ gid: UInt32) -> Bool) -> [(rendition: Form, ring: String)] {
        entries.filter { !$0.value.isOver && !$0.value.users.allSatisfy { admits($0.uid, $0.gid) } }
            .map { ($0.value.rendition, $0.key) }
    }
}
