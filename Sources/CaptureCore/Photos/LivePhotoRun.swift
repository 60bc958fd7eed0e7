public import BusProtocol
import JSON

/// The live photos that a session's photo output is making, and what may be in their movies.
///
/// A value that is told what happens; whoever records asks it from when to when each movie is. Times are monotonic
/// nanoseconds.
public struct LivePhotoRun: Hashable, Sendable {
    /// How many movies can be made at a time, over one past.
    public static let maximum = 4

    public var isSuspended: Bool { suspension != nil }
    /// Since when nothing is to be in any movie; nil: it is.
    private var suspension: Instant?
    /// Of the movies that are being made, by their photos' ids.
    public private(set) var windows: [String: LivePhotoWindow] = [:]
    /// Nothing older may be in any movie; nil: all that is held may.
    private var earliest: Instant?

    public init(isSuspended: Bool = false) { suspension = isSuspended ? .min : nil }

    /// A photo was taken at that moment.
    ///
    /// - Parameter oldest: of what was held at that moment; nil: nothing was.
    /// - Throws: `limitExceeded` {limit: "livePhotos", maximum}; `invalidParams` where it was suspended at that moment,
    ///   or there is one of that id.
    public mutating func begin(_ id: String, moment: Instant, oldest: Instant?) throws(BusError) -> LivePhotoWindow {
        // The word of a photo comes later than its picture.
        if let suspension, moment >= suspension {
            throw .invalidParams("settings.livePhoto", "is not available while livePhotoCaptureSuspended is true")
        }
        guard windows[id] == nil else { throw .invalidParams("job", "'\(id)' is being recorded already") }
        guard windows.count < Self.maximum else {
            throw BusError(
                .limitExceeded, "\(Self.maximum) live photos are being recorded; try again in a moment.",
                ["limit": "livePhotos", "maximum": JSONValue(Self.maximum)])
        }
        let bounds = [earliest, oldest].compactMap(\.self)
        var window = LivePhotoWindow(moment: moment, notBefore: bounds.max())
        if let suspension { window.end(at: suspension) }
        // Word of it comes late: all else that is held is not of its time.
        if let earliest, moment < earliest { window.end(at: moment) }
        windows[id] = window
        return window
    }

    /// The movie is finished, or given up.
    public mutating func finish(_ id: String) { windows[id] = nil }

    /// Movement was seen around a photo: only what lies between is in its movie.
    public mutating func trim(_ id: String, from start: Instant?, to end: Instant?) {
        if let start { windows[id]?.begin(at: start) }
        if let end { windows[id]?.end(at: end) }
    }

    /// `livePhotoCaptureSuspended` is set: what is being made ends now, and what comes after holds nothing from before.
    public mutating func setSuspended(_ isSuspended: Bool, at now: Instant) {
        guard isSuspended != self.isSuspended else { return }
        suspension = isSuspended ? now : nil
        if isSuspended { endAll(at: now) } else { earliest = now }
    }

    /// How much of the past a movie of now could begin with: nanoseconds, at most ``LivePhotoWindow/reach``.
    ///
    /// - Parameters:
    ///   - oldest: of the pictures that are held; nil: none is.
    ///   - newest: likewise.
    public func past(from oldest: Instant?, to newest: Instant?) -> Int64 {
        guard !isSuspended, let oldest, let newest else { return 0 }
        return max(0, min(LivePhotoWindow.reach, newest &- max(oldest, earliest ?? oldest)))
    }

    /// The session is set otherwise, stopped, or may not be heard or seen any more: what is being made ends with what
    /// it has.
    public mutating func endAll(at now: Instant) {
        for id in windows.keys { windows[id]?.end(at: now) }
    }

    /// Pictures come from another stream now: what was held is not what comes next.
    public mutating func restart(at now: Instant) {
        endAll(at: now)
        earliest = now
    }
}
