import JSON
import Testing

@testable import Gateway

/// What comes again to those who subscribe later.
@Suite final class StateCacheTests {
    private var cache = StateCache()

    private func take(_ topic: String, _ sequence: Int, _ value: JSONValue, epoch: String = "e") {
        let message: JSONValue = [
            "epoch": .string(epoch), "sequence": JSONValue(sequence), "previous": 0, "value": value,
        ]
        cache.take(topic, message.serialized)
    }

    private func current(_ prefix: String) -> [String] { cache.current(matching: prefix).map(\.topic) }

    @Test func `the present state comes in the order in which it came about`() {
        take("state/device/cam1/", 2, ["id": "cam1"])
        take("state/device/cam10/", 1, ["id": "cam10"])
        take("state/lock/l/", 3, ["id": "l"])
        #expect(current("state/") == ["state/device/cam10/", "state/device/cam1/", "state/lock/l/"])
        #expect(current("state/device/cam1/") == ["state/device/cam1/"])
        #expect(current("state/device/cam1") == ["state/device/cam10/", "state/device/cam1/"])
        #expect(current("event/") == [])
    }

    @Test func `what is gone is forgotten, and what is older changes nothing`() {
        take("state/lock/l/", 3, ["fence": 2])
        take("state/lock/l/", 2, ["fence": 1])
        let body = cache.current(matching: "state/lock/l/").first?.body ?? []
        #expect((try? JSONValue(parsing: body))?["value"]?["fence"] == 2)
        take("state/lock/l/", 4, .null)
        #expect(current("") == [])
    }

    @Test func `a heartbeat shows a message that was lost`() throws {
        take("state/bus/", 3, [:])
        func misses(_ latest: Int, epoch: String = "e") -> Bool {
            cache.misses("state/bus/", by: ["epoch": .string(epoch), "latest": ["state/bus/": JSONValue(latest)]])
        }
        #expect(!misses(3) && misses(4) && !misses(2) && !misses(4, epoch: "f"))
        #expect(!cache.misses("state/bus/", by: ["epoch": "e", "latest": ["state/": 9]]))
        #expect(cache.misses("state/rig/r/", by: ["epoch": "e", "latest": ["state/rig/r/": 1]]))
    }

    @Test func `of a bus that has ended nothing is kept`() {
        take("state/lock/l/", 3, [:])
        cache.take("heartbeat/", Array(#"{"epoch":"f","latest":{},"monotonic":1}"#.utf8))
        #expect(current("") == [])
        take("state/lock/m/", 1, [:], epoch: "f")
        cache.take("state/lock/m/", Array("no JSON".utf8))
        cache.take("event/lock/m/", Array(#"{"epoch":"f","sequence":2,"event":"ended"}"#.utf8))
        #expect(current("") == ["state/lock/m/"])
    }
}
