import JSON

/// Whether the machine is under pressure, and how the bus would notice it.
struct PressureCheck: Check {
    let id = "system-pressure"

    private static let names = [("cpu", "processors"), ("memory", "memory"), ("io", "disks")]

    func examine(_ facts: Facts) -> Outcome {
        let notes = notes(facts)
        guard facts.bus.isAnswering else { return .healthy("no bus is running to watch it", notes: notes) }
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
                        ? "The machine is under extreme pressure, and the bus has stopped its cameras."
                        : "The machine is under pressure. Frames may be lost"
                            + (level == "critical" ? ", and more pressure stops cameras." : "."),
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
                "The kernel does not report when \(Self.list(untold.map(\.1))) are short (/proc/pressure). It needs "
                    + "CONFIG_PSI, and psi=1 "
                    + "if that is off by default.")
        }
        let late = Self.names.filter { name, _ in sources[name] == "reading" }
        if !late.isEmpty {
            notes.append(
                "The bus may set no trigger for \(Self.list(late.map(\.1))), and checks only every ten seconds while a "
                    + "camera streams. As "
                    + "root, or from Linux 6.4 on, it may.")
        }
        if sources["systemTemperature"] == "none" || (sources.isEmpty && known.zones == 0) {
            notes.append("The machine reports no temperature with a limit (/sys/class/thermal).")
        }
        return notes
    }

    private static func list(_ words: [String]) -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " and " + last
    }
}
