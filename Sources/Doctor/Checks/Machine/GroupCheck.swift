/// Whether the needed groups exist, and whether this login is in them.
struct GroupCheck: Check {
    let id = "groups"

    func examine(_ facts: Facts) -> Outcome {
        let hasSystemDirectory = facts.directories.contains { $0.isSystem && $0.kind != .missing }
        let needsBusGroup = facts.service.unit != nil || (hasSystemDirectory && facts.user.uid != 0)
        var findings: [Finding] = []
        if needsBusGroup { findings += busGroup(facts) }
        if facts.user.uid != 0 {
            for name in relevant(facts) { findings += inactive(name, facts) }
        }
        guard findings.isEmpty else { return .faulty(findings) }
        let names = relevant(facts).filter { name in
            facts.groups[name].map { facts.user.groups.contains($0.gid) } ?? false
        }
        if facts.user.uid == 0 { return .healthy("you are root") }
        return .healthy(names.isEmpty ? "no group is needed" : "you are in \(names.joined(separator: " and "))")
    }

    private func relevant(_ facts: Facts) -> [String] {
        ["camerabus", "video"] + (facts.soundCards.isEmpty ? [] : ["audio"])
    }

    private func busGroup(_ facts: Facts) -> [Finding] {
        guard let group = facts.groups["camerabus"] else {
            return [
                Finding(
                    "group-missing", "camerabus",
                    meaning:
                        "The group of the system service does not exist. Only root and the service can connect to it.",
                    remedy: facts.service.hasSystemd ? "sudo systemd-sysusers" : "sudo groupadd --system camerabus",
                    advice: "Then restart the service.")
            ]
        }
        let user = facts.user
        let isServed = user.uid == 0 || facts.bus.isAnswering || user.groups.contains(group.gid)
        guard !isServed, !(user.name.map { group.members.contains($0) } ?? false) else { return [] }
        return [
            Finding(
                "not-in-group", "camerabus",
                meaning: "You are not in the group camerabus, whose members may connect to the system service.",
                remedy: "sudo usermod -aG camerabus \(user.account)",
                advice: "Then log in again, or use 'newgrp camerabus' in this shell.")
        ]
    }

    private func inactive(_ name: String, _ facts: Facts) -> [Finding] {
        guard let group = facts.groups[name], let account = facts.user.name, group.members.contains(account),
            !facts.user.groups.contains(group.gid)
        else { return [] }
        return [
            Finding(
                "group-not-active", name,
                meaning: "You were added to the group \(name) after this login began.",
                remedy: "newgrp \(name)", advice: "Or log out and in again, for all programs.")
        ]
    }
}
