import BusProtocol
import CaptureCore
import JSON
import LinuxIO

/// The memory of rings that users were given. It stays as long as somebody keeps it, also when the ring has ended and
/// the connection is closed; so each user has a budget.
///
/// A ring counts for a user from the moment when it is given until ten minutes after his last connection with it has
/// closed or got another ring. The kernel may report no reader during that time: it does not see all readers. After
/// the ten minutes, a ring that only this user was given counts for as long as the kernel reports a reader.
///
/// Of programs of this process's own user the kernel is believed: they could end this process as well. The bus's
/// recorders of pictures keep no ring, and have as many as their owners have renditions: theirs count for nobody.
struct RingAccount {
    private struct Share {
        var connections = 0
        /// When the last connection closed, or got another ring.
        var left: Int64?
    }

    private struct Entry {
        let bytes: Int
        let readers: SharedMemoryReaders
        var shares: [UInt32: Share] = [:]
        /// Connections of recorders.
        var recorders = 0

        func counts(for uid: UInt32, own: UInt32, at now: Int64) -> Bool {
            guard let share = shares[uid] else { return false }
            guard let left = share.left else { return true }
            let isRecent = now < left + RingAccount.grace
            if uid == own, readers.isEmpty == true { return false }
            return isRecent || (isOnlyHis(uid, own) && readers.isEmpty == false)
        }

        // Programs of this process's own user that have left are believed to keep nothing.
        private func isOnlyHis(_ uid: UInt32, _ own: UInt32) -> Bool {
            recorders == 0 && shares.allSatisfy { user, share in user == uid || (user == own && share.left != nil) }
        }
    }

    private let budget: Int
    private let own: UInt32
    private let remainders: RingRemainders
    private var entries: [String: Entry] = [:]

    /// Nanoseconds for which a ring counts after its connection has closed.
    private static var grace: Int64 { RingRemainders.grace }
    /// Rings of one user: each takes a descriptor of this process.
    private static var maximumRings: Int { 128 }

    /// - Parameters:
    ///   - budget: bytes of one user's rings.
    ///   - own: the user of this process.
    ///   - remainders: what users may still have of workers that have ended.
    init(budget: Int, own: UInt32, _ remainders: RingRemainders) {
        self.budget = budget
        self.own = own
        self.remainders = remainders
    }

    /// Between 64 and 512 MiB, and at most a quarter of what this process may take: many users and devices share it.
    static var defaultBudget: Int {
        let room = MemoryRoom.now().map { Int(clamping: $0.bytes) } ?? ProcessMemory.physicalBytes
        return min(max(min(room, ProcessMemory.physicalBytes) / 4, 64 << 20), 512 << 20)
    }

    /// Whether the ring is counted for any user.
    func has(_ ring: String) -> Bool { entries[ring]?.shares.isEmpty == false }

    /// Bytes that count for each user, without the user of this process, and without what was left of other workers.
    func used(at now: Int64) -> [UInt32: Int] {
        var used: [UInt32: Int] = [:]
        for entry in entries.values {
            for uid in entry.shares.keys where uid != own && entry.counts(for: uid, own: own, at: now) {
                used[uid, default: 0] += entry.bytes
            }
        }
        return used
    }

    /// A connection of the user is to be given a ring, in place of the one that it had, if any.
    ///
    /// - Parameters:
    ///   - replaced: the ring that the connection had until now. Its reader cannot have released it yet, so it does not
    ///     count now.
    ///   - now: monotonic nanoseconds.
    /// - Throws: `limitExceeded` {limit: `ringBytes`}; nothing has changed then.
    mutating func give(
        _ ring: String, bytes: Int, _ readers: SharedMemoryReaders, to uid: UInt32, replacing replaced: String,
        at now: Int64
    ) throws(BusError) {
        if entries[ring]?.counts(for: uid, own: own, at: now) != true {
            guard hasRoom(for: bytes, uid, except: replaced, at: now) else { throw exceeded }
        }
        left(replaced, by: uid, at: now)
        var entry = entries[ring] ?? Entry(bytes: bytes, readers: readers)
        entry.shares[uid, default: Share()].connections += 1
        entry.shares[uid]?.left = nil
        entries[ring] = entry
    }

    /// A connection that was given the ring has closed.
    mutating func left(_ ring: String, by uid: UInt32, at now: Int64) {
        guard var share = entries[ring]?.shares[uid] else { return }
        share.connections -= 1
        if share.connections <= 0 { share.left = now }
        entries[ring]?.shares[uid] = share
    }

    /// A recorder is given a ring.
    mutating func giveRecorder(_ ring: String, bytes: Int, _ readers: SharedMemoryReaders) {
        entries[ring, default: Entry(bytes: bytes, readers: readers)].recorders += 1
    }

    /// A recorder has left, or was given another ring.
    mutating func recorderLeft(_ ring: String) { entries[ring]?.recorders -= 1 }

    /// Forgets the rings that count for nobody any more.
    mutating func sweep(at now: Int64) {
        entries = entries.filter { _, entry in
            entry.recorders > 0 || entry.shares.keys.contains { entry.counts(for: $0, own: own, at: now) }
        }
    }

    // One ring is given in any case: a camera's own may be larger than the budget. But not one of each worker of many.
    private func hasRoom(for bytes: Int, _ uid: UInt32, except replaced: String, at now: Int64) -> Bool {
        let counted = entries.filter { $0.key != replaced && $0.value.counts(for: uid, own: own, at: now) }
        let left = budget - remainders.bytes(of: uid, at: now)
        if counted.isEmpty, left > 0 { return true }
        return bytes <= left - counted.values.reduce(0) { $0 + $1.bytes } && counted.count < Self.maximumRings
    }

    private var exceeded: BusError {
        BusError(
            .limitExceeded,
            "This user's programs have been given as much shared memory of this device as one user may have "
                + "(\(budget >> 20) MiB). A ring counts until ten minutes after its connection has closed: keep "
                + "connections open and ask for fewer sizes, or subscribe to frame/, which needs none.",
            ["limit": "ringBytes", "maximum": JSONValue(budget)])
    }
}
