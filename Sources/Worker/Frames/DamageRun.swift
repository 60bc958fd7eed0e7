/// Damaged frames in a row. A single one is left out and says nothing; of many their readers have to know.
struct DamageRun {
    /// Why there are no others; nil: there may be.
    private(set) var why: String?
    private var count = 0
    /// When the first came, monotonic nanoseconds.
    private var start: Int64 = 0

    /// So many frames, or frames for so many nanoseconds, are no accident.
    private static let (mostFrames, longest): (Int, Int64) = (10, 1_000_000_000)

    /// Counts a damaged frame.
    ///
    /// - Returns: whether ``why`` has just become known.
    mutating func countDamaged(_ why: String, at time: Int64) -> Bool {
        if count == 0 { start = time }
        count += 1
        guard count >= Self.mostFrames || (count > 1 && time - start >= Self.longest) else { return false }
        defer { self.why = why }
        return self.why == nil
    }

    /// Counts a whole frame.
    ///
    /// - Returns: whether ``why`` was known.
    mutating func countWhole() -> Bool {
        guard count > 0 else { return false }
        defer { self = DamageRun() }
        return why != nil
    }
}
