import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct ClientTests {
    @Test func `it says hello and asks`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        #expect(client.greeting.epoch == "e1")
        let devices = try await client.devices()
        #expect(devices.map { $0["id"]?.string } == ["cam0", "cam1"])
        #expect(bus.requests.first?.params == ["client": "a test", "version": 1])
        await client.close()
    }

    @Test func `without a bus it tells where it looked`() async throws {
        let home = try TemporaryDirectory()
        await #expect(
            throws: ClientError.noBus(lookedAt: [.init(directory: home.path, why: "no bus in it")])
        ) { _ = try await Client.connect(runtimeDirectory: home.path, name: "a test") }
        let sentence = ClientError.noBus(lookedAt: [.init(directory: "/run/camerabus", why: "not there")]).description
        #expect(sentence.contains("camerabusd") && sentence.contains("/run/camerabus (not there)"))
    }

    @Test func `refusals carry their reason`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let error = await #expect(throws: ClientError.self) { try await client.device("nope") }
        #expect(error?.reason == .deviceNotFound)
        #expect(error?.description == "deviceNotFound: There is no device 'nope'.")
    }

    @Test func `answers bring their attachments`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "test.attach" else { return false }
            let announced: JSONValue = [
                ["name": "a", "bytes": 3], ["name": "b", "bytes": request.params["second"] ?? 0],
            ]
            respond(.result(["attachments": announced], attachments: [[1, 2, 3], []]))
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let answer = try await client.request("test.attach")
        #expect(answer.attachments.map { $0.copied() } == [[1, 2, 3], []])
        // Others than were announced are not taken for those.
        let error = await #expect(throws: ClientError.self) { try await client.request("test.attach", ["second": 1]) }
        guard case .unreadable(let why)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(why.contains("test.attach"))
    }

    @Test func `answers find their callers`() async throws {
        // The answers come in the order opposite to that of the questions.
        let kept = Mutex<[(Int64, @Sendable (FakeBus.Reply) -> Void)]>([])
        let bus = try FakeBus { request, respond in
            guard request.method == "test.later", let number = request.params["number"]?.integer else { return false }
            let ready = kept.withLock { kept in
                kept.append((number, respond))
                return kept.count == 20 ? kept : []
            }
            for (number, respond) in ready.reversed() { respond(.result(["number": .integer(number)])) }
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                group.addTask {
                    try await client.call("test.later", ["number": JSONValue(number)])["number"] == JSONValue(number)
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }

    @Test func `calls run out of time`() async throws {
        let bus = try FakeBus { request, _ in request.method == "test.never" }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        await #expect(throws: ClientError.timedOut(method: "test.never", milliseconds: 50)) {
            try await client.call("test.never", timeout: .milliseconds(50))
        }
    }

    @Test func `cancelled calls end at once`() async throws {
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let bus = try FakeBus { request, _ in
            guard request.method == "test.never" else { return false }
            continuation.yield()
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task { try await client.call("test.never", timeout: .seconds(600)) }
        _ = await asked.first { true }
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        let cancelledBefore = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await client.call("test.never", timeout: .seconds(600))
        }
        await #expect(throws: ClientError.cancelled) { try await cancelledBefore.value }
    }

    @Test func `closing ends what waits`() async throws {
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let bus = try FakeBus { request, _ in
            guard request.method == "test.never" else { return false }
            continuation.yield()
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let messages = try await client.watch(["state/bus/"])
        let task = Task { try await client.call("test.never", timeout: .seconds(600)) }
        _ = await asked.first { true }
        await client.close()
        await #expect(throws: ClientError.closed) { try await task.value }
        await #expect(throws: ClientError.closed) { try await client.call("bus.ping") }
        await #expect(throws: ClientError.closed) { _ = try await messages.next() }
        await #expect(throws: ClientError.closed) { _ = try await client.watch(["state/"]) }
    }

    @Test func `the end of the bus ends its calls, and new ones reach the next bus`() async throws {
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let bus = try FakeBus { request, _ in
            guard request.method == "test.never" else { return false }
            continuation.yield()
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task { try await client.call("test.never", timeout: .seconds(600)) }
        _ = await asked.first { true }
        bus.stop()
        await #expect(throws: ClientError.connectionLost(method: "test.never")) { try await task.value }
        let next = Task { try await client.call("bus.snapshot", timeout: .seconds(20))["epoch"] }
        try bus.restart()
        #expect(try await next.value == "e1+")
        // It has told its name to the new one, as the first thing.
        #expect(bus.requests.filter { $0.method == "bus.hello" }.map(\.isNotification) == [false, true])
    }

    @Test func `a bus that is gone is told as such`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        bus.stop()
        // The first ones may still meet the dying connection.
        try await eventually {
            do throws(ClientError) {
                _ = try await client.call("bus.ping", timeout: .milliseconds(50))
                return false
            } catch {
                if case .noBus = error { return true }
                return false
            }
        }
    }

    @Test func `a request that was given up does not reach the next bus`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        bus.stop()
        // What comes from here on waits in the client.
        await client.waitUntilCut()
        await #expect(throws: ClientError.self) { try await client.call("test.late", timeout: .milliseconds(50)) }
        try bus.restart()
        _ = try await client.call("bus.ping", timeout: .seconds(20))
        #expect(!bus.requests.contains { $0.method == "test.late" })
    }

    @Test func `requests that are too large are not sent`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let text = String(repeating: "x", count: BusLimits.maxRequestBytes)
        let error = await #expect(throws: ClientError.self) { try await client.call("bus.ping", ["x": .string(text)]) }
        #expect(error?.reason == .limitExceeded)
    }
}
