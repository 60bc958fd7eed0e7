/// Whether what belongs together is of one version.
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
            return .healthy(text, notes: ["The bus is version \(bus): what one of both doesn't know yet can't be had."])
        }
        return .faulty(
            [
                Finding(
                    "version-mismatch",
                    meaning:
                        "The bus is version \(bus), and this program \(versions.program): one of them is left over.",
                    remedy: facts.service.unit != nil && facts.service.hasSystemd
                        ? "sudo systemctl restart camerabusd" : "type -a camerabus camerabusd",
                    advice: "After an update the bus has to be started again; the workers go on meanwhile.")
            ], notes: [text])
    }
}
