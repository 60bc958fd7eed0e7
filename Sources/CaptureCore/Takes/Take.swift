public import BusProtocol
public import JSON

/// A take: segments that are recorded one after the other, any of which can be thrown away, and that are joined in the
/// end.
///
/// What is to be done comes back from each call; times are milliseconds of what plays.
public struct Take: Hashable, Sendable {
    /// A part of the take, in a file of its own.
    public struct Segment: Hashable, Sendable {
        /// The id of the movie that it is.
        public var id: String
        public var path: String
        public var duration: Int64

        public init(id: String, path: String, duration: Int64 = 0) {
            self.id = id
            self.path = path
            self.duration = duration
        }

        /// {id, path, duration}
        public var json: JSONValue {
            ["id": .string(id), "path": .string(path), "duration": .integer(duration)]
        }
    }

    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Nothing is recorded.
        case paused
        /// A segment is recorded.
        case recording
        /// A segment ends: its file is being closed.
        case ending
        /// The segments are being joined.
        case finishing
        /// They are joined.
        case finished
        /// It was given up.
        case discarded
    }

    public enum Action: Hashable, Sendable {
        /// Record this segment, no longer than so many milliseconds.
        case record(Segment, maxDuration: Int64?)
        /// End the recording of the segment with that id.
        case stop(String)
        /// End it and leave nothing of it.
        case cancel(String)
        /// Remove the file of this segment.
        case remove(Segment)
        /// Join these, in this order.
        case join([Segment])
    }

    /// What is to be told, as `event/take/<id>/`.
    public enum Event: String, Hashable, Sendable, CaseIterable {
        /// A segment was finished, and all together are shorter than they are to be.
        case recordDurationLessMinRecordDuration
        /// A segment was finished, and there is no room for more.
        case recordDurationLargerEqualMaxRecordDuration
    }

    public let id: String
    /// nil: as short as you like.
    public let minDuration: Int64?
    /// nil: as long as you like.
    public let maxDuration: Int64?
    public private(set) var state = State.paused
    /// Those that are finished, in their order.
    public private(set) var segments: [Segment] = []
    /// The one that is recorded now.
    public private(set) var current: Segment?
    // One that ends at its limit may be a frame shorter.
    private var isFilled = false

    /// The most segments of one take.
    public static let maximumSegments = 256

    /// - Throws: `invalidParams` where the least is more than the most, or one of them is none.
    public init(id: String, minDuration: Int64? = nil, maxDuration: Int64? = nil) throws(BusError) {
        if let minDuration, minDuration < 0 { throw .invalidParams("minDuration", "must not be below 0") }
        if let maxDuration, maxDuration < 1 { throw .invalidParams("maxDuration", "must be above 0") }
        if let minDuration, let maxDuration, minDuration > maxDuration {
            throw .invalidParams("minDuration", "must not be above maxDuration")
        }
        self.id = id
        self.minDuration = minDuration
        self.maxDuration = maxDuration
    }

    /// How long the segment is that is recorded now.
    public var duration: Int64 { current?.duration ?? 0 }

    /// How long all of them are together.
    public var total: Int64 { segments.reduce(duration) { $0 + $1.duration } }

    /// How much can still be recorded; nil: as much as you like.
    public var remaining: Int64? { maxDuration.map { isFilled ? 0 : max(0, $0 - total) } }

    /// Nothing more happens to it.
    public var isOver: Bool { state == .finished || state == .discarded }

    // MARK: What is asked for

    /// Begins a segment behind the others.
    ///
    /// - Throws: `recordingInProgress` while one is recorded, or the take is being finished; `limitExceeded` where
    ///   there is no room for more; `notRecording` when it is over.
    public mutating func record(_ id: String, path: String) throws(BusError) -> Action {
        try checkIsPaused()
        if remaining == 0 {
            throw BusError(
                .limitExceeded, "The take \(self.id) has reached its maxDuration; delete a segment or finish it.",
                ["limit": "maxDuration", "maximum": maxDuration.map(JSONValue.integer) ?? .null])
        }
        guard segments.count < Self.maximumSegments else {
            throw BusError(
                .limitExceeded, "The take \(self.id) has \(Self.maximumSegments) segments; delete one, or finish it.",
                ["limit": "segments", "maximum": JSONValue(Self.maximumSegments)])
        }
        let segment = Segment(id: id, path: path)
        current = segment
        state = .recording
        return .record(segment, maxDuration: remaining)
    }

    /// Ends the segment that is recorded.
    ///
    /// - Returns: nil: it ends already.
    /// - Throws: `notRecording`.
    public mutating func pause() throws(BusError) -> Action? {
        switch state {
        case .recording:
            state = .ending
            return current.map { .stop($0.id) }
        case .ending: return nil
        default: throw notRecording("No segment of the take \(id) is being recorded.")
        }
    }

    /// Throws a segment away, whichever it is; there is room for another one then.
    ///
    /// - Throws: `recordingInProgress` for the one that is recorded and while the take is being finished;
    ///   `invalidParams` for one that it doesn't have; `notRecording` when it is over.
    public mutating func delete(_ segment: String) throws(BusError) -> Action {
        if isOver { throw over }
        guard segment != current?.id, state != .finishing else { throw inProgress }
        guard let index = segments.firstIndex(where: { $0.id == segment }) else {
            throw .invalidParams("segment", "the take \(id) has no segment '\(segment)'")
        }
        isFilled = false
        return .remove(segments.remove(at: index))
    }

    /// Has its segments joined, also when they are shorter than they are to be.
    ///
    /// - Throws: `recordingInProgress` while one is recorded; `notRecording` when there are none, or the take is over.
    public mutating func finish() throws(BusError) -> Action {
        try checkIsPaused()
        guard !segments.isEmpty else { throw notRecording("The take \(id) has no segments to join.") }
        state = .finishing
        return .join(segments)
    }

    /// Gives it up with all of its segments; what is being joined is not waited for.
    ///
    /// - Throws: `notRecording` when it is over.
    public mutating func discard() throws(BusError) -> [Action] {
        if isOver { throw over }
        let actions = (current.map { [Action.cancel($0.id)] } ?? []) + segments.map(Action.remove)
        (current, segments, state) = (nil, [], .discarded)
        return actions
    }

    // MARK: What happens

    /// The segment that is recorded is so long now.
    ///
    /// - Returns: whether there is anything new to tell (`recordProgress`).
    public mutating func progressed(_ segment: String, to duration: Int64) -> Bool {
        guard current?.id == segment, duration > self.duration else { return false }
        current?.duration = duration
        return true
    }

    /// The file of the segment that was recorded is closed.
    ///
    /// - Parameters:
    ///   - isKept: there is a file that plays.
    ///   - isFull: it has ended as it had no more room.
    /// - Returns: what is to be told.
    public mutating func ended(_ segment: String, duration: Int64, isKept: Bool, isFull: Bool = false) -> Event? {
        guard var last = current, last.id == segment else { return nil }
        current = nil
        state = .paused
        guard isKept, duration > 0 else { return nil }
        last.duration = duration
        segments.append(last)
        isFilled = isFull && maxDuration != nil
        if let minDuration, total < minDuration { return .recordDurationLessMinRecordDuration }
        return remaining == 0 ? .recordDurationLargerEqualMaxRecordDuration : nil
    }

    /// The segments are joined, or can't be: then all of them are still there.
    public mutating func joined(_ isDone: Bool) {
        guard state == .finishing else { return }
        state = isDone ? .finished : .paused
    }

    private func checkIsPaused() throws(BusError) {
        if isOver { throw over }
        guard state == .paused else { throw inProgress }
    }

    private var over: BusError { notRecording("The take \(id) is over.") }

    private var inProgress: BusError {
        let why = state == .finishing ? "is being finished" : "is being recorded; pause it first"
        return BusError(.recordingInProgress, "The take \(id) \(why).", ["take": .string(id)])
    }

    private func notRecording(_ message: String) -> BusError {
        BusError(.notRecording, message, ["take": .string(id)])
    }

    /// {id, state, segments, duration, total, remaining, minDuration, maxDuration}
    public var json: JSONValue {
        [
            "id": .string(id), "state": .string(state.rawValue), "segments": .array(segments.map(\.json)),
            "duration": .integer(duration), "total": .integer(total),
            "remaining": remaining.map(JSONValue.integer) ?? .null,
            "minDuration": minDuration.map(JSONValue.integer) ?? .null,
            "maxDuration": maxDuration.map(JSONValue.integer) ?? .null,
        ]
    }

    // MARK: Kept

    /// What the next coordinator reads: ``json`` has what is told.
    public var keptJSON: JSONValue {
        .members([
            "state": .string(state.rawValue), "segments": .array(segments.map(\.json)), "current": current?.json,
            "full": isFilled ? .bool(true) : nil, "minDuration": minDuration.map(JSONValue.integer),
            "maxDuration": maxDuration.map(JSONValue.integer),
        ])
    }

    /// Reads what ``keptJSON`` writes.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(id: String, keptJSON json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        try self.init(
            id: id, minDuration: reader.known("minDuration")?.integer, maxDuration: reader.known("maxDuration")?.integer
        )
        state = try reader.word("state")
        segments = try reader.array("segments").map { (segment) throws(BusError) in try Segment(json: segment) }
        current = try reader.known("current").map { (segment) throws(BusError) in try Segment(json: segment) }
        isFilled = reader.known("full")?.bool ?? false
        guard segments.count <= Self.maximumSegments, !isOver else {
            throw .invalidParams("segments", "has too many entries, or the take has ended")
        }
        guard (current != nil) == (state == .recording || state == .ending) else {
            throw .invalidParams("current", "does not match the state \(state.rawValue)")
        }
    }
}

extension Take.Segment {
    init(json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "segments")
        id = try reader.string("id")
        path = try reader.string("path")
        duration = try reader.integer("duration", in: 0...9_000_000_000_000)
    }
}
