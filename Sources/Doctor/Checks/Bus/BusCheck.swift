/// Whether a bus runs, and answers.
struct BusCheck: Check {
    let id = "bus"

    func examine(_ facts: Facts) -> Outcome {
        if facts.remote?.problem != nil { return .skipped("the way there is not open") }
        switch facts.bus.state {
        case .answered:
            let count = facts.bus.devices.count
            return .healthy(
                "\(facts.bus.version ?? "a bus") \(facts.remote == nil ? "in" : "at") \(facts.bus.directory ?? "?"), \(count) device\(count == 1 ? "" : "s")"
            )
        case .unusable(let why):
            let directory = facts.bus.directory ?? facts.directories.first?.path
            let holder = facts.bus.pid.flatMap { $0 > 0 ? $0 : nil }
            let remedy =
                facts.remote == nil
                ? Self.restart(facts.service, pid: holder) : "systemctl status camerabusd camerabus-gateway"
            return .faulty([
                Finding(
                    "bus-silent", directory, meaning: "There is a bus, and it does not answer: \(why)", remedy: remedy,
                    advice: "Its log says more: 'journalctl -u camerabusd', or where it was started.")
            ])
        case .absent:
            // What is left of a bus says already that there is none.
            let remains = facts.directories.compactMap { Self.remains($0, facts) }
            return .faulty(remains.isEmpty ? [Self.absence(facts)] : remains)
        }
    }

    private static func absence(_ facts: Facts) -> Finding {
        let isForbidden = facts.directories.contains { $0.socket == .forbidden }
        let places = facts.directories.map(\.path).joined(separator: ", ")
        // Else no membership opens the door.
        let isOfGroup = facts.directories.contains {
            $0.socket == .forbidden && facts.groups["camerabus"]?.gid == $0.gid && facts.user.uid != 0
        }
        guard !isForbidden else {
            return Finding(
                "bus-not-reachable", places, meaning: "There may be a bus, and you may not connect to it.",
                remedy: isOfGroup
                    ? "sudo usermod -aG camerabus \(facts.user.account)" : "ls -ld \(places)",
                advice: (isOfGroup ? "Then log in again; the" : "The")
                    + " checks of the runtime directory and of groups say more.")
        }
        if facts.service.unit != nil, facts.service.hasSystemd {
            return Finding(
                "no-bus", meaning: "No bus runs here (looked at \(places)).",
                remedy: "sudo systemctl enable --now camerabusd")
        }
        return Finding("no-bus", meaning: "No bus runs here (looked at \(places)).", remedy: "camerabusd")
    }

    /// What a killed bus has left behind, or one that hangs.
    private static func remains(_ directory: DirectoryFact, _ facts: Facts) -> Finding? {
        guard directory.socket == .dead else { return nil }
        if let pid = directory.lockHolder {
            return Finding(
                "bus-hung", directory.path,
                meaning: "A bus (pid \(pid)) has this directory, and nobody accepts connections at its socket.",
                remedy: restart(facts.service, pid: pid))
        }
        return Finding(
            "bus-left-over", directory.path,
            meaning: "A bus has been killed here: its sockets are left over, and its workers end within 30 s.",
            remedy: facts.service.unit != nil && facts.service.hasSystemd && directory.isSystem
                ? "sudo systemctl restart camerabusd" : "camerabusd --runtime-dir \(directory.path.shellWord)",
            advice: "A new bus takes the directory over; nothing has to be removed.")
    }

    private static func restart(_ service: ServiceFacts, pid: Int32?) -> String {
        if service.unit != nil, service.hasSystemd { return "sudo systemctl restart camerabusd" }
        return pid.map { "kill \($0)" } ?? "pidof camerabusd"
    }
}
