package import BusProtocol
import JSON

/// The renditions that are wanted of one device, and their clients: those that are made, those that wait for a place,
/// and those that the device cannot give.
///
/// A rendition that is made is in the share of one of its clients, and costs the others nothing. When that client
/// leaves, it goes into the share of another client with room.
package struct RenditionTable<Form: SharedForm> {
    /// A rendition and its topics: one topic per spelling.
    package struct Wanted: Hashable {
        package let rendition: Form
        package var topics: [SubscribedTopic]
        /// At least one reader has a connection for its rings.
        package var hasRing = false
        /// A movie is recorded of it.
        package var isRecorded = false

        /// A subscriber wants its place in a ring, or a reader has a connection for its rings.
        package var needsRing: Bool { hasRing || topics.contains { $0.kind == .buffer } }
    }

    package typealias Refusal = (topic: SubscribedTopic, error: BusError)

    private enum Place {
        /// It is made, in the share of this client; nil: it is always made.
        case made(RenditionClient?)
        /// It waits for a place.
        case waiting(BusError)
        /// The device cannot give it.
        case impossible(BusError)
    }

    private struct Wish {
        let number: UInt64
        var topics: [SubscribedTopic] = []
        var readers: Set<RenditionClient> = []
        /// What each client has of it: topics, and one for its rings; and when it came.
        var clients: [RenditionClient: (count: Int, number: UInt64)] = [:]
        var place = Place.waiting(BusError(.limitExceeded, ""))

        var error: BusError? {
            switch place {
            case .made: nil
            case .waiting(let error), .impossible(let error): error
            }
        }
        /// In the order in which they came.
        var clientsInOrder: [RenditionClient] { clients.sorted { $0.value.number < $1.value.number }.map(\.key) }
    }

    private struct Topic {
        /// nil: its text is no rendition.
        let form: Form?
        /// Why, if so.
        let error: BusError?
        /// In whose share of topics it is.
        var uid: UInt32
        var clients: Set<RenditionClient> = []
    }

    private let maximumTopics: Int
    private var shares: RenditionShares
    private var lastNumber: UInt64 = 0
    private var wishes: [Form: Wish] = [:]
    private var topics: [SubscribedTopic: Topic] = [:]
    private var topicCounts: [UInt32: Int] = [:]
    /// The renditions that are made, in the order in which they got their places; and those that wait, in the order in
    /// which they were first wanted.
    private var made: [Form] = []
    private var waiting: [Form] = []
    private var news: [Refusal] = []
    /// Why the device cannot give a rendition; nil: it can, or that is not known yet. Call ``recheck()`` when that may
    /// have changed.
    package var obstacle: (Form) -> BusError? = { _ in nil }
    /// Subscriptions that were ignored because there are too many.
    package private(set) var ignored: UInt64 = 0

    /// - Parameters:
    ///   - shares: distinct renditions that are made at the same time.
    ///   - maximumTopics: distinct topics that are remembered.
    package init(shares: RenditionShares, maximumTopics: Int) {
        self.shares = shares
        self.maximumTopics = maximumTopics
    }

    /// What each user is.
    package var standing: (_ uid: UInt32) -> RenditionShares.Standing {
        get { shares.standing }
        set { shares.standing = newValue }
    }

    /// The renditions to be made, in the order in which they got their places.
    package var wanted: [Wanted] {
        made.compactMap { form in
            wishes[form].map {
                Wanted(
                    rendition: form, topics: $0.topics, hasRing: !$0.readers.isEmpty,
                    isRecorded: $0.readers.contains(where: \.isRecorder))
            }
        }
    }

    /// The renditions that are made, and some of those that the device could give in another format.
    package var demanded: [Form] {
        made
            + waiting.lazy.filter { form in
                if case .impossible? = wishes[form]?.place { true } else { false }
            }.prefix(shares.total)
    }

    /// Topics that are remembered.
    package var count: Int { topics.count }

    /// Topics that get an error instead of frames.
    package var refused: [Refusal] { topics.keys.compactMap(refusal) }

    /// Renditions whose readers get an error instead of rings.
    package var refusedRings: [(rendition: Form, error: BusError)] {
        waiting.compactMap { form in
            guard let wish = wishes[form], !wish.readers.isEmpty, let error = wish.error else { return nil }
            return (form, error)
        }
    }

    /// Renditions that are not made, and why: a few of each user.
    package var refusedForms: [(rendition: Form, error: BusError)] {
        var counts: [UInt32: Int] = [:]
        var refused: [(rendition: Form, error: BusError)] = []
        for form in waiting {
            guard refused.count < Self.maximumReported else { break }
            guard let wish = wishes[form], let error = wish.error,
                let uid = wish.clients.keys.first(where: { counts[$0.uid] ?? 0 < Self.maximumReportedOfUser })?.uid
            else { continue }
            counts[uid, default: 0] += 1
            refused.append((form, error))
        }
        return refused
    }

    private static var maximumReported: Int { 64 }
    private static var maximumReportedOfUser: Int { 8 }

    /// The error of a refused topic.
    package func refusal(of subscribed: SubscribedTopic) -> Refusal? {
        guard let topic = topics[subscribed] else { return nil }
        return (topic.error ?? topic.form.flatMap { wishes[$0]?.error }).map { (subscribed, $0) }
    }

    /// The topics that were refused since the last call, each with its error.
    package mutating func takeRefusals() -> [Refusal] {
        defer { news = [] }
        return news
    }

    // MARK: Coming

    /// Adds a client's subscription; the topic may have others already.
    ///
    /// - Parameter rendition: the topic's rendition, or why it cannot be made.
    package mutating func add(
        _ subscribed: SubscribedTopic, _ rendition: Result<Form, BusError>, by client: RenditionClient
    ) -> SubscriptionChange {
        let form = try? rendition.get()
        if topics[subscribed] == nil {
            guard hasRoomForTopic(client.uid) || form?.isAlwaysMade == true else {
                ignored += 1
                news.append((subscribed, tooManyTopics))
                return .none
            }
            var error: BusError?
            if case .failure(let why) = rendition { error = why }
            topics[subscribed] = Topic(form: form, error: error, uid: client.uid)
            topicCounts[client.uid, default: 0] += 1
            if let error { news.append((subscribed, error)) }
        }
        guard topics[subscribed]?.clients.insert(client).inserted == true, let form else { return .none }
        return want(form, by: client) { wish in
            if !wish.topics.contains(subscribed) { wish.topics.append(subscribed) }
        } refused: { error in
            (subscribed, error)
        }
    }

    /// Adds a reader of a rendition's rings; the rendition may have others already.
    package mutating func addRing(_ form: Form, by client: RenditionClient) -> SubscriptionChange {
        guard wishes[form]?.readers.contains(client) != true else { return .none }
        return want(form, by: client) {
            $0.readers.insert(client)
        } refused: { _ in
            nil
        }
    }

    private mutating func want(
        _ form: Form, by client: RenditionClient, _ note: (inout Wish) -> Void, refused: (BusError) -> Refusal?
    ) -> SubscriptionChange {
        lastNumber += 1
        if wishes[form] == nil { waiting.append(form) }
        var wish = wishes[form] ?? Wish(number: lastNumber)
        note(&wish)
        let known = wish.clients[client]
        wish.clients[client] = ((known?.count ?? 0) + 1, known?.number ?? lastNumber)
        wishes[form] = wish
        if case .made = wish.place { return .wanted }
        if place(form) { return .wanted }
        if let error = wishes[form]?.error, let refusal = refused(error) { news.append(refusal) }
        return .none
    }

    // MARK: Leaving

    /// A client no longer subscribes to the topic.
    package mutating func remove(_ subscribed: SubscribedTopic, by client: RenditionClient) -> SubscriptionChange {
        guard topics[subscribed]?.clients.remove(client) != nil, let topic = topics[subscribed] else { return .none }
        let isLast = topic.clients.isEmpty
        if isLast { topics[subscribed] = nil }
        if !topic.clients.contains(where: { $0.uid == topic.uid }) {
            let left = (topicCounts[topic.uid] ?? 0) - 1
            topicCounts[topic.uid] = left > 0 ? left : nil
            // It goes into the share of the remaining user with the fewest topics.
            let heirs = Set(topic.clients.map(\.uid))
            if let heir = heirs.min(by: { (topicCounts[$0] ?? 0, $0) < (topicCounts[$1] ?? 0, $1) }) {
                topics[subscribed]?.uid = heir
                topicCounts[heir, default: 0] += 1
            }
        }
        guard let form = topic.form else { return isLast ? .forgotten : .none }
        let change = leave(form, client) { wish in
            if isLast { wish.topics.removeAll { $0 == subscribed } }
        }
        return change == .none && isLast ? .forgotten : change
    }

    /// A client no longer reads the rendition's rings.
    package mutating func removeRing(_ form: Form, by client: RenditionClient) -> SubscriptionChange {
        guard wishes[form]?.readers.contains(client) == true else { return .none }
        return leave(form, client) { $0.readers.remove(client) }
    }

    private mutating func leave(
        _ form: Form, _ client: RenditionClient, _ note: (inout Wish) -> Void
    ) -> SubscriptionChange {
        guard var wish = wishes[form], let known = wish.clients[client] else { return .none }
        note(&wish)
        wish.clients[client] = known.count > 1 ? (known.count - 1, known.number) : nil
        wishes[form] = wish
        guard case .made(let owner) = wish.place else {
            if wish.clients.isEmpty { forget(form) }
            return .none
        }
        if wish.clients.isEmpty {
            forget(form)
        } else if let owner, owner == client, wish.clients[client] == nil {
            displace(form)
            if !place(form), case .waiting? = wishes[form]?.place,
                let recorder = wish.clientsInOrder.first(where: \.isRecorder)
            {
                // A movie that is recorded does not end because somebody else has left, also where its owner has his
                // share already.
                _ = make(form, for: recorder)
            }
            noteRefusals(of: form)
        } else {
            return .wanted
        }
        fillPlaces()
        return .wanted
    }

    private mutating func forget(_ form: Form) {
        wishes[form] = nil
        made.removeAll { $0 == form }
        waiting.removeAll { $0 == form }
    }

    // MARK: Places

    /// Decides anew what the device can give.
    ///
    /// - Returns: whether ``wanted`` has changed.
    package mutating func recheck() -> Bool {
        var hasChanged = false
        for form in made where obstacle(form) != nil {
            displace(form)
            _ = place(form)
            noteRefusals(of: form)
            hasChanged = true
        }
        for form in waiting where place(form) { hasChanged = true }
        return hasChanged
    }

    private mutating func displace(_ form: Form) {
        made.removeAll { $0 == form }
        let number = wishes[form]?.number ?? 0
        let index = waiting.firstIndex { (wishes[$0]?.number ?? 0) > number } ?? waiting.endIndex
        waiting.insert(form, at: index)
        wishes[form]?.place = .waiting(BusError(.limitExceeded, ""))
    }

    /// Gives a waiting rendition a place, or notes why it gets none.
    private mutating func place(_ form: Form) -> Bool {
        guard let wish = wishes[form] else { return false }
        if let error = obstacle(form) {
            wishes[form]?.place = .impossible(error)
            return false
        }
        if form.isAlwaysMade { return make(form, for: nil) }
        let taken = owners
        var refusal: BusError?
        for client in wish.clientsInOrder {
            guard let limit = shares.obstacle(to: client, taken: taken) else { return make(form, for: client) }
            refusal = refusal ?? tooMany(limit, of: client)
            if limit == .device { break }
        }
        if let refusal { wishes[form]?.place = .waiting(refusal) }
        return false
    }

    private mutating func make(_ form: Form, for client: RenditionClient?) -> Bool {
        wishes[form]?.place = .made(client)
        waiting.removeAll { $0 == form }
        made.append(form)
        return true
    }

    // A place is free: the rendition that has waited longest, and has a client with room, gets it.
    private mutating func fillPlaces() {
        for form in waiting {
            guard owners.count < shares.total else { return }
            guard case .waiting? = wishes[form]?.place else { continue }
            _ = place(form)
        }
    }

    private var owners: [RenditionClient] {
        made.compactMap { form in
            if case .made(let client)? = wishes[form]?.place { client } else { nil }
        }
    }

    private mutating func noteRefusals(of form: Form) {
        guard let wish = wishes[form], let error = wish.error else { return }
        for topic in wish.topics { news.append((topic, error)) }
    }

    // MARK: Refusals

    // A quarter for each user, so that no user fills the table.
    private func hasRoomForTopic(_ uid: UInt32) -> Bool {
        topics.count < maximumTopics && topicCounts[uid] ?? 0 < max(1, maximumTopics / 4)
    }

    private var tooManyTopics: BusError {
        BusError(
            .limitExceeded,
            "This user has subscribed to too many different topics of this device; unsubscribe from some of them.",
            ["limit": "topics", "maximum": JSONValue(max(1, maximumTopics / 4))])
    }

    private func tooMany(_ limit: RenditionShares.Limit, of client: RenditionClient) -> BusError {
        let maximum = shares.maximum(limit, of: shares.standing(client.uid))
        let what =
            switch limit {
            case .connection: "One connection gets \(maximum) renditions of a device at a time; end another one first"
            case .user: "One user gets \(maximum) renditions of a device at a time; end another one first"
            case .others, .device: "This device makes \(maximum) renditions at a time, and others want them"
            }
        return .limitExceeded(
            .renditions, "\(what). native and jpeg are always available.", maximum: maximum)
    }
}
