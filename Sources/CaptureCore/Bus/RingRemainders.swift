public import JSON

/// The memory of rings that users may still have of workers that have ended: bytes for each user, until ten minutes
/// after the worker's end.
public struct RingRemainders: Hashable, Sendable {
    private struct Key: Hashable {
        let uid: UInt32
        /// Until when it counts, in whole minutes: so there are eleven of each user at most.
        let minute: Int64
    }

    private var bytes: [Key: Int] = [:]

    /// Nanoseconds for which a ring counts after its connection has closed.
    public static let grace: Int64 = 600_000_000_000
    private static let minute: Int64 = 60_000_000_000
    /// Entries that are passed on in the arguments of a process, whose length is limited.
    private static let maximumPassed = 1024

    public init() {}

    /// What counts for a user now.
    ///
    /// - Parameter now: monotonic nanoseconds.
    public func bytes(of uid: UInt32, at now: Int64) -> Int {
        bytes.reduce(0) { $1.key.uid == uid && Self.counts($1.key, now) ? $0 + $1.value : $0 }
    }

    /// A worker has ended of which users had so many bytes.
    public mutating func add(_ used: [UInt32: Int], at now: Int64) {
        bytes = bytes.filter { Self.counts($0.key, now) }
        let minute = (now + Self.grace + Self.minute - 1) / Self.minute
        for (uid, count) in used where count > 0 { bytes[Key(uid: uid, minute: minute), default: 0] += count }
    }

    /// Adds those of another device.
    public mutating func add(_ other: RingRemainders) { bytes.merge(other.bytes, uniquingKeysWith: +) }

    /// Whether nothing counts any more.
    public func isOver(at now: Int64) -> Bool { !bytes.keys.contains { Self.counts($0, now) } }

    private static func counts(_ key: Key, _ now: Int64) -> Bool { now < key.minute * minute }

    /// [[uid, minute, bytes], …], the largest ones if there are too many.
    public var json: JSONValue {
        .array(
            bytes.sorted { $0.value > $1.value }.prefix(Self.maximumPassed).map { key, count in
                [JSONValue(key.uid), JSONValue(key.minute), JSONValue(count)]
            })
    }

    /// Leaves out what is no entry.
    public init(json: JSONValue) {
        for entry in json.array ?? [] {
            let numbers = (entry.array ?? []).compactMap { $0.integer }
            guard numbers.count == 3, let uid = UInt32(exactly: numbers[0]),
                (0...Int64.max / Self.minute).contains(numbers[1]), (0...Int64(1) << 40).contains(numbers[2])
            else { continue }
            bytes[Key(uid: uid, minute: numbers[1])] = Int(numbers[2])
        }
    }
}

extension WorkerReport {
    /// The member `rings` of a status: bytes of rings that count for each user.
    public static func rings(_ used: [UInt32: Int]) -> JSONValue {
        .object(Dictionary(uniqueKeysWithValues: used.map { ("\($0)", JSONValue($1)) }))
    }

    /// What ``rings(_:)`` wrote.
    public static func ringBytes(of status: JSONValue) -> [UInt32: Int] {
        var used: [UInt32: Int] = [:]
        for (uid, bytes) in status["rings"]?.object ?? [:] {
            if let uid = UInt32(uid), let bytes = bytes.integer, bytes > 0 { used[uid] = Int(bytes) }
        }
        return used
    }
}
