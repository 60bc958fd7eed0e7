/// Whether the user that opens the cameras may open their nodes.
struct NodePermissionCheck: Check {
    let id = "node-permission"

    private let door = NodeAccess(
        prefix: "node", subsystem: "video4linux", group: "video", installingRule: UdevCheck.installingRule)

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.nodes.isEmpty else { return .skipped("there is no device node") }
        return .of(
            facts.nodes.compactMap { door.finding($0, facts) },
            healthy: "\(facts.opener.name) may open all of \(facts.nodes.count)")
    }
}
