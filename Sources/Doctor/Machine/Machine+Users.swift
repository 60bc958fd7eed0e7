import LinuxIO

extension Machine {
    func userName() -> String? { users().first { $0.uid == uid }?.name }

    func userID(_ name: String) -> UInt32? { users().first { $0.name == name }?.uid }

    private func users() -> [(name: String, uid: UInt32)] {
        files.lines("/etc/passwd").compactMap { line in
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            guard fields.count >= 3, let uid = UInt32(fields[2]) else { return nil }
            return (String(fields[0]), uid)
        }
    }

    func groupFacts() -> [String: GroupFact] {
        var groups: [String: GroupFact] = [:]
        for line in files.lines("/etc/group") {
            let fields = line.split(separator: ":", omittingEmptySubsequences: false)
            guard fields.count >= 4, let gid = UInt32(fields[2]) else { continue }
            groups[String(fields[0])] = GroupFact(
                gid: gid, members: Set(fields[3].split(separator: ",").map(String.init)))
        }
        return groups
    }

    /// The process's user and groups (`/proc/PID/status`); nil when it is gone, or hidden.
    func process(_ pid: Int32) -> ProcessFact? {
        guard pid > 0 else { return nil }
        var uid: UInt32?
        var groups: Set<UInt32> = []
        for line in files.lines("/proc/\(pid)/status") {
            let words = line.split(whereSeparator: \.isWhitespace)
            switch words.first {
            // Real, effective, saved, of the file system.
            case "Uid:": uid = words.count > 2 ? UInt32(words[2]) : nil
            case "Gid:": groups.formUnion(words.dropFirst(2).prefix(1).compactMap { UInt32($0) })
            case "Groups:": groups.formUnion(words.dropFirst().compactMap { UInt32($0) })
            default: break
            }
        }
        return uid.map { ProcessFact(pid: pid, uid: $0, groups: groups) }
    }

    func processHiding() -> ProcessHiding? {
        for line in files.lines("/proc/self/mounts") {
            let fields = line.split(separator: " ")
            guard fields.count > 3, fields[1] == "/proc", fields[2] == "proc" else { continue }
            let options = fields[3].split(separator: ",").map { $0.split(separator: "=", maxSplits: 1) }
            guard let option = options.last(where: { $0.first == "hidepid" && $0.count == 2 })?[1],
                option != "0", option != "off"
            else { continue }
            let gid = options.last { $0.first == "gid" && $0.count == 2 }.flatMap { UInt32($0[1]) }
            return ProcessHiding(option: String(option), gid: gid)
        }
        return nil
    }
}
