import BusProtocol
public import LinuxIO

/// Why the capture library can't do something.
public enum LibraryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What the system refused.
    case file(SystemError)
    /// That is no id of an entry.
    case invalidID(String)
    /// A path is relative, or leads out of the library by `..`.
    case invalidPath(String)
    /// There is an entry of this id already.
    case exists(String)
    /// The entry is there, and is none that this version reads. It is left as it is.
    case unreadable(id: String, why: String)

    public var description: String {
        switch self {
        case .file(let error): "\(error)"
        case .invalidID(let id): "'\(id)' is not an id: \(DeviceID.form)"
        case .invalidPath(let path): "'\(path)' is no path of a file in the library"
        case .exists(let id): "the library already has an entry \(id)"
        case .unreadable(let id, let why): "the entry \(id) can't be read: \(why)"
        }
    }
}
