/// What `/proc/pressure/…` tells of one resource: in which share of the last ten seconds programs waited for it,
/// percent (Documentation/accounting/psi.rst).
public struct StallReading: Hashable, Sendable {
    /// At least one did.
    public var some: Double
    /// All that had something to do did; 0 where the kernel doesn't tell.
    public var full: Double

    public init(some: Double, full: Double = 0) {
        self.some = some
        self.full = full
    }

    /// Reads `some avg10=0.12 avg60=0.05 avg300=0.01 total=12345`, and perhaps a line of `full`; nil when it is
    /// something else.
    public init?(_ text: String) {
        var values: [Substring: Double] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split(separator: " ")
            guard let kind = words.first, let average = words.first(where: { $0.hasPrefix("avg10=") }),
                let value = Double(average.dropFirst("avg10=".count)), value.isFinite
            else { continue }
            values[kind] = min(max(value, 0), 100)
        }
        guard let some = values["some"] else { return nil }
        self.init(some: some, full: values["full"] ?? 0)
    }
}

/// A place whose temperature the machine knows (`/sys/class/thermal/thermal_zone*`), in thousandths of a degree
/// Celsius.
public struct ThermalZone: Hashable, Sendable {
    /// A temperature from which on something is done about it.
    public struct Trip: Hashable, Sendable {
        /// `critical`: the machine is switched off; `hot`: it is about to be; `passive`: it is slowed down; `active`: a
        /// fan runs.
        public var type: String
        public var temperature: Int

        public init(type: String, temperature: Int) {
            self.type = type
            self.temperature = temperature
        }

        /// Firmware writes anything where there is none.
        var isMeant: Bool { (20_000...200_000).contains(temperature) }
    }

    public var temperature: Int
    public var trips: [Trip]

    public init(temperature: Int, trips: [Trip]) {
        self.temperature = temperature
        self.trips = trips.filter(\.isMeant)
    }

    /// Whether anything can be told from it: without a trip point nobody knows what is too hot for it.
    public var isMeaningful: Bool { !trips.isEmpty }

    func level(at temperature: Int) -> SystemPressureLevel {
        func has(_ type: String, within margin: Int = 0) -> Bool {
            trips.contains { $0.type == type && temperature >= $0.temperature - margin }
        }
        if has("critical", within: 2000) { return .shutdown }
        if has("hot") || has("critical", within: 5000) { return .critical }
        if has("passive") || has("critical", within: 10_000) { return .serious }
        return has("active") || has("critical", within: 20_000) ? .fair : .nominal
    }
}

/// From what is read of the machine to its level of pressure. A level that was reached is left only when what it comes
/// from is well below it again.
public struct SystemPressureGauge: Hashable, Sendable {
    private var levels: [SystemPressureFactor: SystemPressureLevel] = [:]

    /// A tenth less than what brought it up, at which a level ends.
    private static let slack = 0.9
    /// Degrees, in thousandths, by which it has to be cooler than what brought it up.
    private static let coolness = 3000

    public init() {}

    public var state: SystemPressureState { SystemPressureState(levels) }

    public func level(of factor: SystemPressureFactor) -> SystemPressureLevel { levels[factor] ?? .nominal }

    /// - Parameter reading: nil: it can't be read (any more).
    public mutating func take(_ reading: StallReading?, of factor: SystemPressureFactor) {
        guard let reading else {
            levels[factor] = nil
            return
        }
        settle(
            factor, Self.level(reading, of: factor, times: 1), Self.level(reading, of: factor, times: 1 / Self.slack))
    }

    /// - Parameter zones: all there are.
    public mutating func take(_ zones: [ThermalZone]) {
        func highest(_ extra: Int) -> SystemPressureLevel {
            zones.map { $0.level(at: $0.temperature.addingReportingOverflow(extra).partialValue) }.max() ?? .nominal
        }
        settle(.systemTemperature, highest(0), highest(Self.coolness))
    }

    // Up at once, down only as far as a little more would bring it.
    private mutating func settle(
        _ factor: SystemPressureFactor, _ now: SystemPressureLevel, _ almost: SystemPressureLevel
    ) {
        let level = max(now, min(level(of: factor), almost))
        levels[factor] = level == .nominal ? nil : level
    }

    /// From which share on (percent) each level is reached. That all processors are busy is what processors are for,
    /// and that a disk is slow harms no camera: only where memory is moved to and fro does everything stand still.
    private static func level(
        _ reading: StallReading, of factor: SystemPressureFactor, times scale: Double
    ) -> SystemPressureLevel {
        let (some, full) = (reading.some * scale, reading.full * scale)
        switch factor {
        case .cpu: return some >= 90 ? .serious : some >= 50 ? .fair : .nominal
        case .io: return full >= 60 ? .serious : some >= 60 ? .fair : .nominal
        case .memory:
            if full >= 60 { return .shutdown }
            if full >= 30 { return .critical }
            return full >= 10 ? .serious : some >= 10 ? .fair : .nominal
        case .systemTemperature, .cameraTemperature: return .nominal
        }
    }
}
