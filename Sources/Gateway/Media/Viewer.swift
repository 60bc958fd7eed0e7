/// One topic of one connection: one message for each that the client asked for. A client that asks late gets the newest
/// one.
struct Viewer {
    /// Messages that may be asked for and not taken yet.
    static let maximumCredit = 8
    /// Nanoseconds after which a message is of the past, and nobody gets it any more.
    static let staleness: Int64 = 1_000_000_000
    /// Nanoseconds without being asked, after which nothing is made for it any more.
    static let patience: Int64 = 10_000_000_000

    private(set) var credit = 0
    /// Sizes of what was sent and, as far as is known, not taken yet; the oldest first.
    private var underWay: [Int] = []
    private(set) var takesRaw = false
    private var last: UInt64
    /// What comes next of a format whose frames build on one another has to be a key frame.
    private var isBroken = true
    /// When it asked last.
    private var lastAsk: Int64

    /// - Parameter newest: of the reel, as it is now: a new viewer waits for the next.
    init(after newest: UInt64, at now: Int64) {
        last = newest
        lastAsk = now
    }

    /// Whether it has got what it asked for, and has asked for nothing for long.
    func isIdle(at now: Int64) -> Bool { credit == 0 && now - lastAsk > Self.patience }

    /// Bytes on their way.
    var bytesUnderWay: Int { underWay.reduce(0, +) }

    /// It asks for one more, which says that it has taken the one before.
    mutating func ask(raw: Bool, at now: Int64) {
        lastAsk = now
        if !underWay.isEmpty { underWay.removeFirst() }
        credit = min(credit + 1, Self.maximumCredit - underWay.count)
        takesRaw = raw
    }

    /// What it gets now; nil: it has to wait, for a message or to be asked.
    mutating func take(from recent: RecentMessages<MediaItem>, at now: Int64) -> MediaItem? {
        guard credit > 0 else { return nil }
        while let (number, item, hasGap) = recent.next(after: last) {
            last = number
            if hasGap { isBroken = true }
            guard now - item.arrived <= Self.staleness else {
                isBroken = true
                continue
            }
            if item.isKey == false, isBroken { continue }
            isBroken = false
            return item
        }
        return nil
    }

    /// That was sent.
    mutating func sent(bytes: Int) {
        credit = max(0, credit - 1)
        underWay.append(bytes)
    }

    /// That could not be sent.
    mutating func lost() { isBroken = true }
}
