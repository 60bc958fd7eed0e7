/// The times that frames of a constant rate have. Each place takes one frame.
struct FrameGrid {
    /// Frames a second.
    let rate: Double
    /// The next place that is free; nil: all are.
    private(set) var next: Int64?

    /// There is no picture after a hole of so many seconds.
    static let longestHole = 3600.0

    init(_ rate: Double) { self.rate = rate }

    /// The place that is nearest to a time, which is nanoseconds.
    func place(at time: Int64) -> Int64 { Int64((Double(time) * rate / 1e9).rounded()) }

    /// Nanoseconds.
    func time(of place: Int64) -> Int64 { Int64((Double(place) * 1e9 / rate).rounded()) }

    func isFree(_ place: Int64) -> Bool { next.map { place >= $0 } ?? true }

    /// So many places are free in front of it, behind the last frame.
    func hole(before place: Int64) -> Int64 { next.map { place - $0 } ?? 0 }

    mutating func take(_ place: Int64) { next = place + 1 }
}
