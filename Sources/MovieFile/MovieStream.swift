public import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import Synchronization

/// Sends a movie to a media server, by RTSP, SRT or RTMP, as ``MovieWriter`` writes one to a file.
///
/// What is added goes into a bounded queue and never waits; a thread of its own encodes and sends it, connects, and
/// does so again when the connection is lost. Each connection begins with a key frame, at time zero. For any thread.
public final class MovieStream: Sendable {
    public let configuration: StreamConfiguration

    private let run: Run
    private let thread: NamedThread

    /// Begins to connect. An encoder that can't be made, or a codec that can't be sent, is an error here; a server that
    /// isn't there is not.
    ///
    /// - Parameter onChange: told of each change, on the stream's own thread, which has to wait for it.
    public init(
        _ configuration: StreamConfiguration, onChange: @escaping @Sendable (StreamState) -> Void = { _ in }
    ) throws(MovieError) {
        self.configuration = configuration
        let transport = try configuration.check()
        do throws(MediaError) {
            if let video = configuration.video { _ = try PictureTrack(video, .mkv) }
            if let audio = configuration.audio { _ = try SoundTrack(audio) }
        } catch {
            throw .media(error)
        }
        do throws(SystemError) {
            let run = Run(configuration, transport, wake: try EventDescriptor(), onChange)
            thread = try NamedThread(name: "stream") { run.loop() }
            self.run = run
        } catch {
            throw .file(error)
        }
    }

    deinit { close(within: 0) }

    public var statistics: StreamStatistics { run.statistics }

    /// The next frames have another layout, as in ``MovieWriter/setSource(_:)``.
    ///
    /// - Throws: when what comes is not encoded here, or these can't be.
    public func setSource(_ layout: FrameLayout) throws(MovieError) {
        guard case .encoded = configuration.video, PictureTrack.encodable.contains(layout.pixelFormat) else {
            throw .unsupported("other pictures in what is sent to a server as it comes")
        }
        run.setSource(layout)
    }

    /// Adds a frame, which is copied.
    ///
    /// - Parameter presentationDelay: as of ``MovieWriter/append(_:at:presentationDelay:isKeyFrame:)``.
    /// - Returns: false if it was dropped at once, which is counted.
    @discardableResult
    public func append(
        _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64 = 0, isKeyFrame: Bool = true
    ) -> Bool {
        run.append(.frame, payload, at: time, presentationDelay: presentationDelay, isKeyFrame: isKeyFrame)
    }

    /// Adds sound, of whole moments, which is copied.
    ///
    /// - Returns: false if it was dropped at once, which is counted.
    @discardableResult
    public func append(sound samples: UnsafeRawBufferPointer, at time: Int64) -> Bool {
        run.append(.sound, samples, at: time, isKeyFrame: true)
    }

    /// Sends what is in the queue, if it is connected, says that it is over, and waits until that is done. Nothing is
    /// taken afterwards.
    ///
    /// - Parameter duration: nanoseconds that this may take, at most a day, and a second more. What takes longer, as
    ///   the system's look-up of a server's name can, ends by itself later.
    public func close(within duration: Int64) {
        let time = MonotonicClock.now() + min(max(0, duration), Self.longestClose)
        run.close(by: time)
        // Others may wait as well.
        if run.ended.wait(until: time + Self.closeSlack) { run.ended.signal() }
    }

    /// Nanoseconds; libavformat looks ten times a second whether it is to stop.
    private static let (longestClose, closeSlack): (Int64, Int64) = (86_400_000_000_000, 1_000_000_000)
}

extension MovieStream {
    /// What the stream's thread works with.
    private final class Run: @unchecked Sendable {
        // What more than one thread touches is behind the mutex, or made for it; the rest is the thread's own.
        let ended = Semaphore()

        private let configuration: StreamConfiguration
        private let transport: StreamTransport
        private let wake: EventDescriptor
        private let onChange: @Sendable (StreamState) -> Void
        private let deadline = MediaDeadline()
        private let shared: Mutex<Shared>
        /// How frames lie in memory; nil: as the configuration says.
        private var source: FrameLayout?
        /// The one that is being sent.
        private var outgoing = UnsafeMutableRawBufferPointer(start: nil, count: 0)

        /// Behind the mutex as well, which can't hold what a payload's bytes are given to.
        private let queue: PreRollRing

        private struct Shared {
            var statistics = StreamStatistics()
            var isClosing = false
            /// Of a frame.
            var leastBytes: Int
            /// How frames lie in memory from the next one on, if that is otherwise.
            var nextSource: FrameLayout?
            /// How they do from those times on; the thread has not come to any but the first.
            var sources: [(time: Int64, layout: FrameLayout)] = []
        }

        private struct Outgoing {
            var kind: PreRollRing.Kind
            var time: Int64
            var presentationDelay: Int64
            var isKeyFrame: Bool
            var count: Int
            /// How it lies in memory, if that is otherwise than before.
            var source: FrameLayout?
        }

        init(
            _ configuration: StreamConfiguration, _ transport: StreamTransport, wake: EventDescriptor,
            _ onChange: @escaping @Sendable (StreamState) -> Void
        ) {
            self.configuration = configuration
            self.transport = transport
            self.wake = wake
            let leastBytes = if case .encoded(let layout, _) = configuration.video { layout.totalBytes } else { 1 }
            shared = Mutex(Shared(leastBytes: leastBytes))
            self.onChange = onChange
            queue = PreRollRing(duration: configuration.queueDuration, bytes: configuration.queueSize)
        }

        deinit { outgoing.deallocate() }

        // MARK: For any thread

        var statistics: StreamStatistics {
            shared.withLock { shared in
                var statistics = shared.statistics
                statistics.droppedFrames += queue.letGo.frames
                statistics.droppedSounds += queue.letGo.sounds
                return statistics
            }
        }

        func setSource(_ layout: FrameLayout) {
            shared.withLock { ($0.nextSource, $0.leastBytes) = (layout, layout.totalBytes) }
        }

        func append(
            _ kind: PreRollRing.Kind, _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64 = 0,
            isKeyFrame: Bool
        ) -> Bool {
            let isTaken = shared.withLock { shared in
                guard !shared.isClosing, payload.count >= shared.leastBytes || kind == .sound else {
                    if kind == .frame {
                        shared.statistics.droppedFrames += 1
                    } else {
                        shared.statistics.droppedSounds += 1
                    }
                    return false
                }
                if kind == .frame, let next = shared.nextSource {
                    // While there is no connection, frames are let go of that the thread never comes to.
                    let oldest = queue.startTime ?? time
                    while shared.sources.count > 1, shared.sources[1].time <= oldest { shared.sources.removeFirst() }
                    shared.sources.append((time, next))
                    shared.nextSource = nil
                }
                return queue.append(
                    kind, payload, at: time, presentationDelay: presentationDelay, isKeyFrame: isKeyFrame)
            }
            if isTaken { wake.signal() }
            return isTaken
        }

        func close(by time: Int64) {
            let isConnected = shared.withLock { shared in
                shared.isClosing = true
                return shared.statistics.state == .connected
            }
            deadline.end(by: isConnected ? time : 0)
            wake.signal()
        }

        // MARK: The thread

        func loop() {
            var delay = configuration.retryDelays.lowerBound
            while !isClosing {
                tell(.connecting)
                do throws(MediaError) {
                    deadline.set(MonotonicClock.now() + configuration.connectTimeout)
                    let link = try StreamLink(configuration, transport, deadline)
                    if let source { try link.setSource(source) }
                    // Frames without the one that they build on.
                    shared.withLock { _ in queue.skipToKeyFrame() }
                    tell(.connected)
                    while try sendNext(link) { delay = configuration.retryDelays.lowerBound }
                    deadline.set(MonotonicClock.now() + configuration.writeTimeout)
                    try link.finish()
                } catch {
                    guard !isClosing else { break }
                    tell(.waiting(.media(error)))
                    wait(until: MonotonicClock.now() + delay)
                    delay = min(delay * 2, configuration.retryDelays.upperBound)
                }
            }
            tell(.closed)
            ended.signal()
        }

        private var isClosing: Bool { shared.withLock { $0.isClosing } }

        private func tell(_ state: StreamState) {
            shared.withLock { shared in
                shared.statistics.state = state
                if case .waiting(let error) = state { shared.statistics.failure = error }
                if state == .connected { shared.statistics.connections += 1 }
            }
            onChange(state)
        }

        // False: it is over.
        private func sendNext(_ link: StreamLink) throws(MediaError) -> Bool {
            while true {
                if let next = take() {
                    deadline.set(MonotonicClock.now() + configuration.writeTimeout)
                    let bytes = UnsafeRawBufferPointer(rebasing: outgoing[..<next.count])
                    let written = try send(next, bytes, link)
                    count(next.kind, written)
                    return true
                }
                guard !isClosing else { return false }
                sleep(until: .max)
            }
        }

        private func send(
            _ next: Outgoing, _ bytes: UnsafeRawBufferPointer, _ link: StreamLink
        ) throws(MediaError) -> Written? {
            do throws(MediaError) {
                if let new = next.source { try link.setSource(new) }
                return try link.send(
                    next.kind, bytes, at: next.time, presentationDelay: next.presentationDelay,
                    isKeyFrame: next.isKeyFrame)
            } catch {
                count(next.kind, nil)
                throw error
            }
        }

        private func count(_ kind: PreRollRing.Kind, _ written: Written?) {
            shared.withLock { shared in
                switch (kind, written) {
                case (.frame, let written?):
                    shared.statistics.frames += 1
                    shared.statistics.bytes += UInt64(written.bytes)
                case (.sound, let written?):
                    shared.statistics.sounds += 1
                    shared.statistics.bytes += UInt64(written.bytes)
                case (.frame, nil): shared.statistics.droppedFrames += 1
                case (.sound, nil): shared.statistics.droppedSounds += 1
                }
            }
        }

        // The oldest, whose bytes are in `outgoing` then, so that nobody waits while it is sent.
        private func take() -> Outgoing? {
            shared.withLock { shared in
                queue.takeFirst { item, bytes in
                    var new: FrameLayout?
                    while item.kind == .frame, let first = shared.sources.first, item.time >= first.time {
                        (new, source) = (first.layout, first.layout)
                        shared.sources.removeFirst()
                    }
                    if outgoing.count < bytes.count {
                        outgoing.deallocate()
                        outgoing = .allocate(byteCount: bytes.count * 3 / 2, alignment: 64)
                    }
                    outgoing.copyMemory(from: bytes)
                    return Outgoing(
                        kind: item.kind, time: item.time, presentationDelay: item.presentationDelay,
                        isKeyFrame: item.isKeyFrame, count: bytes.count, source: new)
                }
            }
        }

        private func wait(until time: Int64) { while !isClosing, MonotonicClock.now() < time { sleep(until: time) } }

        // Until something is added, it is to be closed, or the time has come.
        private func sleep(until time: Int64) {
            var item = pollfd(fd: wake.rawValue, events: Int16(POLLIN), revents: 0)
            let left = time == .max ? -1 : max(0, time - MonotonicClock.now()) / 1_000_000 + 1
            poll(&item, 1, Int32(clamping: left))
            wake.drain()
        }
    }
}
