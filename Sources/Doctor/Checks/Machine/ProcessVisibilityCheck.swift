/// Whether the bus can see its clients' processes.
struct ProcessVisibilityCheck: Check {
    let id = "process-visibility"

    func examine(_ facts: Facts) -> Outcome {
        guard let hiding = facts.processHiding else { return .healthy("all processes are visible") }
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
                    "Other users' processes are hidden (hidepid=\(hiding.option)). A bus that does not run as root "
                    + "can't see its "
                    + "clients: their locks last 10 s unless renewed, and it can't tell which program uses a camera.",
                remedy: group.map { "sudo usermod -aG \($0) \(account)" } ?? "sudo mount -o remount,hidepid=0 /proc",
                advice: group == nil
                    ? "To make this permanent, change /etc/fstab. To keep hidepid, mount /proc with gid= of a group, "
                        + "and add the bus's user to it."
                    : "Then restart the bus.")
        ])
    }
}
