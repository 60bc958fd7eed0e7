/// Whether a bus runs, and answers.
struct BusCheck: Check {
    let id = "bus"

    func examine(_ facts: Facts) -> Outcome {
        if facts.remote?.problem != nil { return .skipped("the bus is not reachable") }
        switch facts.bus.state {
        case .answered:
            let count = facts.bus.devices.count
            return .healthy(
                "\(facts.bus.version ?? "a bus") \(facts.remote == nil ? "in" : "at") \(facts.bus.directory ?? "?"), "
                    + "\(count) device\(count == 1 ? "" : "s")"
            )
        case .unusable(let why):
            let directory = facts.bus.directory ?? facts.directories.first?.path
            let holder = facts.bus.pid.flatMap { $0 > 0 ? $0 : nil }
            let remedy =
                facts.remote == nil
                ? Self.restart(facts.service, pid: holder) : "systemctl status camerabusd camerabus-gateway"
            return .faulty([
                Finding(
                    "bus-silent", directory, meaning: "The bus does not answer: \(why)", remedy: remedy,
                    advice: "See its log: 'journalctl -u camerabusd', or the terminal where it was started.")
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
                "bus-not-reachable", places,
                meaning: "A bus may run here, but you have no permission to connect to it.",
                remedy: isOfGroup
                    ? "sudo usermod -aG camerabus \(facts.user.account)" : "ls -ld \(places)",
                advice: (isOfGroup ? "Then log in again. See" : "See")
                    + " also the checks of the runtime directory and of groups.")
        }
        if facts.service.unit != nil, facts.service.hasSystemd {
            return Finding(
                "no-bus", meaning: "No bus runs here (searched: \(places)).",
                remedy: "sudo systemctl enable --now camerabusd")
        }
        return Finding("no-bus", meaning: "No bus runs here (searched: \(places)).", remedy: "camerabusd")
    }

    /// What a killed bus has left behind, or one that hangs.
    private static func remains(_ directory: DirectoryFact, _ facts: Facts) -> Finding? {
        guard directory.socket == .dead else { return nil }
        if let pid = directory.lockHolder {
            return Finding(
                "bus-hung", directory.path,
                meaning: "A bus (pid \(pid)) uses this directory, but accepts no connections at its socket.",
                remedy: restart(facts.service, pid: pid))
        }
        return Finding(
            "bus-left-over", directory.path,
            meaning: "A bus was killed here. Its sockets are left over; its workers end within 30 s.",
            remedy: facts.service.unit != nil && facts.service.hasSystemd && directory.isSystem
                ? "sudo systemctl restart camerabusd" : "camerabusd --runtime-dir \(directory.path.shellWord)",
            advice: "A new bus takes over the directory. You do not have to remove anything.")
    }

    private static func restart(_ service: ServiceFacts, pid: Int32?) -> String {
        if service.unit != nil, service.hasSystemd { return "sudo systemctl restart camerabusd" }
        return pid.map { "kill \($0)" } ?? "pidof camerabusd"
    }
}
