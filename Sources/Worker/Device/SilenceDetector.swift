import BusServer
import LinuxIO

/// Detects that a stream gives no more frames without an error: a halted endpoint, or a camera whose firmware has hung.
final class SilenceDetector {
    private let loop: Loop
    private let limit: Int64
    private let onSilence: () -> Void
    private var lastTime = MonotonicClock.now()
    private var timer: Loop.Token?

    /// - Parameters:
    ///   - limit: nanoseconds.
    ///   - onSilence: called when no frame has arrived for that long.
    init(_ loop: Loop, limit: Int64, onSilence: @escaping () -> Void) {
        self.loop = loop
        self.limit = limit
        self.onSilence = onSilence
        arm()
    }

    /// A frame has come.
    func heard(at time: Int64) { lastTime = time }

    var isSilent: Bool { MonotonicClock.now() - lastTime >= limit }

    func end() {
        loop.cancel(timer)
        timer = nil
    }

    // One timer for each limit, not one for each frame.
    private func arm() {
        timer = loop.schedule(at: lastTime + limit) { [weak self] in self?.judge() }
    }

    private func judge() {
        timer = nil
        if isSilent { onSilence() }
        // Heard meanwhile, or in the last moment.
        if timer == nil, !isSilent { arm() }
    }
}
