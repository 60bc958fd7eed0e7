public import BusProtocol
public import JSON

/// Why a session has no pictures for now: AVFoundation's `AVCaptureSession.InterruptionReason`, and what Linux adds.
public enum InterruptionReason: String, Hashable, Sendable, CaseIterable {
    /// Another session's, or a lock's.
    case videoDeviceInUseByAnotherClient
    /// The machine or the device is under too much pressure to go on.
    case videoDeviceNotAvailableDueToSystemPressure
    /// It is not plugged in.
    case deviceDisconnected
    /// A program's beside the bus.
    case deviceInUseByForeignProcess
    /// The same of a microphone.
    case audioDeviceInUseByAnotherClient
}

/// How a device streams, or is to.
public struct StreamSetting: Hashable, Sendable {
    /// The row of the format table; nil if the format is in none.
    public var formatID: String?
    public var format: FormatSelection
    /// nil: the driver doesn't tell.
    public var frameDuration: FrameDuration?

    public init(formatID: String? = nil, format: FormatSelection, frameDuration: FrameDuration? = nil) {
        self.formatID = formatID
        self.format = format
        self.frameDuration = frameDuration
    }

    public init(_ configuration: DeviceConfiguration) {
        self.init(
            formatID: configuration.formatID, format: configuration.format, frameDuration: configuration.frameDuration)
    }

    /// Two rows of a format table may have one pixel format and size, and differ in what else they can do.
    func isOtherRow(than other: StreamSetting?) -> Bool {
        guard let formatID, let id = other?.formatID else { return false }
        return formatID != id
    }

    /// Smaller pictures, or as large ones at a lower rate.
    func isLess(than other: StreamSetting) -> Bool {
        let (area, others) = (format.dimensions.area, other.format.dimensions.area)
        guard area == others, let frameDuration, let present = other.frameDuration else { return area < others }
        return frameDuration > present
    }

    /// {activeFormat: {id, pixelFormat, width, height}, frameDuration}
    public var json: JSONValue {
        .object(["activeFormat": format.json(id: formatID), "frameDuration": frameDuration?.json ?? .null])
    }
}

/// What a served demand gets.
public struct DemandDelivery: Hashable, Sendable {
    /// What to subscribe to.
    public var rendition: Rendition
    /// Of the pictures as they come.
    public var dimensions: Dimensions
    /// Decimated as the rendition says; nil: the driver doesn't tell.
    public var frameDuration: FrameDuration?
    /// The device's own; nil: not known.
    public var pixelFormat: PixelFormat?

    public init(
        rendition: Rendition, dimensions: Dimensions, frameDuration: FrameDuration?, pixelFormat: PixelFormat? = nil
    ) {
        self.pixelFormat = pixelFormat
        self.rendition = rendition
        self.dimensions = dimensions
        self.frameDuration = frameDuration
    }
}

/// What is to become of a device and of all who want something of it.
public struct ArbiterDecision: Hashable, Sendable {
    public enum Outcome: Hashable, Sendable {
        case satisfied(DemandDelivery)
        /// It waits, because of those: the holder of the lock, or who comes first and needs something else.
        case interrupted(reason: InterruptionReason, by: CaptureParty)
        /// The device can't do that, whoever else is there, or it isn't set for it and a mere subscription doesn't
        /// change that. Half a sentence for people, without its full stop.
        case unsupported(why: String)
    }

    public struct Verdict: Hashable, Sendable {
        public var demand: CaptureDemand
        public var outcome: Outcome

        public init(demand: CaptureDemand, outcome: Outcome) {
            self.demand = demand
            self.outcome = outcome
        }
    }

    /// How the device is to stream; nil: it has no format at all, or nobody knows how it is set and nobody wants
    /// anything. Where nobody knows and only subscribers want something, a guess.
    public var setting: StreamSetting?
    /// True if the device has to be set anew for it; never without a session.
    public var isChange: Bool
    /// One for each demand, those who come first first.
    public var verdicts: [Verdict]
    /// Why, in whole sentences for people.
    public var explanation: [String]
    /// The same, of what is not so yet: `would stream` in the place of `streams`.
    public var forecast: [String]

    public init(
        setting: StreamSetting?, isChange: Bool, verdicts: [Verdict], explanation: [String], forecast: [String]
    ) {
        self.setting = setting
        self.isChange = isChange
        self.verdicts = verdicts
        self.explanation = explanation
        self.forecast = forecast
    }

    /// What becomes of that one's demand; nil: it has none here.
    public func outcome(of party: CaptureParty) -> Outcome? {
        verdicts.first { $0.demand.party.kind == party.kind && $0.demand.party.id == party.id }?.outcome
    }

    /// Nobody has less than by that one.
    func serves(allOf other: ArbiterDecision) -> Bool {
        other.verdicts.allSatisfy { !$0.outcome.isServed || outcome(of: $0.demand.party)?.isServed ?? false }
    }
}

extension ArbiterDecision.Outcome {
    fileprivate var isServed: Bool { if case .satisfied = self { true } else { false } }
}
