import JSON

/// The state of a machine's clock (`bus.clock`).
public struct HostClock: Hashable, Sendable {
    /// Somebody keeps it: NTP or PTP.
    public var isSynchronized: Bool
    /// The most that it is wrong by, nanoseconds; nil: nobody knows.
    public var error: Int64?

    public init(isSynchronized: Bool, error: Int64?) {
        self.isSynchronized = isSynchronized
        self.error = error
    }

    /// The most that a difference of times of these machines is wrong by, nanoseconds; nil: at least one of them
    /// doesn't know. Of one machine it is 0.
    static func uncertainty(_ clocks: [HostClock?]) -> Int64? {
        guard clocks.count > 1 else { return 0 }
        let errors = clocks.compactMap { $0?.error }.sorted()
        guard errors.count == clocks.count else { return nil }
        let (sum, overflow) = errors[errors.count - 1].addingReportingOverflow(errors[errors.count - 2])
        return overflow ? .max : sum
    }

    /// With three significant digits.
    static func milliseconds(_ nanoseconds: Int64) -> String {
        let value = Double(nanoseconds) / 1_000_000
        var scale = 1.0
        while value.magnitude * scale < 100, scale < 1_000_000 { scale *= 10 }
        let text = "\((value * scale).rounded() / scale)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

extension HostClock: CustomStringConvertible {
    public var description: String {
        guard let error else { return "error unknown: neither NTP nor PTP synchronizes it" }
        return "error at most \(Self.milliseconds(error)) ms" + (isSynchronized ? "" : ", not synchronized now")
    }
}

extension Client {
    /// The accuracy that the bus's machine states for its clock.
    public func clock(timeout: Duration = defaultTimeout) async throws(ClientError) -> HostClock {
        let answer = try await repeatedCall("bus.clock", [:], timeout: timeout)
        return HostClock(isSynchronized: answer["synchronized"]?.bool ?? false, error: answer["error"]?.integer)
    }
}
