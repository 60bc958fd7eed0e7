import CaptureSources

/// Holds back what a camera moves by itself, such as its exposure under automatic, which may be another with every
/// frame: it is passed on twice a second, always with its newest value. Everything else goes at once, and takes along
/// what was held.
struct EventPacer {
    private var held: [DeviceEvent] = []
    /// When something of this kind was passed on last, monotonic nanoseconds.
    private var lastTime = Int64.min / 2

    static let period: Int64 = 500_000_000

    /// - Parameter isRestless: whether the control with this id moves by itself.
    /// - Returns: what is to be told now, and when ``due(at:)`` is to be asked for the rest; nil: nothing is held.
    mutating func take(
        _ events: [DeviceEvent], at now: Int64, isRestless: (UInt32) -> Bool
    ) -> (events: [DeviceEvent], wake: Int64?) {
        held += events
        let moves = events.allSatisfy { event in
            guard case .control(let event) = event else { return false }
            return event.flags == nil && isRestless(event.id)
        }
        guard moves else { return (release(lastTime), nil) }
        guard now - lastTime >= Self.period else { return ([], lastTime + Self.period) }
        return (release(now), nil)
    }

    /// What was held, whose time has come.
    mutating func due(at now: Int64) -> [DeviceEvent] { release(now) }

    private mutating func release(_ time: Int64) -> [DeviceEvent] {
        defer { held = [] }
        lastTime = time
        return held
    }
}
