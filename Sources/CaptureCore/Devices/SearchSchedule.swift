/// When to look for cameras again: shortly after the last event of a burst, and at once again when something came
/// meanwhile.
public struct SearchSchedule: Sendable, Hashable {
    public enum Action: Sendable, Hashable {
        /// Call ``due(at:)`` at that time, which replaces an earlier one.
        case wake(at: Instant)
        /// Look now, and say ``finished(at:)`` when done.
        case search
    }

    /// Nanoseconds of quiet that end a burst, and how long one may keep the search waiting.
    public static let quiet: Int64 = 100_000_000
    public static let patience: Int64 = 1_000_000_000

    private var firstEvent: Instant?
    private var lastEvent: Instant?
    public private(set) var isSearching = false

    public init() {}

    /// Something came or went.
    public mutating func event(at now: Instant) -> [Action] {
        firstEvent = firstEvent ?? now
        lastEvent = now
        return next(now)
    }

    /// Look at once, whatever has happened: asked for, or the first time.
    public mutating func demand(at now: Instant) -> [Action] {
        firstEvent = now.advanced(byNanoseconds: -Self.patience)
        lastEvent = now
        return next(now)
    }

    public mutating func due(at now: Instant) -> [Action] { next(now) }

    /// The search has ended. What came while it ran may have come too late for it.
    public mutating func finished(at now: Instant) -> [Action] {
        isSearching = false
        return next(now)
    }

    private mutating func next(_ now: Instant) -> [Action] {
        guard !isSearching, let firstEvent, let lastEvent else { return [] }
        let time = min(
            lastEvent.advanced(byNanoseconds: Self.quiet), firstEvent.advanced(byNanoseconds: Self.patience))
        guard now >= time else { return [.wake(at: time)] }
        (self.firstEvent, self.lastEvent) = (nil, nil)
        isSearching = true
        return [.search]
    }
}
