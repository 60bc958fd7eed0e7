public import JSON

/// What would run of cameras that can't run together as they are set, or are to be.
public struct DegradePlan: Hashable, Sendable {
    /// One camera that has to take less.
    public struct Change: Hashable, Sendable {
        public var device: String
        public var from: StreamSetting
        public var to: StreamSetting

        public init(device: String, from: StreamSetting, to: StreamSetting) {
            self.device = device
            self.from = from
            self.to = to
        }

        /// {device, from: {activeFormat, frameDuration}, to}
        public var json: JSONValue { ["device": .string(device), "from": from.json, "to": to.json] }
    }

    /// In the order of the devices' ids.
    public var changes: [Change]
    /// With the changes.
    public var budget: BandwidthBudget
    /// False: not even that runs; the changes are as far as it goes.
    public var runs: Bool
    /// What is wrong and what would help, in whole sentences for people.
    public var explanation: [String]

    /// {runs, hardwareCost, changes, explanation}
    public var json: JSONValue {
        .object([
            "runs": .bool(runs), "hardwareCost": .number(BandwidthBudget.rounded(budget.hardwareCost)),
            "changes": .array(changes.map(\.json)), "explanation": .array(explanation.map(JSONValue.string)),
        ])
    }
}
