import BusClient
import BusProtocol
import CameraBusTesting
import FrameRing
import JSON
import LinuxIO
import Synchronization
import Testing

/// Frames whose pixels lie in shared memory, and what happens where there is none.
@Suite(.timeLimit(.minutes(5))) struct SharedFrameTests {
    /// A worker's rings: gives the newest to everyone who connects.
    private final class Rings {
        private let listening: FileDescriptor
        private var guests: [PacketSocket] = []
        private(set) var writer: RingWriter
        private var numbers = 0

        init(_ bus: FakeBus) throws {
            listening = try UnixSocket.listen(at: "\(bus.path)/media/cam0.ring", .packets, mode: 0o600)
            writer = try Self.ring(0)
        }

        private static func ring(_ number: Int) throws -> RingWriter {
            let description = RingDescription(
                ring: "000000000000000\(number)", stream: "s\(number)", device: "cam0", rendition: "gray",
                format: 0x5945_5247, width: 2, height: 2, planes: [.init(offset: 0, stride: 2, bytes: 4)], keep: 0,
                slots: 0, slotBytes: 4096)
            return try RingWriter(description, RingLedger(filling: 1, keep: 1, lending: 0))
        }

        /// Gives the ring to those who have connected.
        func serve() throws {
            while let descriptor = try UnixSocket.accept(listening.rawValue) {
                let guest = PacketSocket(owning: descriptor)
                guests.append(guest)
                try give(guest)
            }
        }

        func replace() throws {
            numbers += 1
            writer = try Self.ring(numbers)
            for guest in guests { try give(guest) }
        }

        /// Whether all who were connected have gone.
        var areAlone: Bool {
            guests.allSatisfy { guest in
                do {
                    // What was asked for comes first.
                    while let packet = try guest.receive(maximumBytes: 1024) { if packet.isEnd { return true } }
                    return false
                } catch {
                    // It has not read all that it was given.
                    return true
                }
            }
        }

        var hasGuests: Bool { !guests.isEmpty }

        /// Ends all connections, as the end of the worker does.
        func hangUp() { guests = [] }

        private func give(_ guest: PacketSocket) throws {
            #expect(try guest.send(Array(#"{"ring":"x"}"#.utf8), descriptor: writer.readerDescriptor))
        }

        /// Puts a picture into the ring.
        ///
        /// - Returns: the header of the message that tells of it.
        func put(_ sequence: Int64) throws -> [UInt8] {
            let slot = try #require(writer.take())
            for index in 0..<4 { writer.pixels(of: slot)[index] = UInt8(sequence) }
            let record = RingRecord(
                sequence: UInt64(sequence), captureSequence: 0, monotonic: 0, realtime: 0, generation: 0, dropped: 0,
                bytes: 4, timestampSource: .dequeue)
            let stamp = try #require(writer.publish(slot, record))
            let stream = writer.plan.description.stream
            let header = FakeBus.header("cam0", "gray", stream: stream, sequence: sequence)
            var json = try header.withUnsafeBytes { try JSONValue(parsing: $0) }.object ?? [:]
            json["buffer"] = [
                "ring": .string(writer.plan.description.ring), "slot": JSONValue(slot),
                "offset": JSONValue(writer.plan.pixels(slot)), "bytes": 4, "stamp": JSONValue(stamp),
            ]
            return JSONValue.object(json).serialized
        }
    }

    private static let topic = "buffer/cam0/gray/"

    private func bus(features: JSONValue = ["rings"]) throws -> FakeBus {
        try FakeBus { request, respond in
            guard request.method == "bus.hello" else { return false }
            respond(
                .result([
                    "server": "CameraBus", "version": "0", "protocol": 1, "features": features, "you": [:],
                    "authorization": [:], "endpoints": [:], "epoch": "e1", "sequence": 0, "limits": [:],
                ]))
            return true
        }
    }

    @Test func `pixels are found where messages say, from ring to ring`() async throws {
        let bus = try bus()
        let rings = try Rings(bus)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true, newest: 10)
        #expect(frames.areShared && bus.subscriptions.contains(Self.topic))
        try rings.serve()
        var last: Frame?
        for round in 0..<3 as Range<Int64> {
            for sequence in 0..<3 as Range<Int64> {
                bus.publishMedia("cam0", Self.topic, try rings.put(sequence))
                let frame = try await frames.next()
                #expect(frame.header.stream == "s\(round)" && frame.header.sequence == UInt64(sequence))
                #expect(frame.payload.isShared && frame.payload.count == 4 && frame.lost == 0)
                #expect(frame.payload.copied() == Array(repeating: UInt8(sequence), count: 4))
                #expect(frame.payload.isIntact)
                last = frame
            }
            try rings.replace()
        }
        // A former ring stays what it was for those who look at it.
        #expect(last?.payload.isIntact == true && frames.late == 0)
    }

    @Test func `a frame that was overwritten says so and counts as late, once`() async throws {
        let bus = try bus()
        let rings = try Rings(bus)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true, newest: 10)
        try rings.serve()
        bus.publishMedia("cam0", Self.topic, try rings.put(0))
        let frame = try await frames.next()
        #expect(frame.payload.isIntact)
        _ = try rings.put(1)
        let early = try rings.put(2)
        _ = try rings.put(3)
        let newest = try rings.put(4)
        #expect(!frame.payload.isIntact && !frame.payload.isIntact && frames.late == 1)
        // Overwritten before its message was looked at: it is left out.
        bus.publishMedia("cam0", Self.topic, early)
        bus.publishMedia("cam0", Self.topic, newest)
        let next = try await frames.next()
        #expect(next.header.sequence == 4 && next.lost == 3 && frames.late == 2)
    }

    @Test func `a worker that was started again is asked again`() async throws {
        let bus = try bus()
        let rings = try Rings(bus)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true)
        try rings.serve()
        bus.publishMedia("cam0", Self.topic, try rings.put(0))
        #expect(try await frames.next().header.stream == "s0")
        rings.hangUp()
        try rings.replace()
        let task = Task { try await frames.next().header.stream }
        let isDone = Mutex(false)
        Task {
            _ = try? await task.value
            isDone.withLock { $0 = true }
        }
        try await eventually {
            try rings.serve()
            bus.publishMedia("cam0", Self.topic, try rings.put(1))
            return isDone.withLock { $0 }
        }
        #expect(try await task.value == "s1" && frames.areShared)
    }

    @Test func `a bus that knows no rings is asked for frames`() async throws {
        let bus = try bus(features: ["keys"])
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true)
        #expect(!frames.areShared && bus.subscriptions.contains("frame/cam0/gray/"))
        bus.publishFrame("cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 0), payload: [1, 2, 3, 4])
        let frame = try await frames.next()
        #expect(!frame.payload.isShared && frame.payload.isIntact && frame.payload.copied() == [1, 2, 3, 4])
    }

    @Test func `a frame that is kept keeps no connection`() async throws {
        let bus = try bus()
        let rings = try Rings(bus)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        var kept: [Frame] = []
        for isClosed in [true, false] {
            let frames = try await client.frames("cam0", "gray", shared: true)
            try rings.serve()
            bus.publishMedia("cam0", Self.topic, try rings.put(Int64(kept.count)))
            kept.append(try await frames.next())
            if isClosed {
                frames.close()
                try await eventually { rings.areAlone }
                rings.hangUp()
            }
        }
        try await eventually { rings.areAlone }
        #expect(kept.map { $0.payload.copied()[0] } == [0, 1])
    }

    @Test func `where there is no memory for a ring, frames come as usual`() async throws {
        let bus = try bus()
        let rings = try Rings(bus)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true)
        // Whatever else has failed may be over in a moment.
        bus.publishMedia(
            "cam0", Self.topic,
            Announcement.failure(device: "cam0", rendition: "gray", error: BusError(.internalError, "Oh.")))
        let failure = await #expect(throws: ClientError.self) { try await frames.next() }
        #expect(failure?.reason == .internalError && frames.areShared)
        let error = BusError.withoutRing("There is no memory for a ring of this picture.")
        bus.publishMedia("cam0", Self.topic, Announcement.failure(device: "cam0", rendition: "gray", error: error))
        try await eventually {
            try rings.serve()
            return rings.hasGuests
        }
        let next = Task { try await frames.next() }
        try await eventually { bus.subscriptions.contains("frame/cam0/gray/") }
        // Nor does it ask for rings any more.
        try await eventually { rings.areAlone }
        try await eventually { !bus.subscriptions.contains(Self.topic) }
        bus.publishFrame("cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 7), payload: [1, 2, 3, 4])
        #expect(try await next.value.payload.copied() == [1, 2, 3, 4] && !frames.areShared)
        // Other refusals are told.
        let larger = try await client.frames("cam0", "gray:9999x9999", shared: true)
        bus.publishMedia(
            "cam0", "buffer/cam0/gray:9999x9999/",
            Announcement.failure(
                device: "cam0", rendition: "gray:9999x9999", error: BusError(.formatUnsupported, "Too large.")))
        let thrown = await #expect(throws: ClientError.self) { try await larger.next() }
        #expect(thrown?.reason == .formatUnsupported && larger.areShared)
    }

    @Test func `where no ring can be had, frames come as usual`() async throws {
        let bus = try bus()
        // Its rings are made, but nobody can connect.
        let rings = try Rings(bus)
        File.remove("\(bus.path)/media/cam0.ring")
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true)
        let next = Task { try await frames.next() }
        try await eventually {
            bus.publishMedia("cam0", Self.topic, try rings.put(0))
            return bus.subscriptions.contains("frame/cam0/gray/")
        }
        bus.publishFrame("cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 7), payload: [1, 2, 3, 4])
        #expect(try await next.value.header.sequence == 7)
    }

    @Test func `a place that is none is not looked at`() async throws {
        let bus = try bus()
        let rings = try Rings(bus)
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", shared: true, newest: 10)
        try rings.serve()
        let good = try rings.put(0).withUnsafeBytes { try JSONValue(parsing: $0) }.object ?? [:]
        let place = good["buffer"]?.object ?? [:]
        for (member, value): (String, JSONValue) in [
            ("slot", 999_999), ("offset", 1), ("bytes", 5000), ("bytes", 3), ("stamp", 3), ("stamp", 0),
        ] {
            var bad = good
            bad["buffer"] = .object(place.merging([member: value]) { $1 })
            bus.publishMedia("cam0", Self.topic, JSONValue.object(bad).serialized)
            let error = await #expect(throws: ClientError.self) { try await frames.next() }
            guard case .unreadable? = error else {
                Issue.record("\(member): \(String(describing: error))")
                continue
            }
        }
    }
}
