public import CaptureCore
import LinuxIO
import Synchronization

/// The buffer of a virtual microphone between its sensor and the loop: periods in a ring, as a driver has them.
final class VirtualSoundQueue: @unchecked Sendable {
    // What changes is behind the mutex. A period's memory is the sensor's until it is told as written, and then the
    // loop's until it is told as read.

    let format: SoundFormat
    /// Readable while a period waits.
    let ready: EventDescriptor

    private let memory: UnsafeMutableRawBufferPointer
    private let state: Mutex<State>

    private struct State {
        /// What is known of each place.
        var periods: [SoundPeriod]
        /// The oldest that waits, and how many do.
        var oldest = 0
        var count = 0
        /// The number of the frame after the last one that was written.
        var next: UInt64 = 0
        /// Why the device has no more to give.
        var failure: SourceError?
    }

    /// Periods that wait at most.
    let capacity: Int

    /// As long as a driver's buffer usually is, in milliseconds.
    private static let length = 250

    init(_ format: SoundFormat) throws(SourceError) {
        do { ready = try EventDescriptor() } catch {
            throw SourceError(
                .noResources, operation: "snd_pcm_hw_params", errno: error.code, message: error.description)
        }
        self.format = format
        capacity = max(4, format.rate * Self.length / 1000 / max(1, format.periodFrames))
        memory = .allocate(byteCount: capacity * format.periodBytes, alignment: 16)
        let empty = SoundPeriod(firstFrame: 0, frames: 0, monotonicTime: 0, isDiscontinuous: false)
        state = Mutex(State(periods: Array(repeating: empty, count: capacity)))
    }

    deinit { memory.deallocate() }

    private func place(_ index: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            rebasing: memory[index * format.periodBytes..<(index + 1) * format.periodBytes])
    }

    // MARK: The loop's side

    func read(into target: UnsafeMutableRawBufferPointer) throws(SourceError) -> SoundPeriod? {
        if let period = try take(into: target) { return period }
        ready.drain()
        // What was written before the signal went is found by the second look; more than one, by the next call.
        guard let period = try take(into: target) else { return nil }
        ready.signal()
        return period
    }

    private func take(into target: UnsafeMutableRawBufferPointer) throws(SourceError) -> SoundPeriod? {
        // In one look: a failure comes behind all that was written before it.
        let (found, failure) = state.withLock { state -> ((index: Int, period: SoundPeriod)?, SourceError?) in
            state.count == 0 ? (nil, state.failure) : ((state.oldest, state.periods[state.oldest]), nil)
        }
        if let failure { throw failure }
        guard let found else { return nil }
        target.copyMemory(from: UnsafeRawBufferPointer(place(found.index)))
        state.withLock { state in
            state.oldest = (state.oldest + 1) % capacity
            state.count -= 1
        }
        return found.period
    }

    // MARK: The sensor's side

    /// Where the next period goes; nil: nobody has fetched what came before.
    func room() -> UnsafeMutableRawBufferPointer? {
        let index = state.withLock { state in
            state.count == capacity ? nil : (state.oldest + state.count) % capacity
        }
        return index.map(place)
    }

    /// What ``room()`` gave has been written.
    func written(firstFrame: UInt64, time: Int64) {
        state.withLock { state in
            let period = SoundPeriod(
                firstFrame: firstFrame, frames: format.periodFrames, monotonicTime: time,
                isDiscontinuous: firstFrame != state.next)
            state.periods[(state.oldest + state.count) % capacity] = period
            state.count += 1
            state.next = firstFrame + UInt64(format.periodFrames)
        }
        ready.signal()
    }

    /// The device is gone. The descriptor stays readable.
    func fail(_ error: SourceError) {
        state.withLock { $0.failure = error }
        ready.signal()
    }
}

/// The running capture of a virtual microphone. Its memory lives as long as this or the sensor does.
public final class VirtualSoundStream: SoundStream {
    public var format: SoundFormat { queue.format }
    public var timestampSource: SoundTimestampSource { .status }
    public var descriptor: Int32 { queue.ready.rawValue }
    public private(set) var overruns: UInt64 = 0
    public private(set) var lostFrames: UInt64 = 0

    private let queue: VirtualSoundQueue
    /// The number of the frame after the last one that was read.
    private var next: UInt64 = 0

    init(_ queue: VirtualSoundQueue) { self.queue = queue }

    public func read(into memory: UnsafeMutableRawBufferPointer) throws(SourceError) -> SoundPeriod? {
        guard let period = try queue.read(into: memory) else { return nil }
        if period.isDiscontinuous {
            overruns += 1
            lostFrames += period.firstFrame - next
        }
        next = period.firstFrame + UInt64(period.frames)
        return period
    }
}
