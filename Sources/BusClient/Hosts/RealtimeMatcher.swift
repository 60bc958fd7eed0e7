/// Which frames of several cameras were taken at the same time, by the clock of the world: no socket in sight.
///
/// To each frame of the first camera, the lead, it finds the nearest of each other one; that of a slower camera may be
/// in two sets. A frame is the nearest when a later one arrived, or when it is exactly of the same time; a camera that
/// gives nothing for long after the lead's frame is not waited for any longer. All times are nanoseconds.
struct RealtimeMatcher<Element: Sendable>: Sendable {
    /// What belongs to one frame of the lead.
    struct Match: Sendable {
        /// The lead's first, then the others' in the order of their names.
        var parts: [Part]
        /// Those without a frame in time.
        var missing: [String]
    }

    /// One camera's frame.
    struct Part: Sendable {
        var name: String
        var element: Element
        /// From the lead's frame to this one.
        var offset: Int64
    }

    private struct Entry: Sendable {
        var time: Int64
        var element: Element
    }

    private let lead: String
    private let others: [String]
    private let tolerance: Int64
    private let patience: Int64
    private var leads: [Entry] = []
    private var waiting: [String: [Entry]] = [:]
    /// When each camera's newest frame was taken: not the newest of all times, as a clock that was ahead may have been
    /// set back.
    private var newest: [String: Int64] = [:]

    /// Frames of a camera that wait for others'.
    private static var room: Int { 32 }

    /// - Parameters:
    ///   - names: of the cameras; the first leads.
    ///   - tolerance: how far from the lead's a frame may be.
    ///   - patience: for how long after the lead's frame those of others are waited for.
    /// - Returns: nil: there are not two cameras, or one is named twice.
    init?(_ names: [String], tolerance: Int64, patience: Int64) {
        guard let lead = names.first, names.count > 1, Set(names).count == names.count else { return nil }
        self.lead = lead
        others = Array(names.dropFirst())
        self.tolerance = max(0, tolerance)
        self.patience = patience
    }

    /// Takes a frame in.
    ///
    /// - Returns: the sets that are complete by it, the oldest first.
    mutating func receive(_ name: String, at time: Int64, _ element: Element) -> [Match] {
        let entry = Entry(time: time, element: element)
        if name == lead {
            Self.put(entry, into: &leads)
        } else if others.contains(name) {
            Self.put(entry, into: &waiting[name, default: []])
        } else {
            return []
        }
        newest[name] = time
        var found: [Match] = []
        while let first = leads.first, let match = matched(first) {
            leads.removeFirst()
            forget(before: first.time)
            found.append(match)
        }
        return found
    }

    private static func put(_ entry: Entry, into entries: inout [Entry]) {
        if entries.count >= room { entries.removeFirst() }
        entries.append(entry)
    }

    /// nil: nearer ones may still come.
    private func matched(_ first: Entry) -> Match? {
        let isLate = Self.difference(from: first.time, to: newest.values.max() ?? first.time) > patience
        guard isLate || others.allSatisfy({ hasReached(first.time, $0) }) else { return nil }
        var match = Match(parts: [Part(name: lead, element: first.element, offset: 0)], missing: [])
        for name in others {
            let nearest = waiting[name]?.min { Self.distance(first.time, $0.time) < Self.distance(first.time, $1.time) }
            if let nearest, Self.distance(first.time, nearest.time) <= tolerance.magnitude {
                let offset = Self.difference(from: first.time, to: nearest.time)
                match.parts.append(Part(name: name, element: nearest.element, offset: offset))
            } else {
                match.missing.append(name)
            }
        }
        return match
    }

    private func hasReached(_ time: Int64, _ name: String) -> Bool {
        guard let last = waiting[name]?.last else { return false }
        return last.time >= time
    }

    // The next frame of the lead is later: of those before this one's nearest, none is any use.
    private mutating func forget(before time: Int64) {
        for name in others {
            var kept = waiting[name] ?? []
            while kept.count > 1, kept[1].time <= time { kept.removeFirst() }
            waiting[name] = kept
        }
    }

    // What a machine says of its time may be anything.
    private static func difference(from one: Int64, to other: Int64) -> Int64 {
        let (difference, overflow) = other.subtractingReportingOverflow(one)
        guard overflow else { return difference }
        return other > one ? .max : .min
    }

    private static func distance(_ one: Int64, _ other: Int64) -> UInt64 { difference(from: one, to: other).magnitude }
}
