import JSON

/// Whether devices have their last settings.
struct SettingsCheck: Check {
    let id = "settings"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        let findings = facts.bus.devices.compactMap { device -> Finding? in
            let names = Self.names(device["notRestored"])
            guard !names.isEmpty else { return nil }
            let id = device["id"]?.string ?? "?"
            return Finding(
                "settings-not-restored", id,
                meaning:
                    "\(id) differs from its last settings: \(names.joined(separator: ", ")) could not be restored.",
                remedy: "camerabus controls \(id.shellWord)",
                advice:
                    "Set the values again with 'camerabus set' or 'camerabus format'; these commands show the cause.")
        }
        return .of(findings, healthy: "all devices have their last settings")
    }

    /// The settings' names, from a list of names, a list of objects with a name, or an object by name.
    private static func names(_ value: JSONValue?) -> [String] {
        if let members = value?.object { return members.keys.sorted() }
        return (value?.array ?? []).compactMap { entry in
            entry.string ?? entry["name"]?.string ?? entry["control"]?.string ?? entry["path"]?.string
        }
    }
}
