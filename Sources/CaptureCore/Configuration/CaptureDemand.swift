public import BusProtocol

/// Who wants something of a device.
public struct CaptureParty: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case session
        /// Somebody who is subscribed to media and has no session: takes what there is, and never changes the format.
        case subscriber
        /// The holder of the device's lock.
        case lock
    }

    public var kind: Kind
    /// Unique among those of its kind.
    public var id: String
    /// What people call it; empty: its id.
    public var name: String
    /// How many it stands for: those who subscribe to one rendition want the same.
    public var count: Int

    public init(_ kind: Kind, id: String, name: String = "", count: Int = 1) {
        self.kind = kind
        self.id = id
        self.name = name
        self.count = count
    }
}

/// The frame durations that somebody can do with: AVFoundation's `activeVideoMinFrameDuration` and
/// `activeVideoMaxFrameDuration`.
///
/// A faster device is decimated to the shortest; a slower one than the longest doesn't do.
public struct FrameDurationBounds: Hashable, Sendable {
    /// The shortest: the highest rate. nil: any.
    public var minFrameDuration: FrameDuration?
    /// The longest: the lowest rate. nil: any.
    public var maxFrameDuration: FrameDuration?

    public init(min: FrameDuration? = nil, max: FrameDuration? = nil) {
        minFrameDuration = min
        maxFrameDuration = max
    }

    /// That rate and no other.
    public init(constant duration: FrameDuration) { self.init(min: duration, max: duration) }
}

/// What somebody wants of one device.
public struct CaptureDemand: Hashable, Sendable {
    public enum Wish: Hashable, Sendable {
        /// The device itself in that format (`activeFormat`, preset inputPriority).
        ///
        /// - Parameters:
        ///   - id: the row of the format table; nil: any with this pixel format and size.
        ///   - frameDurations: nil: any.
        case format(FormatSelection, id: String? = nil, frameDurations: FrameDurationBounds? = nil)
        /// Pictures of that size: the device's own or scaled down.
        ///
        /// - Parameters:
        ///   - pixelFormat: nil: whatever the device has.
        ///   - rate: nil: whatever the device has; a faster device is decimated.
        case size(Dimensions, pixelFormat: PixelFormat? = nil, rate: FrameDuration? = nil)
        /// What the preset means for this device. Its rate is had as far as those allow who come first.
        case preset(SessionPreset)
        /// What a subscription asks for: any device whose pictures are large enough; the rate is at most.
        case rendition(Rendition)
        /// Whatever the device delivers.
        case nothing
    }

    public var party: CaptureParty
    /// The higher one wins.
    public var priority: Int
    /// When it began; of equal priorities the older one wins.
    public var since: Instant
    public var wish: Wish

    public init(_ party: CaptureParty, priority: Int = 0, since: Instant, wish: Wish) {
        self.party = party
        self.priority = priority
        self.since = since
        self.wish = wish
    }

    /// That of all who subscribe to a rendition of the device, and have no session.
    public init(subscribers count: Int, of rendition: Rendition) {
        let name = count == 1 ? "a plain subscriber of \(rendition)" : "\(count) plain subscribers of \(rendition)"
        let party = CaptureParty(.subscriber, id: rendition.description, name: name, count: count)
        // Who came first says nothing: none of them makes another wait.
        self.init(party, since: 0, wish: .rendition(rendition))
    }

    /// It takes whatever the device delivers.
    var follows: Bool {
        guard case .rendition(let rendition) = wish else { return false }
        return rendition.encoding == .native
    }
}
