import BusProtocol
import JSON
import Testing

@testable import Delivery

@Suite("The table of subscriptions")
struct SubscriptionTableTests {
    private var table = SubscriptionTable(device: "cam1", maximumRenditions: 3, maximumTopics: 64)

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
            "heartbeat/", "welcome/", "frame/cam1/native/x/", "frame/cam1//", "state/bus/", "level/cam10/",
        ])
    mutating func nothing(_ topic: String) {
        #expect(subscribe(topic) == .none)
        #expect(table.wanted.isEmpty && table.refused.isEmpty)
        #expect(unsubscribe(topic) == .none)
    }

    @Test("what can't be read is refused on its own topic, until it is unsubscribed")
    mutating func unreadable() {
        #expect(subscribe("frame/cam1/png/") == .none)
        let refusals = table.takeRefusals()
        #expect(refusals.map(\.topic.text) == ["png"] && refusals.first?.error.reason == .invalidParams)
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

    @Test("sound and its level are refused", arguments: ["audio/cam1/s16/", "level/cam1/"])
    mutating func sound(_ topic: String) {
        #expect(subscribe(topic) == .none)
        #expect(table.refusal(of: Array(topic.utf8))?.error.message.contains("frame/cam1/native/") == true)
        #expect(reasons() == [.formatUnsupported])
        #expect(unsubscribe(topic) == .forgotten)
        #expect(table.refused.isEmpty)
    }

    @Test("one rendition too many is refused, and made as soon as there is a place, with all its spellings")
    mutating func limit() {
        takeAll()
        #expect(subscribe("frame/cam1/gray@5/", by: other) == .none)
        let error = table.takeRefusals().first?.error
        #expect(error?.reason == .limitExceeded)
        #expect(error?.data["maximum"] == 3)
        _ = subscribe("frame/cam1/yuyv/", by: other)
        _ = subscribe("frame/cam1/gray@5.0/", by: other)
        #expect(unsubscribe("frame/cam1/bgr/", by: root) == .wanted)
        #expect(table.wanted.map(\.rendition.description) == ["rgb", "nv12", "gray@5"])
        #expect(table.wanted[2].topics.map(\.text) == ["gray@5", "gray@5.0"])
        #expect(table.refused.map(\.topic.text) == ["yuyv"])
    }

    @Test("native and one jpeg are made for everybody, whatever others have")
    mutating func always() {
        takeAll()
        for topic in ["frame/cam1/native/", "frame/cam1/jpeg/", "frame/cam1/jpeg;q=80/"] {
            #expect(subscribe(topic, by: other) == .wanted)
        }
        #expect(table.wanted.map(\.rendition.description) == ["rgb", "bgr", "nv12", "native", "jpeg"])
        #expect(refusals() == [])
        #expect(subscribe("frame/cam1/native@5/", by: other) == .none)
        #expect(refusals() == ["native@5"])
    }

    @Test("a rendition is in the share of one client, and passes on to the next who has room")
    mutating func heirs() {
        for rendition in ["rgb", "bgr"] { #expect(subscribe("frame/cam1/\(rendition)/") == .wanted) }
        #expect(subscribe("frame/cam1/gray/", by: other) == .wanted)
        // It is made already, and costs a client without room nothing.
        #expect(subscribe("frame/cam1/gray/") == .wanted)
        #expect(refusals() == [])
        #expect(unsubscribe("frame/cam1/gray/", by: other) == .wanted)
        #expect(refusals() == ["gray"])
        #expect(table.wanted.map(\.rendition.description) == ["rgb", "bgr"])
        #expect(subscribe("frame/cam1/gray/", by: root) == .wanted)
        #expect(unsubscribe("frame/cam1/rgb/") == .wanted)
        // Now it has room.
        #expect(unsubscribe("frame/cam1/gray/", by: root) == .wanted)
        #expect(table.wanted.map(\.rendition.description) == ["bgr", "gray"] && table.refused.isEmpty)
    }

    @Test("a topic is in the share of a user who wants it")
    mutating func topicHeirs() {
        let topics = (0..<16).map { "frame/cam1/png\($0)/" }
        for topic in topics {
            _ = subscribe(topic)
            _ = subscribe(topic, by: other)
        }
        #expect(refusals().count == 16)
        _ = subscribe("frame/cam1/png16/")
        #expect(table.takeRefusals().first?.error.data["limit"] == "topics")
        for topic in topics { #expect(unsubscribe(topic) == .none) }
        for number in 20..<36 { _ = subscribe("frame/cam1/png\(number)/") }
        #expect(table.takeRefusals().allSatisfy { $0.error.reason != .limitExceeded })
        _ = subscribe("frame/cam1/png36/", by: other)
        #expect(table.takeRefusals().first?.error.data["limit"] == "topics")
    }

    @Test("a reader of rings is a client like a subscriber")
    mutating func rings() {
        let reader = RenditionClient(.reader(5), uid: 1000)
        #expect(table.wantRing(Rendition(.rgb), by: reader) == .wanted)
        #expect(subscribe("frame/cam1/bgr/") == .wanted)
        #expect(table.wantRing(Rendition(.gray), by: RenditionClient(.reader(6), uid: 1000)) == .none)
        #expect(table.refusedRings.map(\.rendition) == [Rendition(.gray)])
        #expect(table.unwantRing(Rendition(.rgb), by: reader) == .wanted)
        #expect(table.wanted.map(\.rendition.description) == ["bgr", "gray"] && table.wanted[1].hasRing)
    }

    @Test("a movie keeps the rendition that it shares with somebody who leaves, also beyond its owner's share")
    mutating func recorded() {
        let first = RenditionClient(.recorder(5), uid: 2000)
        let second = RenditionClient(.recorder(6), uid: 1000)
        #expect(table.wantRing(Rendition(.rgb), by: first) == .wanted)
        for rendition in ["bgr", "gray"] { _ = subscribe("frame/cam1/\(rendition)/") }
        #expect(table.wantRing(Rendition(.rgb), by: second) == .wanted)
        let before = table.wanted.map(\.rendition.description)
        #expect(table.unwantRing(Rendition(.rgb), by: first) == .wanted)
        #expect(table.wanted.contains { $0.rendition == Rendition(.rgb) && $0.isRecorded })
        #expect(table.refusedRings.isEmpty && Set(before).isSuperset(of: table.wanted.map(\.rendition.description)))
    }

    @Test("what the device can't give takes no place, and is made when it can")
    mutating func impossible() {
        let limit = Size(width: 640)
        table.obstacle = { rendition in
            (rendition.width ?? 0) > limit.width ? BusError(.formatUnsupported, "too large") : nil
        }
        for width in [1000, 2000, 3000, 4000] { #expect(subscribe("frame/cam1/bgr:\(width)x0/") == .none) }
        #expect(table.wanted.isEmpty && table.refused.count == 4)
        #expect(refusals().count == 4)
        #expect(table.demanded.count == 3)
        for rendition in ["rgb", "bgr"] { #expect(subscribe("frame/cam1/\(rendition)/") == .wanted) }
        #expect(recheck() == false)
        limit.width = 1500
        #expect(recheck() == false)
        #expect(unsubscribe("frame/cam1/rgb/") == .wanted)
        #expect(table.wanted.map(\.rendition.description) == ["bgr", "bgr:1000x0"])
        limit.width = 640
        #expect(recheck() == true)
        #expect(table.wanted.map(\.rendition.description) == ["bgr"])
        #expect(reasons() == [.formatUnsupported])
    }

    private final class Size {
        var width: Int
        init(width: Int) { self.width = width }
    }

    @Test("no more topics are remembered than the limit, however many come; native has room")
    mutating func manyTopics() {
        for number in 0..<100 { _ = subscribe("frame/cam1/bad\(number)/") }
        for number in 0..<100 { _ = subscribe("frame/cam1/bad\(number)/", by: other) }
        #expect(table.count == 32)
        #expect(table.ignored == 152)
        let last = table.takeRefusals().last
        #expect(last?.error.data["limit"] == "topics")
        #expect(unsubscribe("frame/cam1/bad0/") == .none)
        #expect(unsubscribe("frame/cam1/bad0/", by: other) == .forgotten)
        #expect(subscribe("frame/cam1/native/") == .wanted)
    }

    @Test("an overlong topic is no topic")
    mutating func overlong() {
        #expect(subscribe("frame/cam1/" + String(repeating: "x", count: 300) + "/") == .none)
        #expect(table.count == 0)
    }

    private let own = RenditionClient(.subscriber(5), uid: 1000)
    private let other = RenditionClient(.subscriber(6), uid: 1001)
    private let root = RenditionClient(.subscriber(7), uid: 0)

    init() {
        // A connection may have two renditions, and so may a user who is no administrator.
        table.standing = { $0 == 0 ? .administrator : .user }
    }

    private mutating func recheck() -> Bool { table.recheck() }
    private mutating func refusals() -> [String] { table.takeRefusals().map(\.topic.text) }
    private mutating func reasons() -> [BusError.Reason] { table.takeRefusals().map(\.error.reason) }

    private mutating func takeAll() {
        for rendition in ["rgb", "bgr"] { #expect(subscribe("frame/cam1/\(rendition)/", by: root) == .wanted) }
        #expect(subscribe("frame/cam1/nv12/", by: RenditionClient(.subscriber(8), uid: 0)) == .wanted)
    }

    private mutating func subscribe(_ topic: String, by client: RenditionClient? = nil) -> SubscriptionChange {
        table.subscribe(Array(topic.utf8), by: client ?? own)
    }
    private mutating func unsubscribe(_ topic: String, by client: RenditionClient? = nil) -> SubscriptionChange {
        table.unsubscribe(Array(topic.utf8), by: client ?? own)
    }
}
