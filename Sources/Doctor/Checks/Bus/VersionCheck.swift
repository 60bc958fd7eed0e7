/// Whether the programs have the same version.
struct VersionCheck: Check {
    let id = "versions"

    func examine(_ facts: Facts) -> Outcome {
        let versions = facts.versions
        var parts = ["camerabus \(versions.program)"]
        parts += versions.libraries.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        if let kernel = versions.kernel { parts.append("Linux \(kernel)") }
        let text = parts.joined(separator: ", ")
        guard facts.bus.isAnswering, let bus = facts.bus.version, bus != versions.program else { return .healthy(text) }
        // Machines are updated one after the other, and the protocol bears that.
        if facts.remote != nil {
            return .healthy(
                text, notes: ["The bus has version \(bus). Features that one of both does not have are not available."])
        }
        return .faulty(
            [
                Finding(
                    "version-mismatch",
                    meaning:
                        "The bus has version \(bus), this program \(versions.program). One of them is outdated.",
                    remedy: facts.service.unit != nil && facts.service.hasSystemd
                        ? "sudo systemctl restart camerabusd" : "type -a camerabus camerabusd",
                    advice: "Restart the bus after an update. The workers continue meanwhile.")
            ], notes: [text])
    }
}
