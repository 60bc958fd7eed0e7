/// Whether the clocks of both machines agree: frames of several machines are matched by them.
struct ClockCheck: Check {
    let id = "clocks"

    /// Nanoseconds; one that is kept at all is nearer than that.
    private static let tolerance: Int64 = 100_000_000

    func examine(_ facts: Facts) -> Outcome {
        guard let remote = facts.remote else { return .skipped("only the clock of this machine is involved") }
        guard remote.problem == nil else { return .skipped("the bus is not reachable") }
        guard let clock = remote.clock else { return .skipped("the bus does not report its time") }
        var notes: [String] = []
        if !clock.isKeptThere {
            notes.append("The clock of \(remote.host) is not synchronized (NTP, PTP). Run 'apt install chrony' there.")
        }
        if !clock.isKeptHere {
            notes.append("The clock of this machine is not synchronized (NTP, PTP). Run 'apt install chrony'.")
        }
        let certain = clock.offset.magnitude.subtractingReportingOverflow(clock.uncertainty.magnitude)
        guard !certain.overflow, certain.partialValue > Self.tolerance else {
            return .healthy(
                "\(milliseconds(clock.offset)) ms apart (± \(milliseconds(clock.uncertainty)) ms)",
                notes: notes)
        }
        let isAhead = clock.offset > 0
        return .faulty(
            [
                Finding(
                    "clocks-apart", remote.host,
                    meaning:
                        "The clock of \(remote.host) is \(milliseconds(Int64(clamping: clock.offset.magnitude))) ms "
                        + "\(isAhead ? "ahead of" : "behind") this machine's. Frames of both machines can't be "
                        + "matched.",
                    remedy: clock.isKeptHere ? remote.there("timedatectl") : "timedatectl",
                    advice:
                        "An NTP client on both machines keeps the difference within milliseconds: 'apt install chrony'."
                )
            ], notes: notes)
    }
}
