import BusProtocol

/// The errors that wait to be sent: users take turns, so that one with many refused topics delays nobody else's.
struct ErrorQueue {
    private var waiting: [UInt32: [SubscribedTopic]] = [:]
    /// The users with waiting errors, the next one first.
    private var turns: [UInt32] = []
    private var reasons: [SubscribedTopic: (error: BusError, uid: UInt32)] = [:]

    /// Errors of one user that wait; further ones come with the next round.
    static let maximumOfUser = 2048

    var isEmpty: Bool { turns.isEmpty }

    /// The users with waiting errors.
    var users: Set<UInt32> { Set(turns) }

    /// The one of these users whose turn comes first.
    func first(of users: some Collection<UInt32>) -> UInt32 {
        users.min { (waiting[$0]?.count ?? 0, $0) < (waiting[$1]?.count ?? 0, $1) } ?? .max
    }

    /// Adds a topic behind that user's others; one that waits gets another error.
    mutating func add(_ topic: SubscribedTopic, _ error: BusError, of uid: UInt32) {
        if reasons[topic] != nil {
            reasons[topic]?.error = error
            return
        }
        guard waiting[uid]?.count ?? 0 < Self.maximumOfUser else { return }
        if waiting[uid] == nil { turns.append(uid) }
        waiting[uid, default: []].append(topic)
        reasons[topic] = (error, uid)
    }

    /// Takes the next one out.
    mutating func next() -> (topic: SubscribedTopic, error: BusError)? {
        guard let uid = turns.first, let topic = waiting[uid]?.first, let error = reasons[topic]?.error else {
            return nil
        }
        turns.append(turns.removeFirst())
        remove(topic)
        return (topic, error)
    }

    /// The topic fails no longer.
    mutating func remove(_ topic: SubscribedTopic) {
        guard let uid = reasons.removeValue(forKey: topic)?.uid,
            let index = waiting[uid]?.firstIndex(of: topic)
        else { return }
        waiting[uid]?.remove(at: index)
        guard waiting[uid]?.isEmpty == true else { return }
        waiting[uid] = nil
        turns.removeAll { $0 == uid }
    }

    /// Nobody subscribes to it any more.
    mutating func remove(_ topic: [UInt8]) {
        if let known = reasons.keys.first(where: { $0.topic == topic }) { remove(known) }
    }
}
