import BusProtocol
import BusServer
import CameraBusTesting
import CaptureCore
import JSON
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import Gateway

/// What is made for those who ask.
@Suite struct MediaDistributorTests {
    @Test func `a key has so many topics, over all its connections, and others have theirs`() throws {
        let scratch = try TemporaryDirectory()
        let place = BusEndpoints(try Context(), try Loop(), try RuntimeDirectory(scratch.path))
        let media = MediaDistributor(
            place, try .permitting(place), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        func open(_ owner: String) -> MediaDistributor.Peer {
            media.open(
                MediaDistributor.Way(
                    owner: owner, role: .view, allowsRaw: false, hasRoom: { true }, send: { _, _ in true }))
        }
        func ask(_ device: Int, _ width: Int, _ peer: MediaDistributor.Peer) {
            let topic = Topic.frame("cam\(device)", "jpeg:\(width)00x0").bytes
            media.take(MediaAsk(.next, topic: topic), of: peer)
        }
        let peers = [open("desk"), open("desk")]
        for device in 0..<20 { for width in 1...4 { ask(device, width, peers[(device + width) % 2]) } }
        #expect(media.topicCount == 64)
        // What it has on one it may have on the other, too.
        ask(0, 1, peers[0])
        ask(0, 1, peers[1])
        #expect(media.topicCount == 64)
        let other = open("other")
        ask(19, 4, other)
        #expect(media.topicCount == 65)
        for peer in peers { media.close(peer) }
        #expect(media.topicCount == 1)
    }

    @Test func `who can't have a topic is told so once a second, and has it when it can`() throws {
        let scratch = try TemporaryDirectory()
        let place = BusEndpoints(try Context(), try Loop(), try RuntimeDirectory(scratch.path))
        let media = MediaDistributor(
            place, try .permitting(place), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var refused: [String] = []
        let peer = media.open(
            MediaDistributor.Way(owner: "desk", role: .view, allowsRaw: false, hasRoom: { true }) { topic, frames in
                let header = frames.first.flatMap { try? JSONValue(parsing: $0.bytes) }
                #expect(header?["error"]?["reason"] == "limitExceeded")
                refused.append(String(decoding: topic, as: UTF8.self))
                return true
            })
        func topic(_ width: Int) -> [UInt8] { Topic.frame("cam0", "jpeg:\(width)00x0").bytes }
        func ask(_ width: Int, _ kind: MediaAsk.Kind = .next) {
            media.take(MediaAsk(kind, topic: topic(width)), of: peer)
        }
        for width in 1...4 { ask(width) }
        #expect(refused.isEmpty && media.topicCount == 4)
        for _ in 0..<100 { ask(5) }
        let fifth = String(decoding: topic(5), as: UTF8.self)
        #expect(refused == [fifth])
        let now = MonotonicClock.now()
        // What is still asked for is told of, and that may be so much only.
        for second in 1...20 { media.reconsider(now: now + Int64(second) * 1_000_000_001) }
        #expect(refused == Array(repeating: fifth, count: 1 + Viewer.maximumCredit))
        // Who has not asked since is forgotten, and told at once when it asks anew.
        ask(5)
        #expect(refused.count == 2 + Viewer.maximumCredit)
        ask(5)
        #expect(refused.count == 2 + Viewer.maximumCredit)
        ask(1, .end)
        #expect(media.topicCount == 3)
        media.reconsider(now: MonotonicClock.now() + 1_000_000_000)
        #expect(refused.count == 2 + Viewer.maximumCredit && media.topicCount == 4)
        // Of what it has ended itself nothing comes any more.
        ask(6)
        ask(6)
        ask(6, .end)
        media.reconsider(now: MonotonicClock.now() + 5_000_000_000)
        #expect(refused.count == 3 + Viewer.maximumCredit && media.topicCount == 4)
    }

    @Test func `pixels that a client doesn't get are not subscribed to`() throws {
        let scratch = try TemporaryDirectory()
        let place = BusEndpoints(try Context(), try Loop(), try RuntimeDirectory(scratch.path))
        let media = MediaDistributor(
            place, try .permitting(place), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let wishes = [
            "frame/cam0/gray/", "frame/cam0/bgr:64x0/", "frame/cam0/rgb/", "frame/cam0/yuyv@1/", "frame/cam0/nv12/",
            "set/pair/i420/",
        ].map { Array($0.utf8) }
        for allowsRaw in [false, true] {
            var refused: [[UInt8]] = []
            let peer = media.open(
                MediaDistributor.Way(owner: "desk", role: .view, allowsRaw: allowsRaw, hasRoom: { true }) {
                    topic, frames in
                    let header = frames.first.flatMap { try? JSONValue(parsing: $0.bytes) }
                    #expect(header?["error"]?["reason"] == "formatUnsupported")
                    refused.append(topic)
                    return true
                })
            for topic in wishes { media.take(MediaAsk(.next, topic: topic), of: peer) }
            #expect(refused == wishes && media.topicCount == 0)
            // They are in the way of nothing else.
            for width in 1...4 {
                media.take(MediaAsk(.next, topic: Topic.frame("cam0", "jpeg:\(width)00x0").bytes), of: peer)
            }
            #expect(refused == wishes && media.topicCount == 4)
            media.take(MediaAsk(.nextRaw, topic: Array("set/pair/bgr/".utf8)), of: peer)
            #expect(media.topicCount == (allowsRaw ? 5 : 4))
            media.close(peer)
            #expect(media.topicCount == 0)
        }
    }

    @Test func `one client is refused so many topics at a time`() throws {
        let scratch = try TemporaryDirectory()
        let place = BusEndpoints(try Context(), try Loop(), try RuntimeDirectory(scratch.path))
        let media = MediaDistributor(
            place, try .permitting(place), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var refusals = 0
        let peer = media.open(
            MediaDistributor.Way(owner: "desk", role: .view, allowsRaw: false, hasRoom: { true }) { _, _ in
                refusals += 1
                return true
            })
        for number in 0..<1000 { media.take(MediaAsk(.next, topic: Array("none/\(number)/".utf8)), of: peer) }
        #expect(refusals == MediaDistributor.maximumRefusals && media.topicCount == 0)
    }

    @Test func `who asks for what isn't there is refused when that is sure, and who had it waits for it`() throws {
        let scratch = try TemporaryDirectory()
        let (context, loop) = (try Context(), try Loop())
        let place = BusEndpoints(context, loop, try RuntimeDirectory(scratch.path))
        let events = try BusEvents.permitting(place)
        let media = MediaDistributor(place, events, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let bus = try Socket(context, .extendedPublish)
        try bus.bind(RuntimeDirectory.endpoint(place.directory.eventsSocket))
        var sequence = 0
        /// Has the bus tell that, until the gateway knows it.
        func tell(_ topic: String, of epoch: String, _ value: JSONValue = [:]) throws {
            let until = "state/lock/mark\(sequence + 2)/"
            func isTold() -> Bool { !events.current(matching: until).isEmpty }
            func publish() {
                for (topic, value) in [(topic, value), (until, JSONValue.object([:]))] {
                    sequence += 1
                    let message: JSONValue = [
                        "epoch": .string(epoch), "sequence": JSONValue(sequence), "previous": 0, "value": value,
                    ]
                    _ = try? bus.send(frames: [Array(topic.utf8), message.serialized])
                }
            }
            let first = sequence
            func check() {
                guard !isTold() else { return loop.stop() }
                // Until it has subscribed, all is lost.
                sequence = first
                publish()
                loop.schedule(afterMilliseconds: 20) { check() }
            }
            let deadline = loop.schedule(afterMilliseconds: 20_000) { loop.stop() }
            check()
            try loop.run()
            loop.cancel(deadline)
            try #require(isTold())
        }
        var refused: [String] = []
        let peer = media.open(
            MediaDistributor.Way(owner: "desk", role: .view, allowsRaw: false, hasRoom: { true }) { topic, frames in
                let header = frames.first.flatMap { try? JSONValue(parsing: $0.bytes) }
                #expect(header?["error"]?["reason"] == "deviceNotFound")
                refused.append(String(decoding: topic, as: UTF8.self))
                return true
            })
        func ask(_ device: String) -> String {
            let topic = Topic.frame(device, "jpeg")
            media.take(MediaAsk(.next, topic: topic.bytes), of: peer)
            return topic.text
        }
        func second(_ seconds: Int64) -> Int64 { MonotonicClock.now() + seconds * 1_000_000_000 }
        // A subscription may come into force between the first two messages: these are nobody's.
        try tell("state/lock/first/", of: "a")
        let own: JSONValue = ["remote": RemotePermission(AuthorizationPolicy(owner: 0)).json]
        try tell("state/bus/", of: "a", own)
        try tell("state/device/src0/", of: "a")
        let (device, none) = (ask("src0"), ask("none"))
        // Not before the bus has told all that it has.
        media.cameHeartbeat(at: MonotonicClock.now() - 1_000_000_000)
        #expect(refused.isEmpty)
        media.cameHeartbeat(at: second(2))
        #expect(refused.isEmpty)
        media.cameHeartbeat(at: second(3))
        #expect(refused == [none] && media.topicCount == 1)
        // What was made after the last heartbeat.
        let fresh = ask("src1")
        #expect(refused == [none])
        media.cameHeartbeat(at: second(4))
        try tell("state/device/src1/", of: "a")
        media.cameHeartbeat(at: second(5))
        #expect(refused == [none])
        // Another bus, which has them a while after.
        try tell("state/bus/", of: "b", own)
        let now = MonotonicClock.now()
        media.cameHeartbeat(at: now + 4_000_000_000)
        media.cameHeartbeat(at: now + 13_000_000_000)
        #expect(refused == [none])
        try tell("state/device/src0/", of: "b")
        media.cameHeartbeat(at: second(15))
        #expect(refused == [none, fresh] && media.topicCount == 1)
        try tell("state/device/src0/", of: "b", .null)
        media.cameHeartbeat(at: second(16))
        #expect(refused.count == 2)
        media.cameHeartbeat(at: second(27))
        #expect(refused == [none, fresh, device] && media.topicCount == 0)
    }

    @Test func `who may not have a topic is told why, and has it again when that is allowed`() throws {
        let scratch = try TemporaryDirectory()
        let place = BusEndpoints(try Context(), try Loop(), try RuntimeDirectory(scratch.path))
        let events = try BusEvents(place)
        let media = MediaDistributor(place, events, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var told: [String: [String]] = [:]
        func open(_ role: Request.Principal.Role) -> MediaDistributor.Peer {
            media.open(
                MediaDistributor.Way(
                    owner: role.rawValue, role: role, allowsRaw: false, hasRoom: { true },
                    send: { topic, frames in
                        let header = frames.first.flatMap { try? JSONValue(parsing: $0.bytes) }
                        let needed = header?["error"]?["data"]?["needed"]?.string ?? ""
                        #expect(header?["error"]?["reason"] == "unauthorized")
                        told[role.rawValue, default: []].append(needed)
                        return true
                    }))
        }
        let peers = [Request.Principal.Role.view: open(.view), .control: open(.control), .admin: open(.admin)]
        func ask(_ topic: String) {
            for peer in peers.values { media.take(MediaAsk(.next, topic: Array(topic.utf8)), of: peer) }
        }
        func permit(_ change: (inout AuthorizationPolicy) -> Void) {
            var policy = AuthorizationPolicy(owner: 0)
            change(&policy)
            events.permit(RemotePermission(policy))
        }
        let (picture, sets, sound, level) = (
            "frame/cam0/jpeg/", "set/pair/jpeg/", "audio/mic0/native/", "level/mic0/"
        )
        // Nobody knows yet what they may: they wait.
        for topic in [picture, sets, sound, level] { ask(topic) }
        #expect(media.topicCount == 0 && told.isEmpty)
        permit { $0.viewHasSound = false }
        #expect(media.topicCount == 4 && told == ["view": ["audio", "audio"]])
        // All are of the same role now.
        told = [:]
        permit { ($0.viewHasSound, $0.remoteLimit) = (false, .view) }
        #expect(media.topicCount == 2 && told == ["control": ["audio", "audio"], "admin": ["audio", "audio"]])
        told = [:]
        permit { $0.remoteLimit = .none }
        #expect(media.topicCount == 0)
        #expect(told == ["view": ["video", "video"], "control": ["video", "video"], "admin": ["video", "video"]])
        // Once a second, as they go on asking, and no more after they have it.
        told = [:]
        for _ in 0..<5 { for topic in [picture, sound] { ask(topic) } }
        #expect(told.isEmpty)
        media.reconsider(now: MonotonicClock.now() + 1_000_000_001)
        #expect(told.values.map(\.count) == [2, 2, 2])
        permit { _ in }
        media.reconsider(now: MonotonicClock.now() + 2_000_000_002)
        #expect(told.values.map(\.count) == [2, 2, 2] && media.topicCount == 2)
    }
}

extension BusEvents {
    /// Of a bus that lets each role have what it has by itself.
    fileprivate static func permitting(_ place: BusEndpoints) throws -> BusEvents {
        let events = try BusEvents(place)
        events.permit(RemotePermission(AuthorizationPolicy(owner: 0)))
        return events
    }
}
