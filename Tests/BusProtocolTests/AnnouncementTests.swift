import BusProtocol
import JSON
import Testing

/// What the bus makes is what `schema/topics.json` promises.
@Suite struct AnnouncementTests {
    private func check(_ bytes: [UInt8], on topic: Topic, isMedia: Bool = false) throws -> JSONValue {
        let json = try bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
        let entry = try #require(TopicTable.entry(topic, isMedia: isMedia))
        let error = try #require(entry.header).validate(json)
        #expect(error == nil, "\(error?.message ?? "")")
        return json
    }

    @Test func state() throws {
        let bus: JSONValue = ["version": "0.1.0", "epoch": "e", "started": 1, "devices": []]
        let json = try check(
            Announcement.state(epoch: "e", sequence: 2, previous: 0, value: bus), on: .state(.bus))
        #expect(json == ["epoch": "e", "sequence": 2, "previous": 0, "value": bus])
        _ = try check(
            Announcement.state(epoch: "e", sequence: 3, previous: 2, value: .null), on: .state(.lock("7f3a")))
    }

    @Test func eventsOwnMembersCannotBeOverwritten() throws {
        let bytes = Announcement.event(
            epoch: "e", sequence: 2, previous: 1, event: "ended", members: ["cause": "unlocked", "sequence": 99])
        let json = try check(bytes, on: .event(.lock("7f3a")))
        #expect(json == ["epoch": "e", "sequence": 2, "previous": 1, "event": "ended", "cause": "unlocked"])
    }

    @Test func heartbeats() throws {
        _ = try check(Announcement.heartbeat(epoch: "e", latest: ["state/": 7], monotonic: 5), on: .heartbeat)
        _ = try check(
            Announcement.heartbeat(device: "cam0", stream: nil, streaming: false, lastFrame: nil, monotonic: 5),
            on: .heartbeat, isMedia: true)
        _ = try check(
            Announcement.heartbeat(device: "cam0", stream: "s", streaming: true, lastFrame: 4, monotonic: 5),
            on: .heartbeat, isMedia: true)
    }

    @Test func acknowledgement() throws {
        #expect(try check(Announcement.ack(refused: nil), on: .ack(nonce: "n")) == [:])
    }

    @Test func failureIsReadBackAsTheSameError() throws {
        let error = BusError.invalidParams("rendition", "the quality is 1 to 100")
        let bytes = Announcement.failure(device: "cam0", rendition: "jpeg;q=0", error: error)
        let json = try check(bytes, on: .frame("cam0", "jpeg;q=0"), isMedia: true)
        #expect(throws: error) { try FrameHeader(json) }
    }
}
