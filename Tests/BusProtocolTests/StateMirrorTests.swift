import BusProtocol
import JSON
import Testing

@Suite struct StateMirrorTests {
    /// A bus that loses messages on the way: after each heartbeat and the snapshot it may call for, the copy is
    /// complete.
    @Test(arguments: 0..<20)
    func everyLossIsDetected(_ seed: UInt64) throws {
        var random = SeededGenerator(state: seed)
        var bus = Bus()
        var mirror = StateMirror(subscriptions: seed % 2 == 0 ? [""] : ["state/lock/", "state/device/a/"])
        for _ in 0..<200 {
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                let message = bus.change(using: &random)
                let isSubscribed = mirror.subscriptions.contains { message.topic.hasPrefix($0) }
                if isSubscribed, Int.random(in: 0..<10, using: &random) > 0 {
                    _ = mirror.receive(topic: message.topic, message: message.json)
                }
            }
            if Int.random(in: 0..<40, using: &random) == 0 { bus.restart() }
            _ = mirror.receive(topic: "heartbeat/", message: bus.heartbeat)
            if mirror.needsSnapshot {
                let isAdopted = mirror.adopt(snapshot: bus.snapshot)
                #expect(isAdopted)
            }
            let wanted = bus.values.filter { topic, _ in mirror.subscriptions.contains { topic.hasPrefix($0) } }
            #expect(mirror.values == wanted)
            #expect(mirror.epoch == bus.epoch)
        }
    }

    @Test func whatIsKeptIsBounded() {
        var mirror = StateMirror(subscriptions: [""])
        for sequence in 1...(StateMirror.maxKept + 1) {
            let message: JSONValue = [
                "epoch": "e", "sequence": JSONValue(sequence), "previous": JSONValue(sequence - 1), "value": 1,
            ]
            let action = mirror.receive(topic: "state/bus/", message: message)
            #expect(action == .kept)
        }
        let outcomes = [1, 2000].map { sequence in
            mirror.adopt(snapshot: ["epoch": "e", "sequence": sequence, "state": ["state/bus/": 1]])
        }
        #expect(outcomes == [false, true])
        #expect(mirror.values == ["state/bus/": 1])
    }

    @Test func aSnapshotThatIsNoneIsNotTaken() {
        var mirror = StateMirror(subscriptions: [""])
        let isAdopted = mirror.adopt(snapshot: ["epoch": "e", "state": [:]])
        #expect(!isAdopted)
        #expect(mirror.needsSnapshot)
    }

    /// Ids come and go; neither many events nor many ended topics make it ask for snapshots.
    @Test func manyTopicsAreNoLoss() {
        var mirror = StateMirror(subscriptions: [""])
        _ = mirror.adopt(snapshot: ["epoch": "e", "sequence": 0, "state": [:]])
        var actions: Set<StateMirror.Action> = []
        for id in 0..<5000 {
            let names: JSONValue = ["epoch": "e", "previous": 0, "event": "ended", "sequence": JSONValue(3 * id + 3)]
            for (offset, value) in [JSONValue.integer(1), .null].enumerated() {
                let message: JSONValue = [
                    "epoch": "e", "sequence": JSONValue(3 * id + 1 + offset),
                    "previous": JSONValue((3 * id + 1) * offset),
                    "value": value,
                ]
                actions.insert(mirror.receive(topic: "state/lock/\(id)/", message: message))
            }
            actions.insert(mirror.receive(topic: "event/lock/\(id)/", message: names))
        }
        #expect(actions == [.applied, .event(missed: false)])
        #expect(mirror.values.isEmpty)
    }
}

/// The publishing side, as the specification has it.
private struct Bus {
    var epoch = "e1"
    var values: [String: JSONValue] = [:]
    private var sequence: Int64 = 0
    private var last: [String: Int64] = [:]
    private var newest: [String: Int64] = [:]
    private var starts = 1

    mutating func change(using random: inout SeededGenerator) -> (topic: String, json: JSONValue) {
        let topics = ["state/device/a/", "state/device/b/", "state/lock/x/", "state/lock/y/", "state/bus/"]
        let topic = topics[Int.random(in: 0..<topics.count, using: &random)]
        let isGone = values[topic] != nil && Int.random(in: 0..<4, using: &random) == 0
        sequence += 1
        let previous = last[topic] ?? 0
        values[topic] = isGone ? nil : .integer(sequence)
        last[topic] = isGone ? nil : sequence
        newest[topic] = sequence
        newest["state/"] = sequence
        newest[
            topic.hasPrefix("state/bus")
                ? "state/bus/" : topic.hasPrefix("state/lock") ? "state/lock/" : "state/device/"] =
            sequence
        return (
            topic,
            [
                "epoch": .string(epoch), "sequence": .integer(sequence), "previous": .integer(previous),
                "value": values[topic] ?? .null,
            ]
        )
    }

    mutating func restart() {
        starts += 1
        epoch = "e\(starts)"
        sequence = 0
        values = [:]
        last = [:]
        newest = [:]
    }

    // The kinds, and each topic, those that ended included.
    var heartbeat: JSONValue {
        ["epoch": .string(epoch), "latest": .object(newest.mapValues(JSONValue.integer)), "monotonic": 1]
    }

    var snapshot: JSONValue {
        ["epoch": .string(epoch), "sequence": .integer(sequence), "state": .object(values)]
    }
}
