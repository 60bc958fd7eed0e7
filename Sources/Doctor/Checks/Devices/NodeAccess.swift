/// Whether the user that opens the devices may open a node, and how to allow it.
struct NodeAccess {
    /// What the ids of findings begin with: `node`.
    let prefix: String
    /// udev's subsystem of such nodes: `video4linux`.
    let subsystem: String
    /// The group that such nodes are for.
    let group: String
    /// The rule of udev's that gives them to it, installed by hand and applied to the nodes that are there.
    let installingRule: String

    /// nil: it may.
    func finding(_ node: NodeFact, _ facts: Facts) -> Finding? {
        guard let file = node.file else { return absent(node, facts) }
        let opener = facts.opener
        let isOpen = opener.isUser ? file.isAccessible : file.permits(uid: opener.uid, groups: opener.groups)
        return isOpen ? nil : shut(node, file, opener, facts)
    }

    private func absent(_ node: NodeFact, _ facts: Facts) -> Finding {
        Finding(
            "\(prefix)-missing", node.path,
            meaning:
                "The kernel has this node, but /dev has no file for it. In a container, pass the device through.",
            remedy: facts.udev.isRunning
                ? "sudo udevadm trigger --subsystem-match=\(subsystem)"
                : "docker run --device \(node.path.shellWord) …",
            advice: "The option depends on the container program.")
    }

    private func shut(_ node: NodeFact, _ file: NodeFile, _ opener: Opener, _ facts: Facts) -> Finding {
        let owner = facts.groupName(file.gid)
        let state = "\(node.path) belongs to uid \(file.uid) and the group \(owner), mode \(octal(file.mode))"
        guard file.isForItsGroup else {
            return Finding(
                "\(prefix)-without-group", node.path,
                meaning: "\(state). Only root may open it. A udev rule should give it to the group \(group).",
                remedy: facts.udev.isRunning
                    ? installingRule
                    : "sudo chgrp \(group) \(node.path.shellWord) && sudo chmod 0660 \(node.path.shellWord)")
        }
        if opener.isUser, let name = facts.user.name, facts.groups[owner]?.members.contains(name) == true {
            return Finding(
                "\(prefix)-not-permitted", node.path,
                meaning: "\(state). You were added to the group \(owner) after this login began.",
                remedy: "newgrp \(owner)", advice: "Or log out and in again.")
        }
        return Finding(
            "\(prefix)-not-permitted", node.path,
            meaning:
                "\(state), and \(opener.name) \(opener.isUser ? "are" : "is") not in this group.",
            remedy: "sudo usermod -aG \(owner) \(opener.account)",
            advice: opener.isUser
                ? "Then log in again." : "Then restart the bus: 'sudo systemctl restart camerabusd'.")
    }
}
