import Glibc

extension Machine {
    /// - Parameter busPID: the bus's process; nil: what a bus would get that is started here.
    func limitFacts(busPID: Int32?) -> LimitFacts {
        var facts = LimitFacts()
        let name = busPID.map(String.init) ?? "self"
        facts.areOfBus = busPID != nil
        for line in files.lines("/proc/\(name)/limits") {
            // Soft, then hard; the bus raises its own to the hard one.
            if line.hasPrefix("Max open files") { facts.descriptors = hard(line) }
            if line.hasPrefix("Max address space") { facts.addressSpace = soft(line) }
        }
        for line in files.lines("/proc/meminfo") where line.hasPrefix("MemAvailable:") {
            let kilobytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { UInt64($0) }
            facts.memoryAvailable = kilobytes.map { $0 < UInt64.max >> 10 ? $0 << 10 : .max }
        }
        if let (group, limit) = memoryLimit("/proc/\(name)/cgroup") {
            (facts.memoryLimitGroup, facts.memoryLimit) = (group, limit)
        }
        return facts
    }

    // Name (of several words), soft, hard, unit.
    private func soft(_ line: Substring) -> UInt64? { values(line).first.flatMap { UInt64($0) } }
    private func hard(_ line: Substring) -> UInt64? { values(line).dropFirst().first.flatMap { UInt64($0) } }

    private func values(_ line: Substring) -> [Substring] {
        line.split(whereSeparator: \.isWhitespace).filter { $0 == "unlimited" || UInt64($0) != nil }
    }

    /// The lowest limit of the process's control group and those above it (cgroup v2).
    private func memoryLimit(_ path: String) -> (group: String, limit: UInt64)? {
        guard let own = files.lines(path).first(where: { $0.hasPrefix("0::/") })?.dropFirst(3) else { return nil }
        var group = String(own)
        var lowest: (group: String, limit: UInt64)?
        while !group.isEmpty, group != "/" {
            let limit = files.text("/sys/fs/cgroup\(group)/memory.max").flatMap { UInt64($0) }
            if let limit, limit < lowest?.limit ?? .max { lowest = (group, limit) }
            group = group.lastIndex(of: "/").map { String(group[..<$0]) } ?? ""
        }
        return lowest
    }
}
