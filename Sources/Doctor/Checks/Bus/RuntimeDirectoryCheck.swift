/// Whether the directory of the bus's sockets has the right owner and mode.
struct RuntimeDirectoryCheck: Check {
    let id = "runtime-directory"

    func examine(_ facts: Facts) -> Outcome {
        let present = facts.directories.filter { $0.kind != .missing }
        guard !present.isEmpty else { return .skipped("there is no runtime directory yet") }
        let findings = present.flatMap { self.findings($0, facts) }
        return .of(findings, healthy: present.map(\.path).joined(separator: ", "))
    }

    private func findings(_ directory: DirectoryFact, _ facts: Facts) -> [Finding] {
        let path = directory.path
        switch directory.kind {
        case .missing: return []
        case .hidden:
            return [
                Finding(
                    "runtime-directory-hidden", path, meaning: "You have no permission to see whether it exists.",
                    remedy: "namei -l \(path.shellWord)",
                    advice: "You need the permission x on each directory above it.")
            ]
        case .link, .other:
            return [
                Finding(
                    "runtime-directory-kind", path,
                    meaning: directory.kind == .link
                        ? "It is a symbolic link. Bus and clients trust only a real directory."
                        : "It is not a directory.",
                    remedy: "\(sudo(directory, facts))rm \(path.shellWord)")
            ]
        case .directory: break
        }
        var findings: [Finding] = []
        if let finding = owner(directory, facts) { findings.append(finding) }
        let group = facts.groups["camerabus"]?.gid
        let isShared = directory.isSystem && group != nil
        if directory.mode & 0o022 != 0 || directory.mode & 0o007 != 0 {
            findings.append(
                Finding(
                    "runtime-directory-mode", path,
                    meaning: "It is open to others (mode \(octal(directory.mode))): "
                        + (directory.mode & 0o022 != 0
                            ? "they could replace the sockets of the bus."
                            : "users without permission can see its sockets."),
                    remedy: "\(sudo(directory, facts))chmod \(isShared ? "0750" : "0700") \(path.shellWord)"))
        } else if directory.mode & 0o700 != 0o700 || (isShared && directory.mode & 0o050 != 0o050) {
            findings.append(
                Finding(
                    "runtime-directory-mode", path,
                    meaning: "Its mode \(octal(directory.mode)) excludes users that need access: "
                        + (isShared ? "the bus, or the members of the group camerabus." : "the bus itself."),
                    remedy: "\(sudo(directory, facts))chmod \(isShared ? "0750" : "0700") \(path.shellWord)"))
        }
        // The bus that answers there has given it to whatever group its configuration names.
        let isBusOwn = facts.bus.isAnswering && facts.bus.directory == path
        if isShared, let group, directory.gid != group, !isBusOwn {
            findings.append(
                Finding(
                    "runtime-directory-group", path,
                    meaning:
                        "It belongs to the group \(facts.groupName(directory.gid)), so members of camerabus have no "
                        + "access.",
                    remedy: facts.service.unit != nil && facts.service.hasSystemd
                        ? "sudo systemctl restart camerabusd" : "sudo chgrp camerabus \(path.shellWord)"))
        }
        return findings
    }

    private func owner(_ directory: DirectoryFact, _ facts: Facts) -> Finding? {
        let path = directory.path
        if let bus = facts.busProcess, facts.bus.directory == path, facts.bus.isAnswering {
            guard directory.uid != bus.uid else { return nil }
            return Finding(
                "runtime-directory-owner", path,
                meaning: "It belongs to uid \(directory.uid), but its bus runs as uid \(bus.uid).",
                remedy: "sudo chown \(bus.uid) \(path.shellWord)")
        }
        guard !directory.isSystem, directory.uid != facts.user.uid else { return nil }
        // Where a bus of theirs may run, nothing is to be taken away.
        guard directory.socket == .dead || directory.socket == .missing, directory.lockHolder == nil else {
            return Finding(
                "runtime-directory-owner", path,
                meaning:
                    "It belongs to uid \(directory.uid), and may contain a bus of that user; you are uid "
                    + "\(facts.user.uid).",
                remedy: "ls -ld \(path.shellWord)",
                advice: "For your own bus use another directory: 'camerabusd --runtime-dir DIRECTORY'.")
        }
        return Finding(
            "runtime-directory-owner", path,
            meaning:
                "It belongs to uid \(directory.uid), and you are uid \(facts.user.uid). Your bus can't use it, "
                + "and you can't trust a bus in it.",
            remedy: "sudo rm -r \(path.shellWord)", advice: "Check first who created it: 'ls -ld \(path)'.")
    }

    private func sudo(_ directory: DirectoryFact, _ facts: Facts) -> String {
        directory.uid == facts.user.uid || facts.user.uid == 0 ? "" : "sudo "
    }
}

func octal(_ mode: UInt32) -> String {
    let digits = String(mode & 0o7777, radix: 8)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
}
