import CaptureCore
import Glibc

/// Something that a virtual camera brings to another value within some frames, as a lens and an exposure take their
/// time.
struct VirtualSettling: Hashable {
    private(set) var present: Double
    private(set) var target: Double
    private var from: Double
    private var step = 0
    private var steps = 0
    /// How far it goes astray on its way: a focus that hunts.
    private var detour = 0.0

    init(_ value: Double) { (present, target, from) = (value, value, value) }

    var isSettling: Bool { step < steps }

    /// Is that value at once.
    mutating func set(_ value: Double) { self = VirtualSettling(value) }

    /// Goes there within so many frames; where it is going there already it goes on.
    mutating func aim(_ value: Double, steps: Int, detour: Double = 0, anew: Bool = false) {
        guard anew || value != target else { return }
        (from, target, self.detour, step, self.steps) = (present, value, detour, 0, steps)
    }

    /// Stays where it is.
    mutating func hold() { set(present) }

    /// Has arrived.
    mutating func finish() { set(target) }

    /// One frame further.
    mutating func advance() {
        guard isSettling else { return }
        step += 1
        let share = Double(step) / Double(steps)
        present = step == steps ? target : from + (target - from) * share + detour * sin(.pi * share)
    }
}

/// Lens, exposure and white balance of a virtual camera, which its frames move: nothing of it has a timer.
struct VirtualOptics: Hashable {
    typealias ID = VirtualControlTable.ID

    /// In units of the focus control.
    private(set) var lens = VirtualSettling(Double(VirtualControlTable.bestFocus))
    /// Seconds.
    private(set) var exposure = VirtualSettling(VirtualControlTable.neutralExposure)
    /// Times ``VirtualControlTable/neutralISO``.
    private(set) var sensitivity = VirtualSettling(1)
    /// What the meter asks for: seconds at ``VirtualControlTable/neutralISO``.
    private var wanted = VirtualControlTable.neutralExposure
    /// Kelvin.
    private(set) var balance = VirtualSettling(Double(VirtualControlTable.neutralTemperature))
    /// A frame that the flash lights is to come.
    private(set) var isFlashing = false
    private var hasFocused = false
    private var meteredAt = Point(x: 5000, y: 5000)
    private var focusedAt = Point(x: 5000, y: 5000)

    /// In ten-thousandths of the picture.
    private struct Point: Hashable {
        var x: Int64
        var y: Int64
    }

    private static let focusFrames = 12
    private static let exposureFrames = 10
    private static let balanceFrames = 10
    /// Bits of `V4L2_CID_3A_LOCK`.
    private static let exposureLock: Int64 = 1
    private static let balanceLock: Int64 = 2
    private static let focusLock: Int64 = 4

    var isSettling: Bool { lens.isSettling || isExposing || balance.isSettling || isFlashing }

    private var isExposing: Bool { exposure.isSettling || sensitivity.isSettling }

    /// How much brighter it is than the meter asks for, in thousandths of doublings.
    private var offset: Int64 {
        let ratio = exposure.present * sensitivity.present / wanted
        return ratio > 0 && ratio.isFinite ? Int64((log2(ratio) * 1000).rounded()) : 0
    }

    /// The next frame comes.
    mutating func advance() {
        lens.advance()
        exposure.advance()
        sensitivity.advance()
        balance.advance()
    }

    /// The frame that the flash has lit is taken.
    mutating func endFlash() { isFlashing = false }

    /// No further frames come: what was under way has arrived.
    mutating func finish() {
        lens.finish()
        exposure.finish()
        sensitivity.finish()
        balance.finish()
        isFlashing = false
    }

    /// Goes where the controls say.
    ///
    /// - Parameter set: the control that was set, or the button that was pressed.
    mutating func follow(_ controls: VirtualControls, set: UInt32?) {
        let locks = controls[ID.lock3A]
        followFocus(controls, isHeld: locks & Self.focusLock != 0, set)
        followExposure(controls, isHeld: locks & Self.exposureLock != 0, set)
        if locks & Self.balanceLock != 0 {
            balance.hold()
        } else if controls[ID.autoWhiteBalance] != 0 || set == ID.doWhiteBalance {
            let isAsked = set == ID.doWhiteBalance
            balance.aim(Double(VirtualControlTable.neutralTemperature), steps: Self.balanceFrames, anew: isAsked)
        } else if set == ID.temperature {
            balance.set(Double(controls[ID.temperature]))
        } else if set == ID.autoWhiteBalance {
            balance.hold()
        }
        if set == ID.strobe, controls[ID.lampMode] == 1 { isFlashing = true }
    }

    private mutating func followFocus(_ controls: VirtualControls, isHeld: Bool, _ set: UInt32?) {
        guard controls.has(ID.focus) else { return }
        let best = Double(VirtualControlTable.bestFocus)
        let point = Point(x: controls[ID.focusX], y: controls[ID.focusY])
        let isMoved = point != focusedAt
        let isAutomatic = controls[ID.autoFocus] != 0
        let isSmooth = controls[ID.smoothFocus] != 0
        let frames = isSmooth ? Self.focusFrames * 2 : Self.focusFrames
        let isScan = set == ID.focusStart || (isAutomatic && isMoved)
        if isHeld {
            lens.hold()
        } else if isScan {
            hasFocused = true
            lens.aim(best, steps: frames, detour: isSmooth ? 0 : 40, anew: true)
        } else if isAutomatic {
            lens.aim(best, steps: frames)
        } else if set == ID.focus {
            lens.set(Double(controls[ID.focus]))
        } else if set == ID.autoFocus {
            // Left to itself the lens stays where the last search has brought it.
            lens.hold()
        }
        if isAutomatic || isScan { focusedAt = point }
    }

    private mutating func followExposure(_ controls: VirtualControls, isHeld: Bool, _ set: UInt32?) {
        let ev = Double(controls.number(ID.bias)) / 1000
        let point = Point(x: controls[ID.exposureX], y: controls[ID.exposureY])
        let level = Self.level(controls, x: Double(point.x) / 10_000, y: Double(point.y) / 10_000)
        wanted = VirtualControlTable.neutralExposure * exp2(ev) * level
        let hasOwnISO = controls[ID.autoISO] != 0
        if !hasOwnISO { sensitivity.set(Self.sensitivity(controls[ID.iso])) }
        if isHeld {
            exposure.hold()
            return sensitivity.hold()
        }
        let isAsked = set == ID.exposureStart
        if controls[ID.autoExposure] == VirtualControlTable.manualExposure, !isAsked {
            let isManual = set == ID.autoExposure || set == ID.exposureTime || set == ID.exposureMicroseconds
            // A search that is under way ends with what it finds, unless another value is set.
            guard isManual || !isExposing else { return }
            exposure.set(Self.seconds(controls))
            return sensitivity.hold()
        }
        let isMoved = point != meteredAt
        meteredAt = point
        // What a bound leaves dark the sensitivity makes up for, as far as it can.
        let time = min(wanted, Double(controls[ID.longestExposure]) / 1_000_000)
        exposure.aim(time, steps: Self.exposureFrames, anew: isMoved || isAsked)
        guard hasOwnISO else { return }
        let most = Self.sensitivity(controls.maximum(ID.iso))
        sensitivity.aim(min(wanted / time, most), steps: Self.exposureFrames, anew: isMoved || isAsked)
    }

    private static func sensitivity(_ iso: Int64) -> Double { Double(iso) / Double(VirtualControlTable.neutralISO) }

    // What is metered at the middle is the whole picture; elsewhere, what is there.
    private static func level(_ controls: VirtualControls, x: Double, y: Double) -> Double {
        if x == 0.5, y == 0.5 { return 1 }
        let luma = (VirtualTestPattern(rawValue: controls[ID.testPattern]) ?? .bars).luma(x: x, y: y)
        return min(max(118 / max(luma, 1), 0.5), 2)
    }

    private static func seconds(_ controls: VirtualControls) -> Double {
        controls.has(ID.exposureMicroseconds)
            ? Double(controls[ID.exposureMicroseconds]) / 1_000_000 : Double(controls[ID.exposureTime]) / 10_000
    }

    // MARK: What it shows as

    /// Something that was under way here has arrived there.
    func hasEnded(in later: VirtualOptics) -> Bool {
        (lens.isSettling && !later.lens.isSettling) || (isExposing && !later.isExposing)
            || (balance.isSettling && !later.balance.isSettling)
    }

    /// How far the exposure is from what is metered, where that has changed since then.
    func toldOffset(since earlier: VirtualOptics) -> Int64? { offset == earlier.offset ? nil : offset }

    /// The values of the controls that are the camera's to set now.
    func told(_ body: (UInt32, Int64) -> Void) {
        body(ID.focus, Int64(lens.present.rounded()))
        body(ID.exposureTime, Int64((exposure.present * 10_000).rounded()))
        body(ID.exposureMicroseconds, Int64((exposure.present * 1_000_000).rounded()))
        body(ID.iso, Int64((sensitivity.present * Double(VirtualControlTable.neutralISO)).rounded()))
        body(ID.exposureOffset, offset)
        body(ID.temperature, Int64((balance.present / 10).rounded()) * 10)
        // That it has arrived comes after where that is.
        body(ID.focusStatus, lens.isSettling ? 1 : hasFocused ? 2 : 0)
        body(ID.adjustingExposure, isExposing ? 1 : 0)
        body(ID.adjustingWhiteBalance, balance.isSettling ? 1 : 0)
    }
}

extension VirtualControls {
    /// Takes in what lens, exposure and white balance have come to, as far as those are the camera's to set.
    mutating func absorb(_ optics: VirtualOptics) {
        optics.told { id, value in
            let isScanned = id == VirtualOptics.ID.focus && optics.lens.isSettling
            guard has(id), isInactive(id) || isReadOnly(id) || isScanned || isLeft(id) else { return }
            absorb(id, value)
        }
        if self[VirtualOptics.ID.autoWhiteBalance] != 0 {
            absorb(VirtualOptics.ID.redBalance, VirtualControlTable.neutralBalance)
            absorb(VirtualOptics.ID.blueBalance, VirtualControlTable.neutralBalance)
        }
    }

    private func isReadOnly(_ id: UInt32) -> Bool {
        switch id {
        case VirtualOptics.ID.focusStatus, VirtualOptics.ID.adjustingExposure, VirtualOptics.ID.adjustingWhiteBalance,
            VirtualOptics.ID.exposureOffset:
            true
        default: false
        }
    }

    // What a search has found stays.
    private func isLeft(_ id: UInt32) -> Bool {
        switch id {
        case VirtualOptics.ID.focus, VirtualOptics.ID.temperature, VirtualOptics.ID.exposureTime,
            VirtualOptics.ID.exposureMicroseconds:
            true
        default: false
        }
    }
}
