import JSON

/// Whether the bus's processes for its devices run.
struct WorkerCheck: Check {
    let id = "workers"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        guard !facts.bus.devices.isEmpty else { return .skipped("the bus has no devices") }
        var findings: [Finding] = []
        var notes: [String] = []
        for device in facts.bus.devices {
            let id = device["id"]?.string ?? "?"
            let worker = device["worker"]
            let state = worker?["state"]?.string ?? "unknown"
            let restarts = worker?["restarts"]?.integer ?? 0
            if state == "running" || state == "starting" {
                if restarts > 0 { notes.append("The worker of \(id) was restarted \(times(restarts)).") }
            } else {
                findings.append(
                    Finding(
                        "worker-down", id,
                        meaning: "The process that serves \(id) has ended (it is \(state), after \(times(restarts))).",
                        remedy: "journalctl -u camerabusd -n 50",
                        advice: "The bus restarts it. The log shows why it ended."))
            }
            if let since = worker?["busySince"], !since.isNull {
                findings.append(
                    Finding(
                        "driver-hangs", id, meaning: "The driver of \(id) has not answered for a while.",
                        remedy: "sudo dmesg | tail",
                        advice:
                            "After 10 s its process is restarted. If this happens again and again, unplug the camera "
                            + "and plug it in again."
                    ))
            }
        }
        return .of(findings, healthy: "\(facts.bus.devices.count) run", notes: notes)
    }

    private func times(_ count: Int64) -> String { count == 1 ? "1 restart" : "\(count) restarts" }
}
