/// A part of a file that is asked for (`Range: bytes=…`): where a player goes on in a movie.
enum ByteRange: Hashable, Sendable {
    case all
    case part(Range<Int>)
    /// Nothing of it is there.
    case none

    /// - Parameter count: bytes of the file. Several parts at a time are answered by all of it, which is allowed.
    init(_ header: String?, of count: Int) {
        guard let header, header.hasPrefix("bytes="), !header.contains(",") else {
            self = .all
            return
        }
        let parts = header.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } && $0.utf8.count < 18 })
        else {
            self = .all
            return
        }
        switch (Int(parts[0]), Int(parts[1])) {
        case (let first?, let last):
            let end = min(last ?? count - 1, count - 1)
            self = last.map { $0 < first } ?? false ? .all : first <= end ? .part(first..<(end + 1)) : .none
        case (nil, let length?): self = length > 0 && count > 0 ? .part(max(0, count - length)..<count) : .none
        case (nil, nil): self = .all
        }
    }
}
