/// Whether the user that opens the cameras may open their nodes.
struct NodePermissionCheck: Check {
    let id = "node-permission"

    private let door = NodeAccess(
        prefix: "node", subsystem: "video4linux", group: "video", installingRule: UdevCheck.installingRule)

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.nodes.isEmpty else { return .skipped("there is no device node") }
        return .of(
            facts.nodes.compactMap { door.finding($0, facts) },
            healthy: "\(facts.opener.name) may open all of \(facts.nodes.count)", notes: ways(facts))
    }

    /// Who opens cameras without the bus, where that is another user's: its permission does not bind them. This is no
    /// fault, as most machines are set up so.
    private func ways(_ facts: Facts) -> [String] {
        let opener = facts.opener
        guard !opener.isUser else { return [] }
        var who: [String] = []
        for gid in Set(facts.nodes.compactMap(\.file).filter(\.isForItsGroup).map(\.gid)).sorted() {
            let name = facts.groupName(gid)
            let members = (facts.groups[name]?.members ?? []).subtracting(["camerabus", opener.account]).sorted()
            if !members.isEmpty { who.append("the group \(name) (\(members.joined(separator: ", ")))") }
        }
        if facts.udev.givesCamerasToLogin { who.append("whoever sits at the machine (udev's tag uaccess)") }
        if facts.nodes.contains(where: { $0.file.map { $0.mode & 0o006 != 0 } ?? false }) { who.append("everybody") }
        guard !who.isEmpty else { return [] }
        return [
            "Without the bus, and its permission, the cameras are open to \(who.joined(separator: " and to ")). "
                + "'Cameras only through the bus' in the guide service.md says how to close that."
        ]
    }
}
