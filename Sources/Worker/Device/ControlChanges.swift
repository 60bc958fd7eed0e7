import BusProtocol
import CaptureCore
import CaptureSources
import JSON

/// Why controls have other values than before.
enum ControlCause: String {
    /// By order of a client.
    case configured
    /// They had been changed, and were put back to what was committed.
    case restored
    /// By the camera itself, or by another program.
    case external
}

/// The differences of controls between two snapshots.
struct ControlChanges {
    /// By name, the drivers' and the model's; nil: it could not be read.
    var values: [String: (old: JSONValue?, new: JSONValue?)] = [:]
    /// Those whose flags, range or items are others, sorted.
    var described: [String] = []

    var isEmpty: Bool { values.isEmpty && described.isEmpty }

    init() {}

    init(from old: DeviceSnapshot, to new: DeviceSnapshot) {
        if old.configuration != new.configuration || old.description.controls != new.description.controls {
            let (before, now) = (old.values, new.values)
            for name in Set(before.keys).union(now.keys) where before[name] != now[name] {
                values[name] = (before[name], now[name])
            }
        }
        let known = Dictionary(old.description.controls.map { ($0.name, $0) }) { first, _ in first }
        described = new.description.controls.filter { $0 != known[$0.name] }.map(\.name).sorted()
    }

    /// The members of the event `controlsChanged`: {cause, controls: {name: {old, new}}, described: [name]}.
    func json(_ cause: ControlCause) -> [String: JSONValue] {
        [
            "cause": .string(cause.rawValue),
            "controls": .object(
                values.mapValues { ["old": $0.old ?? .null, "new": $0.new ?? .null] }),
            "described": JSONValue(described),
        ]
    }
}

extension DeviceSnapshot {
    /// The snapshot with the events that arrived after it was read.
    ///
    /// - Returns: nil when an event requires reading the device.
    func changed(by events: [ControlEvent]) -> DeviceSnapshot? {
        var changed = self
        for event in events where event.time >= began {
            if event.mustBeRead { return nil }
            guard let index = description.controls.firstIndex(where: { $0.id == event.id }) else { continue }
            if let value = event.value, !description.controls[index].flags.contains(.writeOnly) {
                changed.configuration.controls[description.controls[index].name] = value
            }
            if let flags = event.flags { changed.description.controls[index].flags = flags }
            changed.asOf = max(changed.asOf, event.time)
        }
        return changed
    }
}
