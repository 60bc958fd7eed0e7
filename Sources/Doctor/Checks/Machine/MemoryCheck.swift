/// Whether there is memory for pictures.
struct MemoryCheck: Check {
    let id = "memory"

    /// A few 1080p cameras with what is on the way to their clients.
    private static let needed: UInt64 = 256 << 20
    /// Address space goes further than memory: each thread's stack, each mapping counts.
    private static let neededAddressSpace: UInt64 = 4 << 30

    func examine(_ facts: Facts) -> Outcome {
        let limits = facts.limits
        var findings: [Finding] = []
        if let available = limits.memoryAvailable, available < Self.needed {
            findings.append(
                Finding(
                    "memory-low", meaning: "The machine has \(available >> 20) MiB of memory left.",
                    remedy: "ps -eo rss,pid,comm --sort=-rss | head",
                    advice: "Use smaller formats or fewer cameras, or end the program that uses most memory."))
        }
        if let limit = limits.memoryLimit, limit < Self.needed {
            let group = limits.memoryLimitGroup ?? "/"
            findings.append(
                Finding(
                    "memory-limit-low", group, meaning: "The control group may have \(limit >> 20) MiB of memory.",
                    remedy: "echo 1G | sudo tee \("/sys/fs/cgroup\(group)/memory.max".shellWord)",
                    advice: "For a service: MemoryMax= of its unit; for a container: its --memory."))
        }
        if let limit = limits.addressSpace, limit < Self.neededAddressSpace {
            findings.append(
                Finding(
                    "address-space-limited",
                    meaning: "Programs may have \(limit >> 20) MiB of address space ('ulimit -v').",
                    remedy: "ulimit -v unlimited",
                    advice: "If that is refused: the hard limit is in /etc/security/limits.conf ('as')."))
        }
        return .of(findings, healthy: limits.memoryAvailable.map { "\($0 >> 20) MiB are free" } ?? "no limit found")
    }
}
