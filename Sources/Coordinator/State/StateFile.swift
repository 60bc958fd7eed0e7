import CaptureCore
import Glibc
import JSON
import LinuxIO

/// `internal/state.json`: what must outlive the coordinator, on disk before any reply that rests on it. Tokens are
/// there only as hashes.
struct StateFile {
    /// What was found at the start.
    enum Found {
        /// No coordinator has written one here; or it was taken away, while there are traces of one.
        case nothing(hasTraces: Bool)
        case kept(KeptState)
        /// It can't be used, and lies aside now. The fence is what it says of it, if it says anything.
        case damaged(why: String, fence: UInt64?)
    }

    let bootID: String
    private let path: String

    init(path: String) {
        self.path = path
        let text = (try? File.read("/proc/sys/kernel/random/boot_id", limit: 128)) ?? []
        bootID = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// Writes it so that a crash at any moment leaves either the old state or the new.
    func save(_ state: KeptState) throws(SystemError) {
        try File.replace(path, with: state.json.serialized + [UInt8(ascii: "\n")], mode: 0o600)
    }

    /// Reads it. A file of another kind or a damaged one is moved aside and kept.
    ///
    /// - Throws: what has nothing to do with the file, as a lack of descriptors; and that it could not be moved aside.
    func load() throws(SystemError) -> Found {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try File.readOwn(path, limit: 16 << 20)
        } catch {
            switch error.code {
            case ENOENT: return .nothing(hasTraces: hasTraces)
            case EACCES, EPERM, ELOOP, EISDIR, EFBIG, EIO, ENXIO, EINVAL:
                return try putAside(why: "\(error)", fence: nil)
            default: throw error
            }
        }
        let json: JSONValue
        do {
            json = try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
        } catch {
            return try putAside(why: "\(error)", fence: nil)
        }
        do throws(KeptState.Unreadable) {
            return .kept(try KeptState(json: json))
        } catch {
            return try putAside(why: "\(error)", fence: KeptState.fence(of: json))
        }
    }

    private func putAside(why: String, fence: UInt64?) throws(SystemError) -> Found {
        var aside = path + ".damaged"
        if rename(path, aside) != 0 {
            aside += "-\(hexadecimal(randomBytes(4)))"
            try check("rename", path) { rename(path, aside) }
        }
        return .damaged(why: why, fence: fence)
    }

    // Workers' lock files stay when they end, and go with the directory at the next boot.
    private var hasTraces: Bool {
        guard let slash = path.lastIndex(of: "/"), let folder = opendir(String(path[..<slash])) else { return false }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".lock") { return true }
        }
        return false
    }
}
