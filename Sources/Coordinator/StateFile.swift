import CaptureCore
import JSON
import LinuxIO

/// What must outlive the coordinator: locks and the fence counter, in `internal/state.json`, on disk before any reply
/// that rests on it. Tokens are there only as hashes.
struct StateFile {
    private let path: String
    private let bootID: String

    init(path: String) {
        self.path = path
        let text = (try? File.read("/proc/sys/kernel/random/boot_id", limit: 128)) ?? []
        bootID = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// Writes it so that a crash at any moment leaves either the old state or the new.
    func save(_ table: LockTable, epoch: String) throws(SystemError) {
        let document: JSONValue = [
            "version": 1, "boot": .string(bootID), "epoch": .string(epoch), "fence": JSONValue(table.fence),
            "locks": .array(table.locks.filter { !$0.isTransient }.map(Self.json)),
        ]
        try File.replace(path, with: document.serialized + [UInt8(ascii: "\n")], mode: 0o600)
    }

    /// The highest fence that was ever given out here, so that a new coordinator's are higher; 0 when nothing is known.
    func savedFence() -> UInt64 {
        guard let bytes = try? File.read(path, limit: 4 << 20),
            let document = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }),
            let fence = document["fence"]?.integer
        else { return 0 }
        return UInt64(exactly: fence) ?? 0
    }

    private static func json(_ lock: Lock) -> JSONValue {
        .members([
            "id": .string(lock.id), "token": .string(lock.tokenHash), "devices": JSONValue(lock.devices),
            "fence": JSONValue(lock.fence), "note": lock.note.map(JSONValue.string), "since": JSONValue(lock.since),
            "lease": lock.lease.map { JSONValue($0) }, "expires": lock.expires.map { JSONValue($0) },
            "holder": .members([
                "uid": JSONValue(lock.holder.uid), "gid": JSONValue(lock.holder.gid),
                "pid": JSONValue(lock.holder.pid), "startTime": lock.holder.startTime.map { JSONValue($0) },
                "name": .string(lock.holder.name),
            ]),
        ])
    }
}
