public import BusProtocol
public import JSON

/// A microphone as a session has to know it.
public struct SessionMicrophone: Hashable, Sendable {
    public var formats: [MicrophoneFormat]
    public var dataSources: [SoundDataSource]
    /// How it is set.
    public var current: SoundFormat

    public init(formats: [MicrophoneFormat], dataSources: [SoundDataSource], current: SoundFormat) {
        self.formats = formats
        self.dataSources = dataSources
        self.current = current
    }

    /// Reads what a worker tells of its microphone; nil: it is not a microphone, or has not been opened yet.
    ///
    /// - Parameters:
    ///   - description: as ``MicrophoneDescription/json`` writes it.
    ///   - activeFormat: how it is set.
    public init?(description: JSONValue?, activeFormat: JSONValue?) {
        guard let description, let activeFormat, let current = try? SoundFormat(json: activeFormat),
            let formats = description["formats"]?.array
        else { return nil }
        self.init(
            formats: formats.compactMap { try? MicrophoneFormat(json: $0) },
            dataSources: (description["dataSources"]?.array ?? []).compactMap(SoundDataSource.init(json:)),
            current: current)
    }

    /// The format that a wish means.
    ///
    /// - Throws: in the mode `exact`, `formatUnsupported` {nearest} for one that it has not.
    public func format(
        of request: FormatRequest, device: String, mode: ConfigurationMode
    ) throws(BusError) -> SoundFormat {
        let identity = DeviceIdentity(
            uniqueID: "", localizedName: "", mediaType: .audio, type: .external, position: .unspecified, driver: "",
            bus: "")
        let planner = SoundPlanner(
            description: MicrophoneDescription(identity: identity, formats: formats, controls: []))
        let plan = try planner.plan(
            ConfigurationChange(device: device, activeFormat: request), path: "",
            current: SoundConfiguration(format: current, controls: [:]), mode: mode)
        return plan.format ?? current
    }
}

/// What a session wants of a microphone.
public struct SoundDemand: Hashable, Sendable {
    public var party: CaptureParty
    /// The higher one wins.
    public var priority: Int
    /// When it began; of equal priorities the older one wins.
    public var since: Instant
    /// nil: whatever it is set to.
    public var format: FormatRequest?
    /// The data source that it is to listen at; nil: whichever is set.
    public var dataSource: String?

    public init(
        _ party: CaptureParty, priority: Int = 0, since: Instant, format: FormatRequest? = nil,
        dataSource: String? = nil
    ) {
        self.party = party
        self.priority = priority
        self.since = since
        self.format = format
        self.dataSource = dataSource
    }
}

/// How a microphone is to be set for those who want it. Nobody has to wait for another: who doesn't get the device as
/// he wants it gets a rendition that is so.
public struct SoundDecision: Hashable, Sendable {
    /// How it is to be set.
    public var format: SoundFormat
    /// The wish that this is; nil: nobody has one, and it stays as it is.
    public var wish: FormatRequest?
    /// The data source that it is to listen at; nil: whichever is set.
    public var dataSource: String?
    /// Why, in sentences for people.
    public var explanation: [String]

    /// - Parameters:
    ///   - demands: of those who may set the device.
    ///   - others: of those who take it as it is, as it is locked.
    public init(device: String, _ microphone: SessionMicrophone, demands: [SoundDemand], others: [SoundDemand] = []) {
        let ordered = demands.sorted { left, right in
            (-left.priority, left.since, left.party.id) < (-right.priority, right.since, right.party.id)
        }
        func wanted(_ demand: SoundDemand) -> SoundFormat? {
            demand.format.flatMap { try? microphone.format(of: $0, device: device, mode: .nearest) }
        }
        let first = ordered.lazy.compactMap { demand in wanted(demand).map { (demand, $0) } }.first
        format = first?.1 ?? microphone.current
        wish = first?.0.format
        dataSource = ordered.lazy.compactMap(\.dataSource).first
        var sentence = "\(device) gives \(format.words)"
        if let (demand, _) = first { sentence += ", as \(demand.party.title) wants" }
        explanation = [sentence + "."]
        for demand in ordered + others {
            guard let own = wanted(demand), !own.isSame(as: format) else { continue }
            explanation.append("\(demand.party.title) wants \(own.words), and gets a conversion.")
        }
    }
}

extension CaptureParty {
    fileprivate var title: String { name.isEmpty ? id : name }
}

extension MicrophoneFormat {
    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        func range(_ json: JSONValue) throws(BusError) -> ClosedRange<Int> {
            guard let low = json["min"]?.integer, let high = json["max"]?.integer, low >= 0, low <= high,
                high <= Int64(Int32.max)
            else { throw .invalidParams("", "must be {min, max}") }
            return Int(low)...Int(high)
        }
        let rates = try reader.array("rates").compactMap { $0.integer.flatMap { Int(exactly: $0) } }
        self.init(
            id: try reader.string("id"), sampleFormat: try reader.word("sampleFormat"),
            channels: try range(try reader.required("channels")), rates: rates,
            rateRange: try reader.known("rateRange").map(range),
            periodFrames: try range(try reader.required("periodFrames")))
    }
}

extension SoundDataSource {
    /// Reads what ``json`` writes; nil when it is something else.
    init?(json: JSONValue) {
        guard let id = json["id"]?.string, let name = json["name"]?.string else { return nil }
        self.init(
            id: id, name: name,
            orientation: json["orientation"]?.string.flatMap(DataSourceOrientation.init(rawValue:)))
    }
}
