import JSON

/// Whether the devices of all rigs are connected.
struct RigCheck: Check {
    let id = "rigs"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        return .of(facts.bus.rigs.flatMap(findings), healthy: facts.bus.rigs.isEmpty ? "there are none" : "complete")
    }

    private func findings(_ rig: JSONValue) -> [Finding] {
        let name = rig["name"]?.string ?? "?"
        return (rig["devices"]?.array ?? []).filter { $0["connected"] != true }.map { device in
            let id = device["id"]?.string ?? device["uniqueID"]?.string ?? "?"
            let change =
                rig["configured"] == true
                ? "change the rig in the configuration file" : "change the rig with 'camerabus rigs set'"
            return Finding(
                "rig-incomplete", name, meaning: "A device of the rig '\(name)' is not connected: \(id).",
                remedy: "camerabus devices",
                advice: "Plug it in, or \(change). Until then the rig can't be "
                    + (device["id"]?.string == nil
                        ? "locked or configured." : "configured, and its sets lack the device."))
        }
    }
}
