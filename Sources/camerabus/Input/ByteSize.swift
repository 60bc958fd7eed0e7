import ArgumentParser

/// A number of bytes that are to stay free, which may be none: `0`, `256M`.
struct FreeBytes: ExpressibleByArgument, Hashable {
    var value: Int64

    init?(argument: String) {
        guard let value = argument == "0" ? 0 : ByteSize(argument: argument)?.value else { return nil }
        self.value = value
    }
}

/// A number of bytes, or of bits, as an argument: `1500000`, `700M`, `2.5G`; the letters are powers of 1000, as disks
/// are sold.
struct ByteSize: ExpressibleByArgument, Hashable {
    var value: Int64

    private static let factors: [Character: Double] = ["k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12]

    /// - Returns: nil for what is no number, is not above 0, or has another letter behind it.
    init?(argument: String) {
        let factor = argument.last.flatMap { Self.factors[$0] }
        let digits = factor == nil ? argument[...] : argument.dropLast()
        guard let number = Double(digits), number > 0, number * (factor ?? 1) < 9e18 else { return nil }
        value = Int64((number * (factor ?? 1)).rounded())
        guard value > 0 else { return nil }
    }

    /// `740 kB`, `24.6 MB`, `1.32 GB`.
    static func text(_ bytes: Int64) -> String {
        let value = Double(max(0, bytes))
        switch value {
        case ..<1000: return "\(max(0, bytes)) B"
        case ..<1e6: return "\(Int64(value / 1e3)) kB"
        case ..<1e9: return "\(digits(value / 1e6, 1)) MB"
        default: return "\(digits(value / 1e9, 2)) GB"
        }
    }

    private static func digits(_ value: Double, _ places: Int) -> String {
        let factor: Int64 = places == 1 ? 10 : 100
        let parts = Int64((value * Double(factor)).rounded(.down)).quotientAndRemainder(dividingBy: factor)
        return "\(parts.quotient).\(String(factor + parts.remainder).dropFirst())"
    }
}
