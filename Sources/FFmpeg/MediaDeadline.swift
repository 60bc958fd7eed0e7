import CFFmpeg
import Glibc
import Synchronization

/// When libavformat has to stop waiting for the network. It looks about ten times a second. For any thread.
public final class MediaDeadline: Sendable {
    // CLOCK_MONOTONIC, nanoseconds.
    private let limit = Atomic(Int64.max)
    private let last = Atomic(Int64.max)

    public init() {}

    /// What goes on has to be over by that time (CLOCK_MONOTONIC, nanoseconds).
    public func set(_ time: Int64) { limit.store(time, ordering: .relaxed) }

    /// All has to be over by that time, whatever is set later.
    public func end(by time: Int64) { last.store(time, ordering: .relaxed) }

    var isOver: Bool {
        let most = min(limit.load(ordering: .relaxed), last.load(ordering: .relaxed))
        guard most != .max else { return false }
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec) >= most
    }

    /// To be asked as long as this lives.
    var callback: AVIOInterruptCB {
        AVIOInterruptCB(
            callback: { opaque in
                guard let opaque else { return 0 }
                return Unmanaged<MediaDeadline>.fromOpaque(opaque).takeUnretainedValue().isOver ? 1 : 0
            }, opaque: Unmanaged.passUnretained(self).toOpaque())
    }
}
