public import LinuxIO

/// Why memory can't be used as a ring.
public enum RingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It could not be made or mapped.
    case system(SystemError)
    /// Making it would take more memory than this process may have, or so many times its size is not free.
    case noRoom(needed: Int, part: UInt64, MemoryRoom)
    /// It holds no ring of this version, or one that can't be.
    case notARing(Flaw)

    /// What is wrong with a head, in the words of `Protocol/vectors/ring-heads.json`.
    public enum Flaw: String, Error, Hashable, Sendable, CaseIterable {
        case tooShort, magic, version, slots, keep, recordBytes, tableOffset, pixelsOffset, slotBytes, size, text
        case dimensions, planes, kind, sound
    }

    public var description: String {
        switch self {
        case .system(let error): error.description
        case .noRoom(let needed, let part, let room):
            "a ring of \(needed >> 20) MiB doesn't go into the \(room.bytes >> 20) MiB that are free"
                + (part > 1 ? ", as \(part) times as much has to be" : "") + "; \(room.remedy)"
        case .notARing(let flaw): "the shared memory is not a ring that this program can read: \(flaw.rawValue)"
        }
    }
}
