import BusProtocol
import CaptureCore
import MovieFile
import Synchronization

/// Sends a movie to a server, with the pauses and the end that files have.
final class StreamSink: MovieSink {
    private let stream: MovieStream
    /// Nanoseconds; nil: it has no end of its own.
    private let maxDuration: Int64?
    private let needsKeyFrame: Bool
    private(set) var end: MovieEnd?
    /// On the clock of frames and sound, without pauses.
    private var first: Int64?
    private var last: Int64 = 0
    private var lost: UInt64 = 0
    /// Nanoseconds that pauses have taken.
    private var paused: Int64 = 0
    private var pausedFrom: Int64?
    /// The last pause, and what those before it have taken.
    private var cut: (times: Range<Int64>, paused: Int64)?
    private var waitsForKeyFrame = false

    /// Nanoseconds that a server may take to answer: less than `movie.start` has, so that its error is told there.
    private static let connectTimeout: Int64 = 5_000_000_000
    /// Nanoseconds that the end may take.
    private static let patience: Int64 = 5_000_000_000
    /// Bytes that may wait to be sent: pixels are large.
    private static let queueSize = 128 << 20

    /// Begins to connect.
    ///
    /// - Throws: what can't be sent. That the server isn't there ends the movie by way of the mailbox.
    init(
        _ url: StreamURL, video: MovieVideo?, audio: MovieAudio?, maxDuration: Int64?, _ mailbox: RecorderMailbox
    ) throws(MovieError) {
        var configuration = StreamConfiguration(url.text, video: video, audio: audio)
        configuration.connectTimeout = Self.connectTimeout
        configuration.queueSize = Self.queueSize
        self.maxDuration = maxDuration
        needsKeyFrame = if case .h264 = video { true } else { false }
        let teller = ConnectionReporter(mailbox)
        stream = try MovieStream(configuration) { teller.tell($0) }
    }

    var statistics: MovieStatistics {
        let sent = stream.statistics
        var statistics = MovieStatistics()
        statistics.recordedDuration = first.map { last - $0 } ?? 0
        statistics.recordedFileSize = Int64(clamping: sent.bytes)
        statistics.frames = sent.frames
        statistics.dropped = sent.droppedFrames + lost
        return statistics
    }

    var hasBegun: Bool {
        let sent = stream.statistics
        return stream.configuration.video == nil ? sent.sounds > 0 : sent.frames > 0
    }

    var connection: SinkConnection? {
        let statistics = stream.statistics
        return SinkConnection(
            isConnected: statistics.state == .connected,
            reconnects: statistics.connections > 0 ? statistics.connections - 1 : 0)
    }

    func setSource(_ layout: FrameLayout) throws(MovieError) {
        try stream.setSource(layout)
    }

    func append(
        _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64, isKeyFrame: Bool
    ) -> Bool {
        guard let time = movieTime(time) else { return false }
        // It builds on what was cut out.
        guard !waitsForKeyFrame || isKeyFrame else { return false }
        guard take(time) else { return false }
        waitsForKeyFrame = false
        return stream.append(
            payload, at: time, presentationDelay: presentationDelay, isKeyFrame: isKeyFrame)
    }

    func append(sound samples: UnsafeRawBufferPointer, at time: Int64) -> Bool {
        guard let time = movieTime(time), take(time) else { return false }
        return stream.append(sound: samples, at: time)
    }

    // False: the movie is as long as it may be.
    private func take(_ time: Int64) -> Bool {
        guard end == nil else { return false }
        let start = first ?? time
        if let maxDuration, time - start >= maxDuration {
            end = .maximumDurationReached
            return false
        }
        (first, last) = (start, max(last, time))
        return true
    }

    func noteDropped(_ frames: UInt64) { lost += frames }

    // MARK: Pauses

    // nil: it is cut out.
    private func movieTime(_ time: Int64) -> Int64? {
        if let pausedFrom, time >= pausedFrom { return nil }
        guard let cut, time < cut.times.upperBound else { return time - paused }
        return time < cut.times.lowerBound ? time - cut.paused : nil
    }

    func pause(at time: Int64) { pausedFrom = pausedFrom ?? time }

    func resume(at time: Int64) {
        guard let from = pausedFrom else { return }
        let time = max(from, time)
        cut = (from..<time, paused)
        paused += time - from
        pausedFrom = nil
        waitsForKeyFrame = needsKeyFrame
    }

    func endFragment() {}

    // MARK: The end

    func finishWriting() -> MovieEnd? {
        stream.close(within: Self.patience)
        return end
    }

    func cancelWriting() { stream.close(within: 0) }
}

/// Reports that a connection is made, lost and made again. Called by the stream's own thread.
private final class ConnectionReporter: Sendable {
    private struct State {
        var hasBeenConnected = false
        var isConnected = false
    }

    private let mailbox: RecorderMailbox
    private let state = Mutex(State())

    init(_ mailbox: RecorderMailbox) { self.mailbox = mailbox }

    func tell(_ change: StreamState) {
        switch change {
        case .connecting, .closed: break
        case .connected:
            let isAgain = state.withLock { state in
                defer { (state.hasBeenConnected, state.isConnected) = (true, true) }
                return state.hasBeenConnected
            }
            if isAgain { mailbox.tell(.didReconnect) }
        case .waiting(let error):
            let before = state.withLock { state in
                defer { state.isConnected = false }
                return state
            }
            guard before.hasBeenConnected else {
                mailbox.end(
                    .writeFailed, .invalidParams("url", "the server can't be reached, or refuses the movie: \(error)"))
                return
            }
            // Not of each try.
            if before.isConnected { mailbox.tell(.didDisconnect(error.description)) }
        }
    }
}
