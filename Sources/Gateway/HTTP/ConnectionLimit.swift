import Synchronization

/// Counts connections, in total, by address and by user, and accepts or refuses new ones.
///
/// A connection is *busy* while a request of somebody who was let in is answered. A user has a share of busy ones, as
/// many users may have one address: behind a proxy all have. When there are too many connections,
/// a new one takes the place of one that is not: of those that have sent no whole request yet, or of the others,
/// whichever are more, the one that has been idle for longest. So whoever opens many keeps nobody out, and those that
/// say nothing end neither those that wait for an answer nor those that will ask again.
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

    /// What a connection is used for.
    private struct Use {
        /// Who was let in; nil: it is idle.
        var owner: String?
        /// A whole request has come.
        var hasAsked = false
        /// When that changed last.
        var since: UInt64
    }

    private struct State {
        var uses: [ObjectIdentifier: Use] = [:]
        var places: [ObjectIdentifier: Place] = [:]
        var addresses: [String: Int] = [:]
        /// Busy ones of each user.
        var owners: [String: Int] = [:]
        var turns: UInt64 = 0

        mutating func set(_ id: ObjectIdentifier, _ use: Use?) {
            if let owner = uses[id]?.owner {
                let left = owners[owner, default: 1] - 1
                owners[owner] = left > 0 ? left : nil
            }
            uses[id] = use
            if let owner = use?.owner { owners[owner, default: 0] += 1 }
        }

        mutating func remove(_ id: ObjectIdentifier) -> Place? {
            guard let place = places.removeValue(forKey: id) else { return nil }
            set(id, nil)
            let left = addresses[place.address, default: 1] - 1
            addresses[place.address] = left > 0 ? left : nil
            return place
        }

        /// Removes an idle connection, of the address with most connections.
        mutating func evict(where isMeant: (Place) -> Bool) -> Place? {
            let idle = places.values.compactMap { place -> (place: Place, use: Use)? in
                guard isMeant(place), let use = uses[ObjectIdentifier(place)], use.owner == nil else { return nil }
                return (place, use)
            }
            func count(_ place: Place) -> Int { addresses[place.address, default: 0] }
            let most = idle.map { count($0.place) }.max()
            let all = idle.filter { count($0.place) == most }
            let silent = all.filter { !$0.use.hasAsked }
            let group = 2 * silent.count >= all.count ? silent : all.filter(\.use.hasAsked)
            return group.min { $0.use.since < $1.use.since }.flatMap { remove(ObjectIdentifier($0.place)) }
        }
    }

    private let state = Mutex(State())
    private let total: Int
    private let perAddress: Int
    /// Busy ones of one user: half of those of an address.
    let perOwner: Int
    /// Of all, those that only this machine may have: whoever fills the rest keeps nobody out who sits at it.
    private let kept: Int

    private static let keptConnections = 16

    init(total: Int, perAddress: Int) {
        self.total = total
        self.perAddress = perAddress
        perOwner = (perAddress + 1) / 2
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
            state.set(ObjectIdentifier(place), Use(since: state.turns))
            state.addresses[place.address, default: 0] += 1
            return (true, evicted)
        }
        evicted?.end()
        return isAccepted ? place : nil
    }

    /// A whole request has come at that connection, or is answered.
    ///
    /// - Parameter owner: who was let in with it; nil: nobody was, or it is answered.
    /// - Returns: false: this user has too many busy connections already, and this one is idle.
    func set(_ place: Place, busyFor owner: String?) -> Bool {
        state.withLock { state in
            let id = ObjectIdentifier(place)
            // Another one may have its place already.
            guard state.places[id] != nil else { return true }
            state.turns += 1
            state.set(id, Use(hasAsked: true, since: state.turns))
            guard let owner else { return true }
            guard state.owners[owner, default: 0] < perOwner else { return false }
            state.set(id, Use(owner: owner, hasAsked: true, since: state.turns))
            return true
        }
    }

    /// A connection has ended, and its descriptor with it.
    func leave(_ place: Place) { _ = state.withLock { $0.remove(ObjectIdentifier(place)) } }
}
