import CaptureCore
import Glibc
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
    func save(_ locks: [Lock], fence: UInt64, epoch: String) throws(SystemError) {
        let document: JSONValue = [
            "version": 1, "boot": .string(bootID), "epoch": .string(epoch), "fence": JSONValue(fence),
            "locks": .array(locks.map(Self.json)),
        ]
        try File.replace(path, with: document.serialized + [UInt8(ascii: "\n")], mode: 0o600)
    }

    /// The file is there and can't be read: nobody knows then which fences were given out.
    struct Damaged: Error, CustomStringConvertible {
        let path: String
        let why: String

        var description: String {
            "\(path) can't be read (\(why)); when no camerabus-worker runs any more, remove it"
        }
    }

    /// A fence that no lock here has ever had a higher one than; 0 when there were none.
    func savedFence() throws(Damaged) -> UInt64 {
        do {
            let bytes = try File.read(path, limit: 4 << 20)
            let document = try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
            guard let fence = document["fence"]?.integer.flatMap({ UInt64(exactly: $0) }) else {
                throw Damaged(path: path, why: "it has no fence")
            }
            return fence
        } catch let error as SystemError where error.code == ENOENT {
            return 0
        } catch let error as Damaged {
            throw error
        } catch {
            throw Damaged(path: path, why: "\(error)")
        }
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
