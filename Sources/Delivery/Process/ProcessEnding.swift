/// How a process that owns a device or a rig ended: its exit status.
public enum ProcessEnding: Int32, Sendable {
    /// The process was ordered to end, or no coordinator has connected for 30 s.
    case inOrder = 0
    /// A failure that the process cannot repair; the log has the reason.
    case failed = 1
    /// The options are invalid (`EX_USAGE`).
    case usage = 64
    /// Another process holds the lock file of the device or rig (`EX_TEMPFAIL`).
    case deviceTaken = 75
    /// A call of the driver has not returned for 10 s (`EX_IOERR`).
    case deviceHangs = 74
}

/// Why a process that owns a device or a rig cannot start.
public enum StartError: Error, CustomStringConvertible {
    /// Another process holds the lock file of the device or rig.
    case deviceTaken(String)
    case usage(String)
    case failed(String)

    public var description: String {
        switch self {
        case .deviceTaken(let path): "another process has this device or rig: it holds \(path)"
        case .usage(let why), .failed(let why): why
        }
    }

    /// The exit status for this error.
    public var ending: ProcessEnding {
        switch self {
        case .deviceTaken: .deviceTaken
        case .usage: .usage
        case .failed: .failed
        }
    }
}
