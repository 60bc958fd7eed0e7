import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import Synchronization
import Testing

/// Photos, as the client asks for them and follows them.
@Suite(.timeLimit(.minutes(5))) struct PhotoTests {
    private static func photo(_ device: String, attachment: Int? = nil) -> JSONValue {
        .members([
            "device": .string(device), "index": 0, "fileType": "jpeg", "width": 4, "height": 2, "bytes": 3,
            "timestamp": ["monotonic": 7, "realtime": 1_789_000_000_123_456_789, "source": "startOfExposure"],
            "sequence": 3, "stream": "s1", "settled": false, "attachment": attachment.map { JSONValue($0) },
        ])
    }

    private static func result(_ id: String, _ photos: [JSONValue], attachments: Int) -> JSONValue {
        let announced: JSONValue = ["name": "a.jpg", "contentType": "image/jpeg", "bytes": 3]
        return [
            "uniqueID": .string(id), "resolved": ["devices": [["device": "cam0"]]],
            "expectedPhotoCount": JSONValue(photos.count), "photos": .array(photos), "spread": 1_500_000,
            "attachments": .array(Array(repeating: announced, count: attachments)),
        ]
    }

    @Test func `photos come with their files`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "photo.capture" else { return false }
            let photos = [Self.photo("cam0", attachment: 1), Self.photo("cam1", attachment: 0)]
            respond(.result(Self.result("u", photos, attachments: 2), attachments: [[1, 2, 3], [4, 5, 6]]))
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let capture = try await client.capturePhoto(["devices": ["cam0", "cam1"], "settings": ["flash": "on"]])
        #expect(capture.uniqueID == "u" && capture.expectedPhotoCount == 2 && capture.spread == .microseconds(1500))
        #expect(capture.resolved.map { $0["device"] } == ["cam0"])
        #expect(capture.photos.map(\.device) == ["cam0", "cam1"])
        #expect(capture.photos.map { $0.data?.copied() } == [[4, 5, 6], [1, 2, 3]])
        let photo = try #require(capture.photos.first)
        #expect(photo.fileType == "jpeg" && photo.width == 4 && photo.height == 2 && photo.bytes == 3)
        #expect(photo.monotonic == 7 && photo.realtime == 1_789_000_000_123_456_789 && !photo.isSettled)
        #expect(photo.path == nil && photo.id == nil && photo.error == nil)
        #expect(bus.requests.last?.params == ["devices": ["cam0", "cam1"], "settings": ["flash": "on"]])
    }

    @Test func `what was taken otherwise or later than asked is told`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "photo.capture" else { return false }
            var photo = Self.photo("cam0", attachment: 0).object ?? [:]
            var result = Self.result("u", [], attachments: 1).object ?? [:]
            if request.params["device"] == "cam0" {
                photo["late"] = 1_500_000
                result["late"] = 1
                result["adjusted"] = [["device": "cam0", "path": "p", "asked": -9, "given": -2, "why": "So."]]
            }
            result["photos"] = [.object(photo)]
            respond(.result(.object(result), attachments: [[1, 2, 3]]))
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let told = try await client.capturePhoto(["device": "cam0"])
        #expect(told.late == 1 && told.photos.first?.late == .microseconds(1500))
        #expect(told.adjusted.map { $0["given"] } == [-2])
        let plain = try await client.capturePhoto(["device": "cam1"])
        #expect(plain.late == 0 && plain.photos.first?.late == nil && plain.adjusted.isEmpty)
    }

    @Test func `a photo of the library has no bytes here, and one that did not come is an error`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "photo.capture" else { return false }
            if request.params["device"] == "cam1" {
                respond(.result(Self.result("u", [Self.photo("cam1", attachment: 0)], attachments: 0)))
                return true
            }
            var photo = Self.photo("cam0").object ?? [:]
            photo["path"] = "/v/a.jpg"
            photo["id"] = "e1"
            photo["error"] = ["message": "Full.", "data": ["reason": "diskFull"]]
            respond(.result(Self.result("u", [.object(photo)], attachments: 0)))
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let photo = try #require(try await client.capturePhoto(["device": "cam0"]).photos.first)
        #expect(photo.data == nil && photo.path == "/v/a.jpg" && photo.id == "e1" && photo.error?.reason == .diskFull)
        await #expect(throws: ClientError.unreadable("The answer of the bus is invalid: its photo is missing.")) {
            _ = try await client.capturePhoto(["device": "cam1"])
        }
    }

    @Test func `a live photo comes with its movie`() async throws {
        let movie: JSONValue = [
            "contentIdentifier": "7E0A3B52-9C41-4D68-A1F0-2B9C5D7E6F81", "width": 4, "height": 2, "bytes": 3,
            "duration": 2.9, "photoDisplayTime": 1.4, "dropped": 5, "attachment": 1,
        ]
        let bus = try FakeBus { request, respond in
            guard request.method == "photo.capture" else { return false }
            let files: [[UInt8]] = request.params["session"] == "short" ? [[1, 2, 3]] : [[1, 2, 3], [4, 5, 6]]
            let photos = [Self.photo("cam0", attachment: 0)]
            var result = Self.result("u", photos, attachments: files.count).object ?? [:]
            result["livePhotoMovie"] = movie
            respond(.result(.object(result), attachments: files))
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let capture = try await client.capturePhoto(["session": "s", "settings": ["livePhoto": true]])
        let found = try #require(capture.livePhotoMovie)
        #expect(found.data?.copied() == [4, 5, 6] && capture.photos.first?.data?.copied() == [1, 2, 3])
        #expect(found.duration == .milliseconds(2900) && found.photoDisplayTime == .milliseconds(1400))
        #expect(found.dropped == 5)
        #expect(found.contentIdentifier.hasPrefix("7E0A") && found.width == 4 && found.bytes == 3 && found.path == nil)
        await #expect(throws: ClientError.unreadable("The answer of the bus is invalid: its movie is missing.")) {
            _ = try await client.capturePhoto(["session": "short"])
        }
    }

    @Test func `the past of live photos is waited for, and no longer than there is patience`() async throws {
        func state(_ past: Int64?) -> JSONValue {
            let output: [String: JSONValue] = ["type": "photo", "livePhotoCaptureEnabled": .bool(past != nil)]
            return ["outputs": [.object(output.merging(past.map { ["livePhotoPast": .integer($0)] } ?? [:]) { $1 })]]
        }
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let bus = try FakeBus { request, _ in
            if request.method == "bus.snapshot" { continuation.yield() }
            return false
        }
        bus.setState("state/session/s/", state(400))
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        #expect(try await client.livePhotoPast(ofSession: "s", within: .milliseconds(1)) == .milliseconds(400))
        var turns = asked.makeAsyncIterator()
        _ = await turns.next()
        let waiting = Task { try await client.livePhotoPast(ofSession: "s", within: .seconds(60)) }
        _ = await turns.next()
        bus.setState("state/session/s/", state(900))
        bus.setState("state/session/s/", state(1500))
        #expect(try await waiting.value == Client.livePhotoReach)
        bus.setState("state/session/s/", state(nil))
        #expect(try await client.livePhotoPast(ofSession: "s", within: .seconds(60)) == .zero)
        #expect(try await client.livePhotoPast(ofSession: "none", within: .seconds(60)) == .zero)
    }

    private static let names = [
        "willBeginCapture", "willCapturePhoto", "didCapturePhoto", "didFinishProcessingPhoto", "didFinishCapture",
    ]

    /// Until it is let go, it keeps its bus.
    private final class Holder: Sendable {
        let bus = Mutex<FakeBus?>(nil)

        func release() { bus.withLock { $0 = nil } }
    }

    /// A bus that tells so many stages, and the last one, before its answer.
    private func staged(_ count: Int, refusal: BusError? = nil) throws -> (bus: FakeBus, holder: Holder) {
        let holder = Holder()
        let bus = try FakeBus { request, respond in
            guard request.method == "photo.capture" else { return false }
            let id = request.params["settings"]?["uniqueID"]?.string ?? ""
            for name in Self.names.prefix(count) + Self.names.suffix(1) {
                let message: JSONValue = [
                    "epoch": "e1", "sequence": 1, "previous": 0, "event": .string(name), "error": .null,
                ]
                holder.bus.withLock { $0 }?.publish("event/photo/\(id)/", message.serialized)
            }
            let answer = Self.result(id, [Self.photo("cam0", attachment: 0)], attachments: 1)
            respond(refusal.map { .error($0) } ?? .result(answer, attachments: [[1, 2, 3]]))
            return true
        }
        holder.bus.withLock { $0 = bus }
        return (bus, holder)
    }

    @Test func `stages are told in their order, the last before the return`() async throws {
        let (bus, holder) = try staged(4)
        defer { holder.release() }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        // They and the answer come by two sockets: now these are first, now that is.
        for _ in 0..<20 {
            let told = Mutex<[PhotoStage]>([])
            let capture = try await client.capturePhoto(["device": "cam0"]) { stage in
                told.withLock { $0.append(stage) }
            }
            let stages = told.withLock { $0 }
            #expect(stages.map(\.name) == Self.names)
            #expect(stages.allSatisfy { $0.uniqueID == capture.uniqueID } && stages.last?.error == nil)
            #expect(capture.uniqueID.utf8.count == 32)
        }
    }

    @Test func `a failure in between is told by the last stage, and thrown`() async throws {
        let (bus, holder) = try staged(2, refusal: BusError(.workerCrashed, "The worker died."))
        defer { holder.release() }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        for _ in 0..<20 {
            let told = Mutex<[String]>([])
            let error = await #expect(throws: ClientError.self) {
                _ = try await client.capturePhoto(["device": "cam0", "settings": ["uniqueID": "mine"]]) { stage in
                    told.withLock { $0.append("\(stage.uniqueID) \(stage.name)") }
                }
            }
            #expect(error?.reason == .workerCrashed)
            #expect(
                told.withLock { $0 }
                    == ["willBeginCapture", "willCapturePhoto", "didFinishCapture"].map { "mine \($0)" })
        }
    }

    @Test func `who gives up tells the bus`() async throws {
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let cancelled = Mutex<[JSONValue?]>([])
        let (given, more) = AsyncStream.makeStream(of: Void.self)
        let bus = try FakeBus { request, _ in
            if request.method == "bus.cancel" {
                cancelled.withLock { $0.append(request.params["key"]) }
                more.yield()
            }
            guard request.method == "photo.capture" else { return false }
            continuation.yield()
            return true
        }
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let task = Task { try await client.capturePhoto(["device": "cam0"]) { _ in } }
        _ = await asked.first { true }
        task.cancel()
        await #expect(throws: ClientError.cancelled) { _ = try await task.value }
        _ = await given.first { true }
        let key = bus.requests.first { $0.method == "photo.capture" }?.key
        #expect(key != nil && cancelled.withLock { $0 } == [key.map(JSONValue.string)])
    }

    @Test func `another program's stages can be followed`() async throws {
        let bus = try FakeBus()
        let client = try await Client.connect(runtimeDirectory: bus.path, name: "a test")
        let stages = try await client.photoStages("theirs")
        for name in ["willBeginCapture", "didFinishCapture"] {
            let error: JSONValue = name == "willBeginCapture" ? .null : ["data": ["reason": "cancelled"]]
            let message: JSONValue = [
                "epoch": "e1", "sequence": 1, "previous": 0, "event": .string(name), "error": error,
            ]
            bus.publish("event/photo/theirs/", message.serialized)
        }
        #expect(try await stages.next()?.name == "willBeginCapture")
        let last = try await stages.next()
        #expect(last?.isLast == true && last?.error?["data"]?["reason"] == "cancelled")
        #expect(try await stages.next() == nil)
    }
}
