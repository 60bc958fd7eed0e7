import JSON

/// Errors that the bus reports about its devices.
struct DeviceErrorCheck: Check {
    let id = "device-errors"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        let findings = facts.bus.devices.compactMap(finding)
        return .of(findings, healthy: "none")
    }

    private func replay(_ id: String, _ device: JSONValue) -> Finding {
        let message = device["error"]?["message"]?.string ?? "\(id) is not connected."
        return Finding(
            "replay-ended", id, meaning: message, remedy: "camerabus fault \(id.shellWord) replug",
            advice:
                "A replay without repetition ends like this; the command starts it again. A missing or damaged file is "
                + "named above. "
                + "The bus looks for it again by itself; 'ffprobe' shows its content.")
    }

    private func finding(_ device: JSONValue) -> Finding? {
        let id = device["id"]?.string ?? "?"
        if device["connected"] == false {
            if device["driver"] == "replay" { return replay(id, device) }
            return Finding(
                "device-disconnected", id, meaning: "\(id) is not connected.",
                remedy: "sudo dmesg | tail",
                advice:
                    "Plug it in. It comes back with the same name and settings. If it disconnects by itself, try "
                    + "another cable, "
                    + "port or powered hub.")
        }
        guard let error = device["error"], !error.isNull else { return nil }
        let message = error["message"]?.string ?? ""
        switch error["reason"]?.string {
        // Who that is, and whose processes have ended, other checks say.
        case "deviceInUse":
            return Finding("device-in-use", id, meaning: message, remedy: "sudo camerabus who \(id.shellWord)")
        case "workerCrashed": return nil
        case let reason:
            return Finding(
                "device-error", id, meaning: "\(reason ?? "error"): \(message)",
                remedy: "journalctl -u camerabusd -n 50")
        }
    }
}
