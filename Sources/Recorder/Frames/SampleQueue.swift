import CaptureCore
import LinuxIO
import Synchronization

import func Glibc.free
import func Glibc.posix_memalign

/// What is told of a frame, or of a piece of sound, beside its bytes.
struct Sample: Hashable, Sendable {
    /// When it was taken: monotonic nanoseconds.
    var time: Int64
    /// Of pictures: nanoseconds from then to when it is shown.
    var presentationDelay: Int64 = 0
    /// When it was taken since 1970; of pictures.
    var realtime: Int64 = 0
    /// Nanoseconds that it lasts; 0: that isn't known.
    var duration: Int64 = 0
    /// The camera's count.
    var sequence: UInt64 = 0
    /// Frames that are missing in front of it.
    var dropped: UInt64 = 0
    var isKeyFrame = true
    /// Of which of the movie's cameras it is, in the order in which they were taken.
    var input = 0
    /// How often the pictures of that camera have changed their form, such as their size.
    var form = 0
}

/// What has come and is not yet written: bounded in bytes, in time and in number, in memory that is taken once.
///
/// One thread at a time puts in, another takes out. What finds no room is not taken: nobody ever waits for room.
final class SampleQueue: @unchecked Sendable {
    // The memory is shared by both threads: one writes only where the state says that it has reserved, the other reads
    // only what is in.

    struct Limits: Sendable {
        var bytes: Int
        /// From the oldest to the newest, nanoseconds.
        var time: Int64
        var samples: Int
    }

    enum Outcome: Hashable, Sendable {
        case taken
        /// There is no room.
        case full
        /// The body didn't fill it.
        case withdrawn
        /// Nothing is taken any more.
        case closed
    }

    private struct Entry {
        var sample: Sample
        var offset: Int
        var count: Int
    }

    private struct State {
        /// Number of the oldest entry, and of the next one.
        var first = 0
        var next = 0
        /// Where the next bytes go.
        var offset = 0
        /// The oldest is being taken out.
        var isInUse = false
        var isClosed = false
        /// What is taken from then on is not taken in, and closes it.
        var end = Instant.max
    }

    let limits: Limits
    private let memory: UnsafeMutableRawBufferPointer
    private let entries: UnsafeMutablePointer<Entry>
    private let state = Mutex(State())
    private let wake: Semaphore

    private static let alignment = 64
    private static let pageBytes = 4096

    /// - Parameter wake: told of each sample.
    /// - Throws: `ENOMEM`, where Swift's own allocation would end the process.
    init(_ limits: Limits, wake: Semaphore) throws(SystemError) {
        self.limits = limits
        self.wake = wake
        let count = max(Self.alignment, limits.bytes)
        var start: UnsafeMutableRawPointer?
        // Pages come as they are used: an empty queue begins at the front again, so that hardly any are.
        let code = posix_memalign(&start, Self.pageBytes, count)
        guard code == 0 else {
            throw SystemError(code: code, operation: "allocate", subject: "\(count >> 20) MiB for frames that wait")
        }
        memory = UnsafeMutableRawBufferPointer(start: start, count: count)
        entries = .allocate(capacity: max(1, limits.samples))
    }

    deinit {
        free(memory.baseAddress)
        entries.deallocate()
    }

    /// Puts in a sample of so many bytes, which the body fills in.
    ///
    /// - Parameter tells: false: who takes out is not woken for it, but by a later one or by ``tell()``.
    func push(
        _ sample: Sample, count: Int, tells: Bool = true, _ fill: (UnsafeMutableRawBufferPointer) -> Bool
    ) -> Outcome {
        let place = state.withLock { reserve(sample, count, &$0) }
        guard case .success(let offset) = place else {
            if case .closed = place { tell() }
            return place.failure
        }
        guard fill(UnsafeMutableRawBufferPointer(rebasing: memory[offset..<offset + count])) else { return .withdrawn }
        let isIn = state.withLock { state in
            guard Self.isOpen(sample, &state) else { return false }
            (entries + state.next % limits.samples).initialize(
                to: Entry(sample: sample, offset: offset, count: count))
            state.next += 1
            state.offset = offset + Self.rounded(count)
            return true
        }
        guard isIn else {
            tell()
            return .closed
        }
        if tells { tell() }
        return .taken
    }

    private static func isOpen(_ sample: Sample, _ state: inout State) -> Bool {
        if sample.time >= state.end { state.isClosed = true }
        return !state.isClosed
    }

    /// Wakes who takes out.
    func tell() { wake.signal() }

    private enum Place {
        case success(Int)
        case full, closed

        var failure: Outcome { if case .closed = self { .closed } else { .full } }
    }

    private func reserve(_ sample: Sample, _ count: Int, _ state: inout State) -> Place {
        guard Self.isOpen(sample, &state) else { return .closed }
        let size = Self.rounded(count)
        guard count >= 0, size <= memory.count else { return .full }
        guard state.first < state.next else {
            state.offset = 0
            return .success(0)
        }
        let oldest = entries[state.first % limits.samples]
        guard state.next - state.first < limits.samples, sample.time - oldest.sample.time <= limits.time else {
            return .full
        }
        // What is in lies from the oldest to the offset, perhaps around the end.
        if state.offset > oldest.offset {
            if size <= memory.count - state.offset { return .success(state.offset) }
            return size <= oldest.offset ? .success(0) : .full
        }
        return size <= oldest.offset - state.offset ? .success(state.offset) : .full
    }

    private static func rounded(_ count: Int) -> Int {
        (max(1, count) + alignment - 1) / alignment * alignment
    }

    /// The oldest that is in; nil: none is.
    var first: Sample? {
        state.withLock { $0.first < $0.next ? entries[$0.first % limits.samples].sample : nil }
    }

    var count: Int { state.withLock { $0.next - $0.first } }

    /// Shows the oldest to the body, and takes it out afterwards.
    ///
    /// - Returns: nil when none is in.
    func pop<Result>(_ body: (Sample, UnsafeRawBufferPointer) -> Result) -> Result? {
        let oldest = state.withLock { state -> Entry? in
            state.isInUse = state.first < state.next
            return state.isInUse ? entries[state.first % limits.samples] : nil
        }
        guard let entry = oldest else { return nil }
        defer {
            state.withLock { state in
                state.first += 1
                state.isInUse = false
            }
        }
        return body(
            entry.sample, UnsafeRawBufferPointer(rebasing: memory[entry.offset..<entry.offset + entry.count]))
    }

    /// Takes no more; what is in can be taken out.
    func close() { state.withLock { $0.isClosed = true } }

    /// Takes in what was taken before that time, and closes with the first that is later. Nothing later is left in,
    /// except what is being taken out.
    func close(at time: Instant) {
        state.withLock { state in
            state.end = min(state.end, time)
            let kept = state.first + (state.isInUse ? 1 : 0)
            while state.next > kept, entries[(state.next - 1) % limits.samples].sample.time >= state.end {
                state.next -= 1
                state.isClosed = true
            }
        }
        tell()
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
}
