/// Frames of several machines that were taken at the same time, according to the machines' clocks. All times are
/// nanoseconds.
public struct HostSet: Sendable {
    /// One device's frame.
    public struct Part: Sendable {
        /// `rig/cam0`.
        public var name: String
        public var frame: Frame
        /// From the lead's frame to this one.
        public var offset: Int64
    }

    /// The lead's first.
    public var parts: [Part]
    /// Devices without a frame in time.
    public var missing: [String]
    /// The most that ``spread`` and offsets may be wrong by; nil: at least one machine doesn't know how right its clock
    /// is. Frames of one machine have none of it.
    public var uncertainty: Int64?
    /// The machines that don't know how right their clocks are.
    public var unsure: [String]

    /// How far the frames are apart, as the clocks say.
    public var spread: Int64 {
        let offsets = parts.map(\.offset)
        let (spread, overflow) = (offsets.max() ?? 0).subtractingReportingOverflow(offsets.min() ?? 0)
        return overflow ? .max : spread
    }

    /// The frame of that device; nil: it is missing.
    public subscript(name: String) -> Frame? { parts.first { $0.name == name }?.frame }

    /// What ``uncertainty`` says, in words.
    public var doubt: String {
        switch uncertainty {
        case nil:
            "error unknown: neither NTP nor PTP synchronizes the clock of \(unsure.joined(separator: " and "))"
        case 0?: "measured by one clock"
        case let most?: "error at most \(HostClock.milliseconds(most)) ms"
        }
    }
}

extension HostSet: CustomStringConvertible {
    public var description: String {
        let names = parts.map(\.name).joined(separator: ", ")
        let without = missing.isEmpty ? "" : " (without \(missing.joined(separator: ", ")))"
        guard parts.count > 1 else { return names + without }
        return "\(names)\(without): \((Double(spread) / 100_000).rounded() / 10) ms apart, \(doubt)"
    }
}
