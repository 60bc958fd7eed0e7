import JSON

/// Whether the machine can bear what is asked of it, and how the bus would learn that it can't.
struct PressureCheck: Check {
    let id = "system-pressure"

    private static let names = [("cpu", "processors"), ("memory", "memory"), ("io", "disks")]

    func examine(_ facts: Facts) -> Outcome {
        let notes = notes(facts)
        guard facts.bus.isAnswering else { return .healthy("no bus watches it", notes: notes) }
        guard let state = facts.bus.pressure, let level = state["level"]?.string else {
            return .healthy("the bus does not watch it", notes: notes)
        }
        let factors = (state["factors"]?.array ?? []).compactMap(\.string)
        guard ["serious", "critical", "shutdown"].contains(level) else { return .healthy(level, notes: notes) }
        return .faulty(
            [
                Finding(
                    "pressure-\(level)", factors.joined(separator: " "),
                    meaning: level == "shutdown"
                        ? "The machine is under so much pressure that the bus has stopped its cameras."
                        : "The machine is under pressure: frames may be lost"
                            + (level == "critical" ? ", and cameras are stopped when there is more." : "."),
                    remedy: Self.remedy(factors),
                    advice:
                        "Smaller formats, lower rates and fewer renditions help; 'camerabus top' shows what each costs."
                )
            ], notes: notes)
    }

    private static func remedy(_ factors: [String]) -> String {
        if factors.contains("memory") { return "ps -eo rss,pid,comm --sort=-rss | head" }
        if factors.contains("systemTemperature") { return "grep . /sys/class/thermal/thermal_zone*/temp" }
        if factors.contains("io") { return "grep . /proc/pressure/io" }
        return "ps -eo pcpu,pid,comm --sort=-pcpu | head"
    }

    private func notes(_ facts: Facts) -> [String] {
        var notes: [String] = []
        let sources = facts.bus.pressureSources
        let known = facts.pressure
        let untold = Self.names.filter { name, _ in
            sources[name] == "none" || (sources.isEmpty && !known.stalls.contains(name))
        }
        if !untold.isEmpty {
            notes.append(
                "The kernel does not tell when \(Self.list(untold.map(\.1))) are short (/proc/pressure): it needs CONFIG_PSI, and psi=1 "
                    + "where that is off by default.")
        }
        let late = Self.names.filter { name, _ in sources[name] == "reading" }
        if !late.isEmpty {
            notes.append(
                "The bus may have no trigger for \(Self.list(late.map(\.1))), and only looks every ten seconds while a camera streams: as "
                    + "root, or from Linux 6.4 on, it may.")
        }
        if sources["systemTemperature"] == "none" || (sources.isEmpty && known.zones == 0) {
            notes.append("The machine tells no temperature with a limit (/sys/class/thermal).")
        }
        return notes
    }

    private static func list(_ words: [String]) -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " and " + last
    }
}
