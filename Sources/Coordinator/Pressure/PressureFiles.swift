import CaptureCore
import LinuxIO

/// What is to be read of the machine's pressure.
struct PressureOrder: Sendable {
    /// The folders of thermal zones that were found last.
    var zones: [String]
    /// The number of the search for zones that is to be made first; nil: none is.
    var search: UInt64?
}

/// What the machine told of its pressure.
struct PressureReading: Sendable {
    var stalls: [SystemPressureFactor: StallReading]
    var temperatures: [ThermalZone]
    /// The zones that were read, and the number of the search that found them.
    var zones: [String]
    var search: UInt64?
}

/// Where the machine tells of its pressure, below a root that tests put elsewhere.
struct PressureFiles {
    /// In front of /proc and /sys; empty for the machine itself.
    let root: String

    /// Bytes of a file of theirs.
    private static let limit = 4096
    private static let maximumZones = 256
    private static let maximumTrips = 16

    static let stallFactors: [SystemPressureFactor] = [.cpu, .memory, .io]

    var stallFolder: String { "\(root)/proc/pressure" }

    func stallPath(_ factor: SystemPressureFactor) -> String { "\(stallFolder)/\(factor.rawValue)" }

    /// Reads all there is to read. Sensors are slow: each may keep its reader waiting for a bus.
    func reading(_ order: PressureOrder) -> PressureReading {
        let zones = order.search == nil ? order.zones : zoneFolders()
        var stalls: [SystemPressureFactor: StallReading] = [:]
        for factor in Self.stallFactors { stalls[factor] = stall(factor) }
        return PressureReading(
            stalls: stalls, temperatures: zones.compactMap(zone), zones: zones, search: order.search)
    }

    /// nil: the kernel tells nothing of it.
    func stall(_ factor: SystemPressureFactor) -> StallReading? { text(stallPath(factor)).flatMap(StallReading.init) }

    /// The folders of those thermal zones that have a trip point, and are not switched off.
    func zoneFolders() -> [String] {
        let base = "\(root)/sys/class/thermal"
        let names = (Directory.names(base) ?? []).filter { $0.hasPrefix("thermal_zone") }.sorted()
        return names.prefix(Self.maximumZones).map { "\(base)/\($0)" }.filter { zone($0)?.isMeaningful ?? false }
    }

    /// nil: its temperature can't be read now.
    func zone(_ folder: String) -> ThermalZone? {
        guard text("\(folder)/mode") != "disabled", let temperature = text("\(folder)/temp").flatMap({ Int($0) }) else {
            return nil
        }
        var trips: [ThermalZone.Trip] = []
        for number in 0..<Self.maximumTrips {
            guard let type = text("\(folder)/trip_point_\(number)_type"),
                let limit = text("\(folder)/trip_point_\(number)_temp").flatMap({ Int($0) })
            else { break }
            trips.append(ThermalZone.Trip(type: type, temperature: limit))
        }
        return ThermalZone(temperature: temperature, trips: trips)
    }

    // Nothing in these folders may hold the loop up, as a pipe without a writer would.
    private func text(_ path: String) -> String? {
        guard let bytes = try? File.readAtOnce(path, limit: Self.limit) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}
