public import BusProtocol
import JSON

/// The used ids of photos: each id is valid for one request, even if the request fails.
///
/// Bounded: when the table is full, the oldest id is forgotten.
public struct PhotoIDTable: Sendable {
    public static let usualMaximum = 65_536

    private let maximum: Int
    private var used: Set<String> = []
    /// In the order of their use, as a ring once it is full.
    private var order: [String] = []
    private var oldest = 0

    public init(maximum: Int = usualMaximum) { self.maximum = max(1, maximum) }

    public var count: Int { used.count }

    public func contains(_ id: String) -> Bool { used.contains(id) }

    /// Takes an id for a request.
    ///
    /// - Throws: `photoSettingsReused` {uniqueID} if there was a request with it.
    public mutating func use(_ id: String) throws(BusError) {
        guard used.insert(id).inserted else {
            throw BusError(
                .photoSettingsReused,
                "The uniqueID '\(id)' has been used. Use a new one for each request, or none: then the bus makes one.",
                ["uniqueID": .string(id)])
        }
        if order.count < maximum {
            order.append(id)
        } else {
            used.remove(order[oldest])
            order[oldest] = id
            oldest = (oldest + 1) % maximum
        }
    }
}
