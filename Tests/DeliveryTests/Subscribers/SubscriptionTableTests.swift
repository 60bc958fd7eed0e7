import BusProtocol
import JSON
import Testing

@testable import Delivery

@Suite("The table of subscriptions")
struct SubscriptionTableTests {
    private var table = SubscriptionTable(device: "cam1", maximumRenditions: 3, maximumTopics: 6)

    @Test("equal wishes share one rendition, each with its own topic")
    mutating func equalWishes() {
        #expect(subscribe("frame/cam1/jpeg:640x360@10/") == .wanted)
        #expect(subscribe("frame/cam1/jpeg:640x360@10.0/") == .wanted)
        #expect(subscribe("frame/cam1/jpeg:640x360@10.0/") == .none)
        #expect(table.wanted.count == 1)
        #expect(table.wanted[0].topics.map(\.text) == ["jpeg:640x360@10", "jpeg:640x360@10.0"])
        #expect(unsubscribe("frame/cam1/jpeg:640x360@10/") == .wanted)
        #expect(table.wanted[0].topics.map(\.text) == ["jpeg:640x360@10.0"])
        #expect(unsubscribe("frame/cam1/jpeg:640x360@10.0/") == .wanted)
        #expect(table.wanted.isEmpty)
    }

    @Test(
        "prefixes, other devices and other topics start nothing",
        arguments: [
            "", "f", "frame/", "frame/cam1/", "frame/cam1/native", "frame/cam10/native/", "frame/cam/native/",
            "heartbeat/", "welcome/", "frame/cam1/native/x/", "frame/cam1//", "state/bus/",
        ])
    mutating func nothing(_ topic: String) {
        #expect(subscribe(topic) == .none)
        #expect(table.wanted.isEmpty && table.refused.isEmpty)
        #expect(unsubscribe(topic) == .none)
    }

    @Test("the barrier is answered on its topic and not remembered")
    mutating func acknowledge() {
        #expect(subscribe("ack/abc-1/") == .acknowledge(Array("ack/abc-1/".utf8)))
        #expect(table.count == 0)
    }

    @Test("what can't be read is refused on its own topic, until it is unsubscribed")
    mutating func unreadable() {
        guard case .refused(let topic, let error) = subscribe("frame/cam1/png/") else {
            Issue.record("not refused")
            return
        }
        #expect(topic.text == "png")
        #expect(error.reason == .invalidParams)
        #expect(table.refused.count == 1 && table.wanted.isEmpty)
        #expect(unsubscribe("frame/cam1/png/") == .forgotten)
        #expect(table.refused.isEmpty)
    }

    @Test("references and pixels of one picture are one rendition, and only the former need a ring")
    mutating func references() {
        #expect(subscribe("frame/cam1/native/") == .wanted)
        #expect(!table.wanted[0].needsRing)
        #expect(subscribe("buffer/cam1/native/") == .wanted)
        #expect(table.wanted.count == 1 && table.wanted[0].needsRing)
        #expect(unsubscribe("buffer/cam1/native/") == .wanted)
        #expect(table.wanted.count == 1 && !table.wanted[0].needsRing)
    }

    @Test("sound is refused")
    mutating func sound() {
        guard case .refused(_, let error) = subscribe("audio/cam1/s16/") else {
            Issue.record("not refused")
            return
        }
        #expect(error.reason == .formatUnsupported)
    }

    @Test("one rendition too many is refused, and made as soon as there is a place, with all its spellings")
    mutating func limit() {
        for rendition in ["native", "jpeg", "bgr"] { #expect(subscribe("frame/cam1/\(rendition)/") == .wanted) }
        guard case .refused(_, let error) = subscribe("frame/cam1/gray@5/") else {
            Issue.record("not refused")
            return
        }
        #expect(error.reason == .limitExceeded)
        #expect(error.data["maximum"] == 3)
        _ = subscribe("frame/cam1/rgb/")
        _ = subscribe("frame/cam1/gray@5.0/")
        #expect(unsubscribe("frame/cam1/jpeg/") == .wanted)
        #expect(table.wanted.map(\.rendition.description) == ["native", "bgr", "gray@5"])
        #expect(table.wanted[2].topics.map(\.text) == ["gray@5", "gray@5.0"])
        #expect(table.refused.map(\.topic.text) == ["rgb"])
    }

    @Test("no more topics are remembered than the limit, however many come")
    mutating func manyTopics() {
        for number in 0..<100 { _ = subscribe("frame/cam1/bad\(number)/") }
        #expect(table.count == 6)
        #expect(table.ignored == 94)
        #expect(unsubscribe("frame/cam1/bad0/") == .forgotten)
        #expect(subscribe("frame/cam1/native/") == .wanted)
    }

    @Test("an overlong topic is no topic")
    mutating func overlong() {
        #expect(subscribe("frame/cam1/" + String(repeating: "x", count: 300) + "/") == .none)
        #expect(table.count == 0)
    }

    private mutating func subscribe(_ topic: String) -> SubscriptionChange { table.subscribe(Array(topic.utf8)) }
    private mutating func unsubscribe(_ topic: String) -> SubscriptionChange {
        table.unsubscribe(Array(topic.utf8))
    }
}
