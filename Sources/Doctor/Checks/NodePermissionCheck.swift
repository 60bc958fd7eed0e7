/// Whether who opens the cameras may.
struct NodePermissionCheck: Check {
    let id = "node-permission"

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.nodes.isEmpty else { return .skipped("there is no node") }
        let opener = facts.opener
        var findings: [Finding] = []
        for node in facts.nodes {
            guard let file = node.file else {
                findings.append(absent(node, facts))
                continue
            }
            let isOpen =
                opener.isUser ? file.isAccessible : file.permits(uid: opener.uid, groups: opener.groups)
            if !isOpen { findings.append(finding(node, file, opener, facts)) }
        }
        return .of(findings, healthy: "\(opener.name) may open all of \(facts.nodes.count)")
    }

    private func absent(_ node: NodeFact, _ facts: Facts) -> Finding {
        Finding(
            "node-missing", node.path,
            meaning:
                "The kernel has this node, and /dev has no file for it: in a container it has to be passed through.",
            remedy: facts.udev.isRunning
                ? "sudo udevadm trigger --subsystem-match=video4linux" : "docker run --device \(node.path.shellWord) …",
            advice: "In a container: the option is that of whatever starts it.")
    }

    private func finding(_ node: NodeFact, _ file: NodeFile, _ opener: Opener, _ facts: Facts) -> Finding {
        let group = facts.groupName(file.gid)
        let state = "\(node.path) belongs to uid \(file.uid) and the group \(group), mode \(octal(file.mode))"
        guard file.isForItsGroup else {
            return Finding(
                "node-without-group", node.path,
                meaning: "\(state): only root may open it. A rule of udev should give it to the group video.",
                remedy: facts.udev.isRunning
                    ? UdevCheck.installingRule
                    : "sudo chgrp video \(node.path.shellWord) && sudo chmod 0660 \(node.path.shellWord)")
        }
        if opener.isUser, let name = facts.user.name, facts.groups[group]?.members.contains(name) == true {
            return Finding(
                "node-not-permitted", node.path,
                meaning: "\(state); you have been made a member of \(group), and this login began before that.",
                remedy: "newgrp \(group)", advice: "Or log out and in again.")
        }
        let account = opener.isUser ? facts.user.account : "$(id -nu \(opener.uid))"
        return Finding(
            "node-not-permitted", node.path,
            meaning: "\(state), which \(opener.name) \(opener.isUser ? "are" : "is") not in.",
            remedy: "sudo usermod -aG \(group) \(account)",
            advice: opener.isUser
                ? "Then log in again." : "Then start the bus again: 'sudo systemctl restart camerabusd'.")
    }
}
