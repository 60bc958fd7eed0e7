import JSON

/// What the bus says is wrong with its devices.
struct DeviceErrorCheck: Check {
    let id = "device-errors"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        let findings = facts.bus.devices.compactMap(finding)
        return .of(findings, healthy: "none")
    }

    private func replay(_ id: String, _ device: JSONValue) -> Finding {
        let message = device["error"]?["message"]?.string ?? "\(id) is not there."
        return Finding(
            "replay-ended", id, meaning: message, remedy: "camerabus fault \(id.shellWord) replug",
            advice:
                "A replay that is played once ends so, and begins anew by this command. A file that is missing or damaged is named above; it "
                + "is looked for again by itself, and 'ffprobe' says what is in it.")
    }

    private func finding(_ device: JSONValue) -> Finding? {
        let id = device["id"]?.string ?? "?"
        if device["connected"] == false {
            if device["driver"] == "replay" { return replay(id, device) }
            return Finding(
                "device-disconnected", id, meaning: "\(id) is not plugged in, or has dropped out.",
                remedy: "sudo dmesg | tail",
                advice:
                    "Plug it in: it comes back under the same name with the same settings. If it drops out by itself, try another cable, "
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
