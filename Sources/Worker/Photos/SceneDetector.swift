import CaptureCore
import Imaging
import JSON
import LinuxIO

/// Measures at intervals whether the scene needs a flash or a stabilized picture. Used on the loop.
final class SceneDetector {
    private let meter: FrameMeter
    /// Nanoseconds; nil: the camera does not report it.
    private let exposureDuration: () -> Int64?
    /// nil: no session monitors the scene.
    private var monitor: SceneMonitor?

    /// Called when ``json`` has changed.
    var onChange: (() -> Void)?

    /// Nanoseconds from one look to the next.
    private static let interval: Int64 = 500_000_000
    private static let whole = MeteredRegion(aroundX: 0.5, y: 0.5)

    init(_ meter: FrameMeter, exposureDuration: @escaping () -> Int64?) {
        self.meter = meter
        self.exposureDuration = exposureDuration
        meter.onLuma = { [weak self] in self?.saw($0) }
    }

    /// {flash, stabilization}, each true or false; null: no session monitors the scene.
    var json: JSONValue {
        guard let monitor else { return .null }
        return ["flash": .bool(monitor.isFlashScene), "stabilization": .bool(monitor.isStabilizationScene)]
    }

    func set(isWatching: Bool) {
        guard isWatching != (monitor != nil) else { return }
        if isWatching {
            // The coordinator knows which of the two a session monitors.
            monitor = SceneMonitor(SceneMonitor.Settings(flash: .auto, stabilization: true))
            meter.ask(Self.whole, notBefore: 0)
        } else {
            monitor = nil
            meter.stop()
        }
        onChange?()
    }

    private func saw(_ luma: Double?) {
        guard monitor != nil else { return }
        meter.ask(Self.whole, notBefore: MonotonicClock.now() + Self.interval)
        guard let luma else { return }
        let sight = SceneMonitor.Sight(luma: luma, exposureDuration: exposureDuration())
        if monitor?.see(sight) == true { onChange?() }
    }
}
