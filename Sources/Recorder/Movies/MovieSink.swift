import CaptureCore
import MovieFile

/// Where a movie's frames and sound go: a file, or a server. Used by one thread at a time.
protocol MovieSink: AnyObject {
    var statistics: MovieStatistics { get }
    /// Why it takes nothing more; nil: it does.
    var end: MovieEnd? { get }
    /// Of one that has taken something: whether something of it has come to where it goes.
    var hasBegun: Bool { get }
    /// Of a server: whether it is there, and how often it was connected to again; nil of a file.
    var connection: SinkConnection? { get }

    /// Goes on with pictures that lie otherwise in memory.
    func setSource(_ layout: FrameLayout) throws(MovieError)
    /// - Parameter presentationDelay: nanoseconds from that time to when it is shown.
    /// - Returns: false: it was left out.
    func append(
        _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64, isKeyFrame: Bool
    ) throws(MovieError) -> Bool
    func append(sound samples: UnsafeRawBufferPointer, at time: Int64) throws(MovieError) -> Bool
    /// So many frames were lost before they came here.
    func noteDropped(_ frames: UInt64)
    func pause(at time: Int64) throws(MovieError)
    func resume(at time: Int64)
    func endFragment() throws(MovieError)
    /// - Returns: why it ended, if not because of this.
    func finishWriting() throws(MovieError) -> MovieEnd?
    /// Ends it, and leaves nothing.
    func cancelWriting()
}

struct SinkConnection: Hashable, Sendable {
    var isConnected: Bool
    var reconnects: UInt64
}

extension MovieWriter: MovieSink {
    var hasBegun: Bool { true }
    var connection: SinkConnection? { nil }
}
