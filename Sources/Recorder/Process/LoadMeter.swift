/// Which part of the last second or so was spent at work.
struct LoadMeter: Hashable, Sendable {
    /// From 0 to 1.
    private(set) var load: Double = 0
    private var lastBusy: Int64 = 0
    private var lastTime: Int64?

    /// - Parameters:
    ///   - busy: nanoseconds at work so far.
    ///   - time: monotonic nanoseconds.
    mutating func note(_ busy: Int64, at time: Int64) {
        guard let last = lastTime else {
            (lastTime, lastBusy) = (time, busy)
            return
        }
        let elapsed = time - last
        guard elapsed >= 50_000_000 else { return }
        let part = min(1, max(0, Double(busy - lastBusy) / Double(elapsed)))
        let weight = min(1, Double(elapsed) / 1_000_000_000)
        load += (part - load) * weight
        // Three digits: it is to be read, and changes less often.
        load = (load * 1000).rounded() / 1000
        (lastTime, lastBusy) = (time, busy)
    }
}
