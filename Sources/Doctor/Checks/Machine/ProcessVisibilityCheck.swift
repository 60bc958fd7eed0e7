/// Whether the bus can see its clients' processes.
struct ProcessVisibilityCheck: Check {
    let id = "process-visibility"

    func examine(_ facts: Facts) -> Outcome {
        guard let hiding = facts.processHiding else { return .healthy("all processes can be seen") }
        let opener = facts.opener
        if opener.uid == 0 { return .healthy("hidden from others (hidepid=\(hiding.option)), not from root") }
        if let gid = hiding.gid, opener.groups.contains(gid) {
            return .healthy("hidden from others (hidepid=\(hiding.option)), not from the group \(facts.groupName(gid))")
        }
        let group = hiding.gid.map { facts.groupName($0) }
        let account = opener.account
        return .faulty([
            Finding(
                "processes-hidden", "/proc",
                meaning:
                    "Other users' processes are hidden (hidepid=\(hiding.option)): a bus that does not run as root can't watch its "
                    + "clients there, so that their locks last 10 s unless renewed, and can't tell who has a camera.",
                remedy: group.map { "sudo usermod -aG \($0) \(account)" } ?? "sudo mount -o remount,hidepid=0 /proc",
                advice: group == nil
                    ? "For good: in /etc/fstab. To keep it: mount /proc with gid= of a group, and put the bus's user into it."
                    : "Then start the bus again.")
        ])
    }
}
