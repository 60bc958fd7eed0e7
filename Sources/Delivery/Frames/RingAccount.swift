import BusProtocol
import FrameRing
import JSON
import LinuxIO

/// The memory of rings that users were given. It stays as long as a reader keeps it, also when the ring has ended and
/// the connection is closed; so each user has a budget.
///
/// A ring counts for a user until nobody has its memory any more. Where several users were given it, or the kernel
/// cannot say, it counts until ten minutes after the user's last connection that was given it has closed.
struct RingAccount<Form: Hashable> {
    /// Who receives rings.
    struct User: Hashable {
        var uid: UInt32
        var gid: UInt32
    }

    private struct Share {
        var connections = 0
        /// When the last connection closed.
        var closed: Int64?
    }

    private struct Entry {
        let rendition: Form
        let bytes: Int
        let readers: SharedMemoryReaders
        var shares: [User: Share] = [:]

        func counts(for uid: UInt32, at now: Int64) -> Bool {
            shares.contains { user, share in
                user.uid == uid && (isAlone(uid) || share.closed.map { now < $0 + RingAccount.grace } ?? true)
            }
        }
        private func isAlone(_ uid: UInt32) -> Bool {
            readers.isEmpty != nil && shares.keys.allSatisfy { $0.uid == uid }
        }
    }

    private let budget: Int
    private var entries: [String: Entry] = [:]

    /// Nanoseconds for which a ring counts after its connection has closed.
    private static var grace: Int64 { 600_000_000_000 }
    /// Rings of one user: each takes a descriptor of this process.
    private static var maximumRings: Int { 128 }

    /// - Parameter budget: bytes of one user's rings.
    init(budget: Int) { self.budget = budget }

    /// Between 64 and 512 MiB, and at most a quarter of what this process may take: many users and devices share it.
    static var defaultBudget: Int {
        let room = MemoryRoom.now().map { Int(clamping: $0.bytes) } ?? ProcessMemory.physicalBytes
        return min(max(min(room, ProcessMemory.physicalBytes) / 4, 64 << 20), 512 << 20)
    }

    /// Whether the ring is counted for any user.
    func has(_ ring: String) -> Bool { entries[ring] != nil }

    /// A connection of the user is to be given a ring.
    ///
    /// - Parameters:
    ///   - replaced: the ring that the connection had until now. Its reader cannot have released it yet, so it does not
    ///     count.
    ///   - now: monotonic nanoseconds.
    /// - Throws: `limitExceeded` {limit: `ringBytes`}; nothing has changed then.
    mutating func give(
        _ ring: String, _ rendition: Form, bytes: Int, _ readers: SharedMemoryReaders, to user: User,
        replacing replaced: String, at now: Int64
    ) throws(BusError) {
        if entries[ring]?.counts(for: user.uid, at: now) != true,
            !hasRoom(for: bytes, user.uid, except: replaced, at: now)
        {
            _ = sweep(at: now)
            guard hasRoom(for: bytes, user.uid, except: replaced, at: now) else { throw exceeded }
        }
        var entry = entries[ring] ?? Entry(rendition: rendition, bytes: bytes, readers: readers)
        entry.shares[user, default: Share()].connections += 1
        entry.shares[user]?.closed = nil
        entries[ring] = entry
    }

    /// A connection that was given the ring has closed.
    mutating func closed(_ ring: String, of user: User, at now: Int64) {
        guard var share = entries[ring]?.shares[user] else { return }
        share.connections -= 1
        if share.connections <= 0 { share.closed = now }
        entries[ring]?.shares[user] = share
    }

    /// Releases the memory that nobody has any more.
    ///
    /// - Returns: whether there was any.
    mutating func sweep(at now: Int64) -> Bool {
        let before = entries.count
        entries = entries.filter { _, entry in
            if let isEmpty = entry.readers.isEmpty { return !isEmpty }
            return entry.shares.values.contains { share in share.closed.map { now < $0 + Self.grace } ?? true }
        }
        return entries.count < before
    }

    /// The rings that a user was given who is not admitted any more.
    func rings(unless admits: (_ uid: UInt32, _ gid: UInt32) -> Bool) -> [(rendition: Form, ring: String)] {
        entries.filter { !$0.value.shares.keys.allSatisfy { admits($0.uid, $0.gid) } }
            .map { ($0.value.rendition, $0.key) }
    }

    // One ring is given in any case: a camera's own may be larger than the budget.
    private func hasRoom(for bytes: Int, _ uid: UInt32, except replaced: String, at now: Int64) -> Bool {
        let counted = entries.filter { $0.key != replaced && $0.value.counts(for: uid, at: now) }
        let sum = counted.values.reduce(0) { $0 + $1.bytes }
        return counted.isEmpty || (bytes <= budget - sum && counted.count < Self.maximumRings)
    }

    private var exceeded: BusError {
        BusError(
            .limitExceeded,
            "This user's programs hold as much shared memory of this device as one user may (\(budget >> 20) MiB): "
                + "release rings that are not read any more (unmap them, close their descriptors), or subscribe to "
                + "frame/, which needs none.",
            ["limit": "ringBytes", "maximum": JSONValue(budget)])
    }
}
