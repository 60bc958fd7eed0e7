/// A point in time: nanoseconds of CLOCK_MONOTONIC, as the caller read them.
public typealias Instant = Int64

extension Instant {
    /// This instant so many nanoseconds later; the end of time if there is no such instant.
    func advanced(byNanoseconds nanoseconds: Int64) -> Instant {
        let (sum, overflow) = addingReportingOverflow(nanoseconds)
        return overflow ? (nanoseconds < 0 ? .min : .max) : sum
    }
}
