import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import Testing

@Suite(.timeLimit(.minutes(5))) struct FrameTests {
    @Test func `frames that are published after the subscription all come`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", newest: 10)
        // The subscription is in force: nothing of this may be missed.
        for sequence in 0..<3 {
            let header = FakeBus.header("cam0", "gray", sequence: Int64(sequence))
            bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, UInt8(sequence)])
        }
        for sequence in 0..<3 {
            let frame = try await frames.next()
            #expect(frame.header.sequence == UInt64(sequence))
            #expect(frame.payload.copied() == [1, 2, 3, UInt8(sequence)])
            #expect(frame.lost == 0)
        }
        try await eventually { !bus.subscriptions.contains { $0.hasPrefix("ack/") } }
    }

    @Test func `who is late gets the newest and is told what was lost`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray")
        let witness = try await client.frames("cam0", "gray", newest: 10)
        func publish(_ sequence: Int64, stream: String = "s1") async throws {
            let header = FakeBus.header("cam0", "gray", stream: stream, sequence: sequence)
            bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, 4])
            _ = try await witness.next()
        }
        try await publish(0)
        #expect(try await frames.next().lost == 0)
        for sequence in 1...5 { try await publish(Int64(sequence)) }
        // It comes over a socket of its own: the fifth is there when the last of them is.
        var last = try await frames.next()
        var lost = last.lost
        while last.header.sequence < 5 {
            last = try await frames.next()
            lost += last.lost + 1
        }
        #expect(last.header.sequence == 5)
        #expect(lost == 4)
        try await publish(0, stream: "s2")
        #expect(try await frames.next().lost == 0)
    }

    @Test func `pictures that build on one another all come, and after a loss go on with a key frame`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "native")
        let witness = try await client.frames("cam0", "native", newest: 20)
        // One that comes late, and one that is missing.
        for sequence in [3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14] as [Int64] {
            let header = FakeBus.header("cam0", "native", sequence: sequence, keyframe: sequence % 4 == 0)
            bus.publishFrame("cam0", "native", header: header, payload: [1, 2, 3, 4])
            if sequence != 3, sequence != 10, sequence != 11 { _ = try await witness.next() }
        }
        var given: [UInt64] = []
        var lost: [UInt64] = []
        while given.last != 14 {
            let frame = try await frames.next()
            given.append(frame.header.sequence)
            lost.append(frame.lost)
        }
        #expect(given == [4, 5, 6, 7, 8, 12, 13, 14])
        #expect(lost == [0, 0, 0, 0, 0, 3, 0, 0])
    }

    @Test func `an error header is thrown with its reason`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "jpeg:9000x9000")
        let error = BusError(.formatUnsupported, "Renditions only scale down.", ["nearest": "jpeg:640x480"])
        bus.publishFrame(
            "cam0", "jpeg:9000x9000",
            header: Announcement.failure(device: "cam0", rendition: "jpeg:9000x9000", error: error), payload: nil)
        let thrown = await #expect(throws: ClientError.self) { try await frames.next() }
        #expect(thrown?.reason == .formatUnsupported)
        #expect(thrown?.description == "formatUnsupported: Renditions only scale down.")
    }

    @Test func `a header that does not fit its payload is not believed`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", newest: 4)
        bus.publishFrame("cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 0), payload: [1])
        bus.publishFrame("cam0", "gray", header: Array("no JSON".utf8), payload: [1])
        for _ in 0..<2 {
            let error = await #expect(throws: ClientError.self) { try await frames.next() }
            guard case .unreadable? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func `a device that is not there is told by the bus`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let error = await #expect(throws: ClientError.self) { _ = try await client.frames("cam7") }
        #expect(error?.reason == .deviceNotFound)
        for (device, rendition) in [("CAM0", "native"), ("cam0", "a/b"), ("cam0", ""), ("../x", "native")] {
            let error = await #expect(throws: ClientError.self) { _ = try await client.frames(device, rendition) }
            #expect(error?.reason == .invalidParams)
        }
    }

    @Test func `a camera that is silent is told apart from a worker that is gone`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray", silence: .milliseconds(100))
        let gone = await #expect(throws: ClientError.self) { try await frames.next() }
        #expect(gone?.description.contains("its worker does not respond") == true)
        bus.givesSignOfLife = true
        let second = try await client.frames("cam0", "gray", silence: .milliseconds(100))
        let silent = await #expect(throws: ClientError.self) { try await second.next() }
        #expect(silent?.description.contains("but its worker is alive") == true)
    }

    @Test func `a worker that does not serve its socket is told in time`() async throws {
        // The bus knows cam9, but nobody has its socket.
        let bus = try FakeBus()
        bus.setState("state/device/cam9/", FakeBus.device("cam9"))
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let error = await #expect(throws: ClientError.self) {
            _ = try await client.frames("cam9", timeout: .seconds(5))
        }
        #expect(error?.description.contains("cam9") == true)
        guard case .silent? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `the subscription ends with the value, and a closed one says so`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        do {
            let frames = try await client.frames("cam0", "gray")
            #expect(bus.subscriptions.contains("frame/cam0/gray/"))
            frames.close()
            await #expect(throws: ClientError.closed) { try await frames.next() }
        }
        try await eventually { !bus.subscriptions.contains("frame/cam0/gray/") }
    }

    @Test func `a worker that was started again is followed`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray")
        bus.stop()
        try bus.restart()
        try await eventually { bus.subscriptions.contains("frame/cam0/gray/") }
        let header = FakeBus.header("cam0", "gray", stream: "s2", sequence: 7)
        bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, 4])
        #expect(try await frames.next().header.stream == "s2")
    }

    @Test func `who is cancelled waits no longer`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let frames = try await client.frames("cam0", "gray")
        let before = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await frames.next()
        }
        await #expect(throws: ClientError.cancelled) { _ = try await before.value }
        let meanwhile = Task { try await frames.next() }
        meanwhile.cancel()
        await #expect(throws: ClientError.cancelled) { _ = try await meanwhile.value }
        // And it can be asked again.
        bus.publishFrame("cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 0), payload: [1, 2, 3, 4])
        #expect(try await frames.next().header.sequence == 0)
    }

    @Test func `a subscription is not in force before the publisher says so`() async throws {
        let bus = try FakeBus()
        bus.acknowledges = false
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        // So long that the connection itself stands by then, whatever else the machine has to do.
        let error = await #expect(throws: ClientError.self) {
            _ = try await client.frames("cam0", "gray", timeout: .seconds(8))
        }
        #expect(error?.description.contains("accepts this client but not its subscriptions") == true, "\(error as Any)")
        // An answer that was lost is asked for again.
        let waiting = Task { try await client.frames("cam0", "gray", timeout: .seconds(20)) }
        try await eventually { bus.subscriptions.contains { $0.hasPrefix("ack/") } }
        bus.acknowledges = true
        _ = try await waiting.value
    }
}
