/// Whether the clocks of both machines agree: frames of several machines are matched by them.
struct ClockCheck: Check {
    let id = "clocks"

    /// Nanoseconds; one that is kept at all is nearer than that.
    private static let tolerance: Int64 = 100_000_000

    func examine(_ facts: Facts) -> Outcome {
        guard let remote = facts.remote else { return .skipped("there is but this machine's") }
        guard remote.problem == nil else { return .skipped("the way there is not open") }
        guard let clock = remote.clock else { return .skipped("the bus does not tell its time") }
        var notes: [String] = []
        if !clock.isKeptThere {
            notes.append("Nobody keeps the clock of \(remote.host) (NTP, PTP): 'apt install chrony' there does.")
        }
        if !clock.isKeptHere {
            notes.append("Nobody keeps this machine's clock (NTP, PTP): 'apt install chrony' does.")
        }
        let certain = clock.offset.magnitude.subtractingReportingOverflow(clock.uncertainty.magnitude)
        guard !certain.overflow, certain.partialValue > Self.tolerance else {
            return .healthy(
                "\(milliseconds(clock.offset)) ms apart, give or take \(milliseconds(clock.uncertainty)) ms",
                notes: notes)
        }
        let isAhead = clock.offset > 0
        return .faulty(
            [
                Finding(
                    "clocks-apart", remote.host,
                    meaning:
                        "The clock of \(remote.host) is \(milliseconds(Int64(clamping: clock.offset.magnitude))) ms "
                        + "\(isAhead ? "ahead of" : "behind") this machine's: frames of both can't be matched.",
                    remedy: clock.isKeptHere ? remote.there("timedatectl") : "timedatectl",
                    advice: "An NTP client on both keeps them within milliseconds: 'apt install chrony'.")
            ], notes: notes)
    }
}
