public import JSON

/// How hard it is for a device to go on: AVFoundation's `AVCaptureDevice.SystemPressureState.Level`.
public enum SystemPressureLevel: String, Hashable, Sendable, CaseIterable, Comparable {
    case nominal
    /// Somewhat raised; a client may want to do with less.
    case fair
    /// High: frames may be lost. Less rate or size helps.
    case serious
    /// Very high: only what is needed should go on.
    case critical
    /// Beyond that: cameras are stopped until it has passed.
    case shutdown

    public static func < (left: SystemPressureLevel, right: SystemPressureLevel) -> Bool { left.rank < right.rank }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// What brings a device under pressure: AVFoundation's `SystemPressureState.Factors`, and what Linux tells beside them.
public enum SystemPressureFactor: String, Hashable, Sendable, CaseIterable {
    /// The machine is hot (`/sys/class/thermal`).
    case systemTemperature
    /// The camera itself is.
    case cameraTemperature
    /// Programs wait for a processor, for memory, or for a disk (`/proc/pressure`).
    case cpu, memory, io
}

/// How hard it is, and why: AVFoundation's `AVCaptureDevice.SystemPressureState`.
public struct SystemPressureState: Hashable, Sendable {
    public var level: SystemPressureLevel
    /// Those that have reached that level; none at `nominal`.
    public var factors: Set<SystemPressureFactor>

    public static let nominal = SystemPressureState([:])

    public init(_ levels: [SystemPressureFactor: SystemPressureLevel]) {
        let highest = levels.values.max() ?? .nominal
        level = highest
        factors = highest == .nominal ? [] : Set(levels.filter { $0.value == highest }.keys)
    }

    /// What two sources of pressure come to.
    public func joined(_ other: SystemPressureState) -> SystemPressureState {
        guard level == other.level else { return level > other.level ? self : other }
        var joined = self
        joined.factors.formUnion(other.factors)
        return joined
    }

    /// {level, factors}
    public var json: JSONValue {
        [
            "level": .string(level.rawValue),
            "factors": JSONValue(SystemPressureFactor.allCases.filter(factors.contains).map(\.rawValue)),
        ]
    }

    /// nil when it is none that this version knows.
    public init?(json: JSONValue) {
        guard let level = json["level"]?.string.flatMap(SystemPressureLevel.init),
            let factors = json["factors"]?.array
        else { return nil }
        self.level = level
        self.factors = Set(factors.compactMap { $0.string.flatMap(SystemPressureFactor.init) })
    }
}

/// Whether a device that is under pressure has to be stopped: from `shutdown` on, until it is no more than `serious`
/// again, so that it doesn't come and go with what it causes itself.
public struct SystemPressureBrake: Hashable, Sendable {
    public private(set) var isOn = false
    /// Whether it is known how the device was left by who stopped it before; until then only `shutdown` says anything.
    public private(set) var isKnown: Bool

    /// - Parameter isKnown: false: somebody else may have stopped it before.
    public init(isKnown: Bool = true) { self.isKnown = isKnown }

    /// The device says whether it is stopped, which counts for as long as nothing else is known.
    ///
    /// - Returns: whether it is to be told anew whether it has to be.
    public mutating func adopt(isOn: Bool) -> Bool {
        guard !isKnown else { return false }
        isKnown = true
        self.isOn = isOn
        return isOn
    }

    /// - Returns: whether that is a change.
    public mutating func take(_ level: SystemPressureLevel) -> Bool {
        guard isKnown || level == .shutdown else { return false }
        isKnown = true
        let before = isOn
        if level == .shutdown { isOn = true } else if level <= .serious { isOn = false }
        return isOn != before
    }
}
