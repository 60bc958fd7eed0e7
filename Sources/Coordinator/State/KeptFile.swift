import BusServer
import Glibc
import JSON
import LinuxIO

/// A small file of JSON that outlives the bus: read whole at the start, and written whole, so that a crash at any
/// moment leaves either the old content or the new.
final class KeptFile {
    /// What was found at the start.
    enum Found<Content> {
        case nothing
        case content(Content)
        /// It is none of ours, or damaged, and lies aside now.
        case damaged(aside: String, why: String)
    }

    private let writer: FileWriter

    init(_ loop: Loop, path: String) throws(SystemError) { writer = try FileWriter(loop, path: path) }

    /// Reads a file. A damaged one is moved aside and kept.
    ///
    /// - Parameters:
    ///   - limit: bytes; a larger file is not ours.
    ///   - isOwn: it must belong to this user, and no other user may be able to write it.
    ///   - parse: throws where the JSON is not what this version writes.
    /// - Throws: what keeps it from being read now. It may be whole, and nothing is to be written over it.
    static func read<Content>(
        _ path: String, limit: Int, isOwn: Bool = false, _ parse: (JSONValue) throws -> Content
    ) throws(SystemError) -> Found<Content> {
        do {
            let bytes = isOwn ? try File.readOwn(path, limit: limit) : try File.readAtOnce(path, limit: limit)
            return .content(try parse(try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }))
        } catch let error as SystemError where error.code == ENOENT {
            return .nothing
        } catch let error as SystemError where !isForeign(error, isOwn) {
            throw error
        } catch {
            let aside = path + ".damaged"
            rename(path, aside)
            return .damaged(aside: aside, why: "\(error)")
        }
    }

    private static func isForeign(_ error: SystemError, _ isOwn: Bool) -> Bool {
        error.code == EFBIG || isOwn && [EPERM, ELOOP, EINVAL, EACCES].contains(error.code)
    }

    /// Has the file hold this, or something newer; the body is called when it does, or with what kept it from that.
    func write(_ json: JSONValue, then body: @escaping (SystemError?) -> Void) {
        writer.write(Self.bytes(json), then: body)
    }

    /// Waits until all is written.
    func close() { writer.end() }

    /// Writes a file at once, for what lies where writing takes no time.
    static func write(_ json: JSONValue, to path: String) throws(SystemError) {
        try File.replace(path, with: bytes(json), mode: 0o600)
    }

    private static func bytes(_ json: JSONValue) -> [UInt8] { json.serialized + [UInt8(ascii: "\n")] }
}
