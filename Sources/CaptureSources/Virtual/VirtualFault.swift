public import CaptureCore
import Glibc
import LinuxIO

/// What a virtual device can be told to suffer (`fault.inject`).
public enum VirtualFault: Hashable, Sendable {
    /// No frames for so many milliseconds, or for good when nil; the queue stays silent, as a hung camera's does.
    case stall(milliseconds: Int?)
    /// The worker process ends at once, as by a signal.
    case crash
    /// Starts of streaming are refused as in use by another program (`EBUSY`): the next one where nil, else all for so
    /// long.
    case busy(milliseconds: Int?)
    /// Each configuring call takes so many milliseconds.
    case slow(milliseconds: Int)
    /// The next change of that control, or of anything where nil, is refused when it is made, though it was found
    /// possible before.
    case refuse(control: String?)
    /// Another program sets that control, as far as the kernel would let it.
    case meddle(control: String, value: ControlValue)
    /// It is pulled out: every call, and the running stream, end with `ENODEV`.
    case unplug
    /// It is plugged in again, set as it comes from the factory.
    case replug
    /// The next so many frames come damaged: marked so by the driver (`V4L2_BUF_FLAG_ERROR`), compressed ones cut
    /// short.
    case corrupt(frames: Int)
    /// Starts of streaming find no room on the bus (`ENOSPC`), for so many milliseconds, or for good when nil.
    case noSpace(milliseconds: Int?)
    /// Frames come at so many percent of the rate that was set, which the device goes on to tell.
    case rate(percent: Int)
    /// The device's clock runs fast by so many parts in a million, or slow by as many below zero: it takes its pictures
    /// that much closer together. Their times say when they were taken.
    case drift(partsPerMillion: Int)
    /// The device says that it is under that much pressure, for so many milliseconds or for good: of heat of its own.
    /// The pictures are as before; what follows from it is decided elsewhere.
    case pressure(level: SystemPressureLevel, milliseconds: Int?)
    /// Ends all faults.
    case none

    /// Whether the device is there after it or is not, which it may not have been before.
    public var changesPresence: Bool {
        switch self {
        case .unplug, .replug, .none: true
        default: false
        }
    }
}

/// How fast a virtual camera takes its pictures, of the rate that it tells.
struct VirtualPace: Hashable {
    var percent = 100
    var partsPerMillion = 0

    /// The time of so many frames, nanoseconds.
    func time(of frames: Int64, _ duration: FrameDuration) -> Int64 {
        let nominal = Int128(frames) * Int128(duration.numerator) * 1_000_000_000
        let (fast, slow) = rates
        return Int64(clamping: nominal * slow / (Int128(duration.denominator) * fast))
    }

    /// How many whole frames' times lie within so many nanoseconds.
    func frames(in nanoseconds: Int64, _ duration: FrameDuration) -> Int64 {
        let (fast, slow) = rates
        let frames =
            Int128(nanoseconds) * Int128(duration.denominator) * fast
            / (Int128(duration.numerator) * 1_000_000_000 * slow)
        return Int64(clamping: frames)
    }

    // As a fraction, so that nothing is lost over days.
    private var rates: (fast: Int128, slow: Int128) {
        (
            Int128(min(max(percent, 1), 1000)) * Int128(1_000_000 + min(max(partsPerMillion, -500_000), 500_000)),
            100_000_000
        )
    }
}

/// What a virtual camera suffers now.
struct VirtualFaults {
    /// A refusal that is to come (``VirtualFault/refuse(control:)``).
    enum Refusal: Equatable {
        case anything
        case control(String)
    }

    /// Milliseconds that each configuring call takes.
    private(set) var delay = 0
    private var refusal: Refusal?
    private var isBusyNext = false
    /// Monotonic nanoseconds.
    private var busyUntil: Int64 = 0
    private var noSpaceUntil: Int64 = 0
    private(set) var isUnplugged = false

    mutating func beBusy(milliseconds: Int?) {
        if let milliseconds { busyUntil = Self.end(milliseconds) } else { isBusyNext = true }
    }

    mutating func haveNoSpace(milliseconds: Int?) { noSpaceUntil = milliseconds.map(Self.end) ?? Int64.max }

    mutating func beSlow(milliseconds: Int) { delay = Self.clamped(milliseconds) }

    mutating func refuse(_ control: String?) { refusal = control.map(Refusal.control) ?? .anything }

    mutating func unplug() { isUnplugged = true }

    mutating func replug() { isUnplugged = false }

    /// When a time that begins now is over, monotonic nanoseconds.
    static func end(_ milliseconds: Int) -> Int64 { MonotonicClock.now() + Int64(clamped(milliseconds)) * 1_000_000 }

    /// At most a day.
    private static func clamped(_ milliseconds: Int) -> Int { min(max(0, milliseconds), 86_400_000) }

    // MARK: What they do

    /// Takes as long as a slow driver would.
    func wait() {
        guard delay > 0 else { return }
        let end = MonotonicClock.now() + Int64(delay) * 1_000_000
        var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
    }

    /// As some cameras do with what they have taken in `VIDIOC_TRY_FMT`, or within a control's range.
    mutating func refuseIfTold(_ operation: String, control: String?, device: String) throws(SourceError) {
        guard let refusal, refusal == .anything || refusal == control.map(Refusal.control) else { return }
        self.refusal = nil
        throw SourceError(
            .refused, operation: operation, errno: EINVAL,
            message: "\(device): an injected fault refuses it", control: control)
    }

    /// Whether a stream can be started.
    mutating func checkStart(_ operation: String, device: String) throws(SourceError) {
        let now = MonotonicClock.now()
        if isBusyNext || now < busyUntil {
            isBusyNext = false
            throw SourceError(
                .inUse, operation: operation, errno: EBUSY, message: "\(device): another program streams from it")
        }
        guard now < noSpaceUntil else { return }
        throw SourceError(
            .noResources, operation: operation, errno: ENOSPC,
            message: "\(device): not enough bandwidth on the bus (an injected fault)")
    }

    static func gone(_ operation: String, device: String) -> SourceError {
        SourceError(
            .disconnected, operation: operation, errno: ENODEV, message: "\(device): the camera has been unplugged")
    }
}
