public import CaptureCore

/// How a recorder is started.
public struct RecorderOptions: Sendable {
    public var request: MovieRequest
    public var runtimeDirectory: String
    /// How long the recorder goes on without a coordinator.
    public var coordinatorGraceMilliseconds: Int64 = 30_000
    /// How long a device that has gone is waited for.
    public var deviceWaitMilliseconds: Int64 = 10_000
    /// How long the first sound of what begins with it is waited for, and another camera that a movie is to go on with.
    /// Both are less than a coordinator waits.
    public var soundWaitMilliseconds: Int64 = 5000
    public var inputWaitMilliseconds: Int64 = 6000
    /// How much may wait for the disk or the encoder; what comes beyond it is left out.
    public var queueMilliseconds: Int64 = 8000

    public init(_ request: MovieRequest, runtimeDirectory: String) {
        self.request = request
        self.runtimeDirectory = runtimeDirectory
    }
}

/// How a recorder ended: its exit status.
public enum RecorderEnding: Int32, Sendable {
    /// The movie has ended, for whatever reason; what became of it has been told.
    case inOrder = 0
    /// Something failed that can't be mended here; the log says what.
    case failed = 1
    /// The options make no sense (`EX_USAGE`).
    case usage = 64
    /// Another recorder has the movie (`EX_TEMPFAIL`).
    case movieTaken = 75
}

/// Why a recorder can't be.
public enum RecorderError: Error, CustomStringConvertible, Sendable {
    case usage(String)
    case movieTaken(String)
    case failed(String)

    public var ending: RecorderEnding {
        switch self {
        case .usage: .usage
        case .movieTaken: .movieTaken
        case .failed: .failed
        }
    }

    public var description: String {
        switch self {
        case .usage(let text), .failed(let text): text
        case .movieTaken(let path): "another recorder has \(path)"
        }
    }
}
