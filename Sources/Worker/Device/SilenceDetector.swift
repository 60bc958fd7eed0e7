import BusServer
import LinuxIO

/// Notices that a stream gives no more frames without saying why: a halted endpoint, or a camera whose program has hung.
final class SilenceDetector {
    private let loop: Loop
    private let limit: Int64
    private let onSilence: () -> Void
    private var lastTime = MonotonicClock.now()
    private var timer: Loop.Token?

    /// - Parameters:
    ///   - limit: nanoseconds.
    ///   - onSilence: told once when nothing has been heard for so long.
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

    // One timer a limit's time, not one a frame.
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
