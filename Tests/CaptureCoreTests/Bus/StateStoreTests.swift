import JSON
import Testing

@testable import CaptureCore

@Suite final class StateStoreTests {
    private var store = StateStore(epoch: "e")

    private func set(_ path: String, _ value: JSONValue?) -> StateStore.Publication? { store.set(path, value) }

    @Test func messagesAreNumberedInOneOrderAndByTopic() throws {
        let first = try #require(set("state/device/a", 1))
        #expect(first.topic == "state/device/a/")
        #expect(first.message == ["epoch": "e", "sequence": 1, "previous": 0, "value": 1])
        #expect(set("state/device/b/", 1)?.message["sequence"] == 2)
        let event = store.event("event/device/a", name: "did", members: ["x": 5, "epoch": "forged", "event": "forged"])
        #expect(event.topic == "event/device/a/")
        #expect(event.message == ["epoch": "e", "sequence": 3, "previous": 0, "event": "did", "x": 5])
        #expect(store.event("event/device/a/", name: "did").message["previous"] == 3)
        #expect(set("state/device/a", 2)?.message["previous"] == 1)
        #expect(store.sequence == 5)
    }

    @Test func whatIsUnchangedIsNotPublished() {
        _ = set("state/bus", ["a": [1]])
        #expect(set("state/bus/", ["a": [1]]) == nil)
        #expect(set("state/lock/x", nil) == nil)
        #expect(set("state/lock/x", .null) == nil)
        #expect(store.sequence == 1)
    }

    @Test func whatIsGoneIsToldOnceAndForgotten() {
        _ = set("state/lock/x", 1)
        #expect(
            set("state/lock/x", nil)?.message == ["epoch": "e", "sequence": 2, "previous": 1, "value": .null])
        #expect(store.snapshot() == ["epoch": "e", "sequence": 2, "state": [:]])
        #expect(store.current(matching: "").isEmpty)
        #expect(set("state/lock/x", 1)?.message["previous"] == 0)
    }

    @Test func aSnapshotHoldsWhatBeginsWithThePrefix() {
        for path in ["state/device/cam1", "state/device/cam10", "state/bus"] { _ = set(path, true) }
        #expect(store.snapshot(prefix: "state/device/cam1/")["state"] == ["state/device/cam1/": true])
        #expect(store.snapshot(prefix: "state/device/cam1")["state"]?.object?.count == 2)
        #expect(store.snapshot()["state"]?.object?.count == 3)
        #expect(store.snapshot()["sequence"] == 3)
        #expect(store.snapshot(prefix: "state/x")["state"] == [:])
    }

    @Test func presentValuesComeAsTheyWerePublished() throws {
        _ = set("state/device/a", 1)
        let second = try #require(set("state/device/b", 1))
        let third = try #require(set("state/device/a", 2))
        _ = store.event("event/device/a", name: "did")
        #expect(store.current(matching: "state/") == [second, third])
        #expect(store.current(matching: "state/device/a/") == [third])
        #expect(store.current(matching: "event/").isEmpty)
        #expect(store.current(matching: "state/") { $0 == second.topic } == [second])
        #expect(store.sequence == 4)
    }

    @Test func prefixesMatchByBytes() {
        _ = set("state/x/\u{E9}", 1)
        #expect(store.current(matching: "state/x/e").isEmpty)
        #expect(store.current(matching: "state/x/e\u{301}").isEmpty)
        #expect(store.current(matching: "state/x/\u{E9}").count == 1)
    }

    @Test func latestTellsPrefixesAndTopics() {
        #expect(store.latest == [:])
        _ = set("state/device/a", 1)
        _ = set("state/device/b", 1)
        _ = set("state/bus", 1)
        _ = store.event("event/photo/1", name: "did")
        _ = set("state/device/b", nil)
        #expect(
            store.latest == [
                "state/": 5, "state/device/": 5, "state/device/a/": 1, "state/device/b/": 5, "state/bus/": 3,
                "event/": 4,
                "event/photo/": 4,
            ])
    }

    /// Else the end of a topic, when lost, would show in nothing once another topic has had a message.
    @Test func latestTellsTopicsThatWentLast() {
        var store = StateStore(epoch: "e")
        _ = store.set("state/lock/a", 1)
        let gone = store.set("state/lock/a", nil)
        _ = store.set("state/lock/b", 1)
        #expect(store.latest["state/lock/a/"] == gone?.message["sequence"])
        _ = store.set("state/lock/a", 2)
        #expect(store.latest["state/lock/a/"] == 4)
        for index in 0..<100 {
            _ = store.set("state/lock/\(index)", 1)
            _ = store.set("state/lock/\(index)", nil)
        }
        #expect(store.latest.object?.keys.count { $0.utf8.count(where: { $0 == UInt8(ascii: "/") }) == 3 } == 2 + 32)
    }

    @Test func memoryIsBounded() {
        for index in 0..<10_000 {
            _ = store.event("event/photo/\(index)", name: "did")
            _ = set("state/lock/\(index)", 1)
            if index >= 200 { _ = set("state/lock/\(index - 200)", nil) }
        }
        let latest = store.latest.object ?? [:]
        #expect(latest.count <= StateStore.toldTopics + StateStore.toldGone + StateStore.countedPrefixes)
        #expect(latest["state/lock/9999/"] != nil)
        // The newest event topics are remembered, the oldest are not.
        #expect(store.event("event/photo/9999", name: "did").message["previous"] != 0)
        #expect(store.event("event/photo/0", name: "did").message["previous"] == 0)
        for index in 0..<1000 { _ = set("a\(index)/b/c", 1) }
        #expect(
            (store.latest.object ?? [:]).count <= StateStore.toldTopics + StateStore.toldGone
                + StateStore.countedPrefixes)
    }
}
