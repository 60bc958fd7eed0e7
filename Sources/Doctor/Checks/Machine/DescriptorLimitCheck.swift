/// Whether enough descriptors may be open for the bus's clients.
struct DescriptorLimitCheck: Check {
    let id = "descriptor-limit"

    /// The coordinator's connections with what it reserves; fewer turn clients away before the bus's own limits do.
    private static let needed: UInt64 = 2048
    private static let dropIns = "/etc/systemd/system/camerabusd.service.d"

    func examine(_ facts: Facts) -> Outcome {
        guard let limit = facts.limits.descriptors else { return .healthy("unlimited") }
        guard limit < Self.needed else { return .healthy("\(limit)") }
        let isService = facts.limits.areOfBus && facts.service.hasSystemd
        return .faulty([
            Finding(
                "descriptor-limit-low",
                meaning:
                    "\(facts.limits.areOfBus ? "The bus" : "A bus started here") may have \(limit) descriptors open; "
                    + "with fewer than \(Self.needed) it refuses clients early.",
                remedy: isService
                    ? "sudo mkdir -p \(Self.dropIns) && printf '[Service]\\nLimitNOFILE=65536\\n' | sudo tee "
                        + "\(Self.dropIns)/limits.conf && sudo systemctl daemon-reload && sudo systemctl restart "
                        + "camerabusd"
                    : "sudo prlimit --pid $$ --nofile=65536",
                advice: isService
                    ? nil
                    : "This is only for this shell. To make it permanent, write '* hard nofile 65536' into "
                        + "/etc/security/limits.conf and log in again."
            )
        ])
    }
}
