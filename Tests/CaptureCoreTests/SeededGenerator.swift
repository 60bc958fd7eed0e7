import Glibc

/// SplitMix64: the same seed makes the same history, so that a failure can be had again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number below the bound.
    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    /// True so many times out of a hundred.
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Some of them in random order, at least one.
    mutating func some<Element>(_ elements: [Element], atMost count: Int) -> [Element] {
        Array(elements.shuffled(using: &self).prefix(1 + below(min(count, elements.count))))
    }
}

/// Fixed seeds, and one that is new each time; not where a change is judged ($CI), which is not to be refused for what
/// others have done.
let seeds: [UInt64] =
    Array(1...4) + (getenv("CI") == nil ? [UInt64.random(in: .min ... .max)] : [UInt64(5)])
