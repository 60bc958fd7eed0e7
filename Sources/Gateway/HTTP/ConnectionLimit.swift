import Synchronization

/// Counts connections, in total and by address, and accepts or refuses new ones.
///
/// A connection is *busy* while a request of somebody who was let in is answered. When there are too many connections,
/// a new one takes the place of the one that has not been busy for longest; so whoever opens many and says nothing
/// keeps nobody out.
final class ConnectionLimit: Sendable {
    /// The place of one connection.
    final class Place: Sendable {
        /// The address, of IPv6 its network.
        fileprivate let address: String
        fileprivate let isHere: Bool
        /// Ends the connection whose place it is.
        fileprivate let end: @Sendable () -> Void

        fileprivate init(_ address: String, _ end: @escaping @Sendable () -> Void) {
            self.address = WebAuthorization.network(address)
            isHere = WebAuthorization.isLoopback(address)
            self.end = end
        }
    }

    private struct State {
        /// By their places; the value says since when it is not busy, and nil that it is.
        var idleSince: [ObjectIdentifier: UInt64?] = [:]
        var places: [ObjectIdentifier: Place] = [:]
        var addresses: [String: Int] = [:]
        var turns: UInt64 = 0

        mutating func remove(_ id: ObjectIdentifier) -> Place? {
            guard let place = places.removeValue(forKey: id) else { return nil }
            idleSince[id] = nil
            let left = addresses[place.address, default: 1] - 1
            addresses[place.address] = left > 0 ? left : nil
            return place
        }

        /// Removes the connection that has been idle for longest, of the address with most connections.
        mutating func evict(where isMeant: (Place) -> Bool) -> Place? {
            let oldest = places.values.compactMap { place -> (place: Place, count: Int, since: UInt64)? in
                guard isMeant(place), let since = idleSince[ObjectIdentifier(place)] ?? nil else { return nil }
                return (place, addresses[place.address, default: 0], since)
            }.max { ($0.count, $1.since) < ($1.count, $0.since) }
            return oldest.flatMap { remove(ObjectIdentifier($0.place)) }
        }
    }

    private let state = Mutex(State())
    private let total: Int
    private let perAddress: Int
    /// Of all, those that only this machine may have: whoever fills the rest keeps nobody out who sits at it.
    private let kept: Int

    private static let keptConnections = 16

    init(total: Int, perAddress: Int) {
        self.total = total
        self.perAddress = perAddress
        kept = min(Self.keptConnections, total / 4)
    }

    /// Accepts a connection; if there are too many, an idle one is ended for it.
    ///
    /// - Parameter end: ends the connection when another one gets its place.
    /// - Returns: nil: there are too many, and all of them are busy.
    func enter(_ address: String, end: @escaping @Sendable () -> Void) -> Place? {
        let place = Place(address, end)
        let (isAccepted, evicted) = state.withLock { state -> (Bool, Place?) in
            var evicted: Place?
            if state.addresses[place.address, default: 0] >= perAddress {
                evicted = state.evict { $0.address == place.address }
                guard evicted != nil else { return (false, nil) }
            } else if state.places.count >= (place.isHere ? total : total - kept) {
                evicted = state.evict { place.isHere || !$0.isHere }
                guard evicted != nil else { return (false, nil) }
            }
            state.turns += 1
            state.places[ObjectIdentifier(place)] = place
            state.idleSince[ObjectIdentifier(place)] = .some(state.turns)
            state.addresses[place.address, default: 0] += 1
            return (true, evicted)
        }
        evicted?.end()
        return isAccepted ? place : nil
    }

    /// A request of somebody who was let in begins or ends at that connection.
    func set(_ place: Place, isBusy: Bool) {
        state.withLock { state in
            // Another one may have its place already.
            guard state.places[ObjectIdentifier(place)] != nil else { return }
            state.turns += 1
            state.idleSince[ObjectIdentifier(place)] = .some(isBusy ? nil : state.turns)
        }
    }

    /// A connection has ended, and its descriptor with it.
    func leave(_ place: Place) { _ = state.withLock { $0.remove(ObjectIdentifier(place)) } }
}
