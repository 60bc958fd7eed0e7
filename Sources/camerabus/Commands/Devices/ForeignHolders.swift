import JSON
import LinuxIO

/// Processes outside the bus that have a device open, as far as this process can see. Root sees more than the bus.
enum ForeignHolders {
    /// The answer of `device.who` for nodes that are not on a bus.
    static func usages(nodes: [String]) -> [JSONValue] {
        let all = ProcessTable.holders(of: nodes)
        return nodes.map { node in
            let holders = all[node]
            return [
                "device": .null, "node": .string(node), "lock": .null, "waiters": [], "subscribers": [],
                "foreign": .array((holders?.processes ?? []).map(json)),
                "complete": .bool(holders?.isComplete ?? false),
            ]
        }
    }

    /// Completes an answer of `device.who` with processes that the bus could not see.
    ///
    /// - Parameter worker: the pid of the bus's own process for the device.
    static func completed(_ usage: JSONValue, worker: Int64?) -> JSONValue {
        guard usage["complete"] != true, let node = usage["node"]?.string, DeviceNode.exists(node) else { return usage }
        return merged(usage, ProcessTable.holders(of: node), worker: worker)
    }

    static func merged(_ usage: JSONValue, _ holders: ProcessTable.Holders, worker: Int64?) -> JSONValue {
        guard var members = usage.object else { return usage }
        var foreign = members["foreign"]?.array ?? []
        let known = Set(foreign.compactMap { $0["pid"]?.integer } + [worker].compactMap(\.self))
        foreign += holders.processes.filter { !known.contains(Int64($0.pid)) }.map(json)
        members["foreign"] = .array(foreign)
        members["complete"] = .bool(usage["complete"] == true || holders.isComplete)
        return .object(members)
    }

    private static func json(_ holder: DeviceHolder) -> JSONValue {
        ["uid": JSONValue(holder.uid), "pid": JSONValue(holder.pid), "name": .string(holder.name)]
    }
}
