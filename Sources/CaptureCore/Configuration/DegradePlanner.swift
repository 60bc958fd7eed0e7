extension BandwidthBudget {
    /// What would run; nil: all do as they are.
    ///
    /// All cameras of a bus that is too full give up the same before one gives up the next: first uncompressed
    /// pictures, then rate, then size; of them always the one that takes most. Fixed ones are left as they are.
    public var plan: DegradePlan? {
        guard !canRun else { return nil }
        var loads: [BandwidthLoad] = []
        var explanation: [String] = []
        var changes: [DegradePlan.Change] = []
        for bus in buses {
            let after = bus.degraded()
            loads += after.loads
            guard bus.hardwareCost > 1 else { continue }
            let changed = zip(bus.loads, after.loads).filter { $0.setting != $1.setting }.map { old, new in
                DegradePlan.Change(device: old.device, from: old.setting, to: new.setting)
            }
            changes += changed
            explanation += BandwidthSentences(before: bus, after: after, changes: changed).sentences
        }
        let budget = BandwidthBudget(loads)
        return DegradePlan(
            changes: changes.sorted { $0.device < $1.device }, budget: budget, runs: budget.canRun,
            explanation: explanation)
    }
}

extension BandwidthBudget.Bus {
    /// The bus with as much given up as is needed, or as can be.
    fileprivate func degraded() -> Self {
        var bus = self
        for step in DegradeLadder.Step.allCases {
            var exhausted: Set<Int> = []
            while bus.hardwareCost > 1 {
                let open = bus.loads.indices.filter { !exhausted.contains($0) && !bus.loads[$0].isFixed }
                guard let index = open.max(by: { bus.loads[$0].bitRate < bus.loads[$1].bitRate }) else { break }
                let load = bus.loads[index]
                guard let next = DegradeLadder.next(step, below: load.setting, in: load.formats) else {
                    exhausted.insert(index)
                    continue
                }
                bus.loads[index].setting = next
                bus.loads[index].measuredBitRate = nil
            }
        }
        return bus
    }
}
