/// The order in which devices are offered: the first that is there is the default.
///
/// What the configuration names comes first, in its order; then cameras before microphones, each by position (back,
/// front, unspecified of what is built in, external, unspecified), then by name, numbers in it by value.
public struct DeviceOrder: Sendable {
    private let ranks: [String: Int]

    /// - Parameter configured: device ids or `uniqueID`s.
    public init(configured: [String]) {
        ranks = Dictionary(zip(configured, configured.indices)) { first, _ in first }
    }

    /// Whether the first device comes before the second.
    public func precedes(_ left: (id: String, DeviceIdentity), _ right: (id: String, DeviceIdentity)) -> Bool {
        let (first, second) = (rank(left), rank(right))
        if first != second { return first < second }
        if left.1.mediaType != right.1.mediaType { return left.1.mediaType == .video }
        let (one, other) = (Self.number(left.1), Self.number(right.1))
        if one != other { return one < other }
        if let isLess = Self.isLess(left.1.localizedName, right.1.localizedName) { return isLess }
        return Self.isLess(left.id, right.id) ?? false
    }

    private func rank(_ device: (id: String, DeviceIdentity)) -> Int {
        ranks[device.id] ?? ranks[device.1.uniqueID] ?? Int.max
    }

    private static func number(_ device: DeviceIdentity) -> Int {
        switch device.position {
        case .back: 0
        case .front: 1
        case .unspecified: device.type == .builtInWideAngleCamera ? 2 : 4
        case .external: 3
        }
    }

    /// nil: the same. `cam2` comes before `cam10`.
    static func isLess(_ left: String, _ right: String) -> Bool? {
        let (one, other) = (pieces(left), pieces(right))
        for (a, b) in zip(one, other) where a != b {
            // Numbers by value: of two without leading zeros the longer is the greater.
            if a.isNumber, b.isNumber, a.text.utf8.count != b.text.utf8.count {
                return a.text.utf8.count < b.text.utf8.count
            }
            return a.text < b.text
        }
        if one.count != other.count { return one.count < other.count }
        return left == right ? nil : left < right
    }

    private struct Piece: Equatable {
        var text: String
        var isNumber: Bool
    }

    private static func pieces(_ text: String) -> [Piece] {
        var pieces: [Piece] = []
        for character in text.lowercased() {
            let isNumber = character.isASCII && character.isNumber
            if let last = pieces.indices.last, pieces[last].isNumber == isNumber {
                if isNumber, pieces[last].text == "0" { pieces[last].text = "" }
                pieces[last].text.append(character)
            } else {
                pieces.append(Piece(text: String(character), isNumber: isNumber))
            }
        }
        return pieces
    }
}
