import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Live photos, from the request to both files.
    @Suite(.timeLimit(.minutes(5))) struct LivePhotos {
        private let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        /// A bus with a library, and a session that takes live photos and has begun to hold what comes.
        private final class Scene {
            let bus: BusHarness
            let client: RawClient
            let ears: PhotoEars
            let session: String
            private var last = 0

            init(_ home: TemporaryDirectory, microphones: Int = 0, autoTrimming: Bool = false) async throws {
                bus = try await BusHarness(virtual: 1, microphones: microphones, arguments: ["--state-dir", home.path])
                client = try RawClient(path: bus.directory.commandSocket)
                ears = try PhotoEars(bus)
                // The test picture moves all the time.
                let output: JSONValue = [
                    "type": "photo", "livePhotoCaptureEnabled": true,
                    "livePhotoAutoTrimmingEnabled": .bool(autoTrimming),
                ]
                let made = try client.call(
                    "session.create",
                    [
                        "inputs": microphones > 0 ? ["cam0", "mic0"] : ["cam0"], "preset": "640x480",
                        "outputs": [output],
                    ])
                session = try #require(made["session"]?.string)
                #expect(made["state"]?["outputs"]?[0]?["livePhotoCaptureSupported"] == ["supported": true])
                #expect(made["state"]?["outputs"]?[0]?["livePhotoPast"] == nil)
                try client.call("session.start", ["session": .string(session)])
            }

            /// Waits until the photo output is as wished.
            @discardableResult
            func wait(_ condition: @escaping @Sendable (JSONValue) -> Bool) async throws -> JSONValue {
                let state = try await bus.wait(for: "state/session/\(session)/") { value in
                    value?["outputs"]?[0].map(condition) ?? false
                }
                return state?["outputs"]?[0] ?? .null
            }

            func waitForPast() async throws { try await wait { $0["livePhotoPast"] == 1500 } }

            func configure(_ action: JSONValue) throws {
                try client.call("session.configure", ["session": .string(session), "actions": [action]])
            }

            func set(_ members: [String: JSONValue]) throws {
                try configure(["setOutput": .object(members.merging(["output": "photo"]) { $1 })])
            }

            /// Begins a live photo, whose stages are told under the id that this answers.
            func start(_ deliver: JSONValue = ["reply"], _ client: RawClient? = nil) throws -> String {
                last += 1
                try (client ?? self.client).start(
                    "photo.capture",
                    [
                        "session": .string(session), "deliver": deliver,
                        "settings": ["uniqueID": .string("live-\(last)"), "livePhoto": true],
                    ])
                return "live-\(last)"
            }

            func reply(_ client: RawClient? = nil) throws -> (result: JSONValue, frames: [Message]) {
                let (reply, frames) = try (client ?? self.client).replyWithFrames(within: 30)
                return (try reply.result.get(), frames)
            }

            func refusal(_ client: RawClient? = nil) throws -> BusError? {
                if case .failure(let error) = try (client ?? self.client).reply(within: 30).result { return error }
                return nil
            }

            /// What recorders have made and nobody has fetched.
            var files: [String] {
                guard let folder = opendir(bus.directory.livePhotos) else { return [] }
                defer { closedir(folder) }
                var names: [String] = []
                while let entry = readdir(folder) {
                    let name = withUnsafePointer(to: &entry.pointee.d_name) {
                        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                    }
                    if !name.hasPrefix(".") { names.append(name) }
                }
                return names
            }

            var entries: [JSONValue] {
                get throws { try client.call("library.list")["entries"]?.array ?? [] }
            }
        }

        private static let stages = [
            "willBeginCapture", "willCapturePhoto", "didCapturePhoto", "didFinishProcessingPhoto",
            "didFinishRecordingLivePhotoMovie", "didFinishProcessingLivePhotoToMovieFile", "didFinishCapture",
        ]

        private func seconds(_ result: JSONValue, _ name: String) throws -> Double {
            try #require(result["livePhotoMovie"]?[name]?.double)
        }

        @Test func `a live photo is a picture, and the 3 s of picture and sound around it`() async throws {
            let scene = try await Scene(home, microphones: 1)
            try await scene.waitForPast()
            let id = try scene.start(["reply", "library"])
            let (result, frames) = try scene.reply()
            let (photo, movie) = (
                try #require(result["photos"]?[0]), try #require(result["livePhotoMovie"])
            )
            #expect(frames.count == 2 && photo["attachment"] == 0 && movie["attachment"] == 1)
            let identifier = try #require(movie["contentIdentifier"]?.string)
            let told = try scene.ears.all(of: [id])[id] ?? []
            #expect(PhotoEars.names(told) == Self.stages)
            #expect(told[0]["resolved"] == result["resolved"])
            #expect(result["resolved"]?["livePhotoMovie"] == ["width": 640, "height": 480])
            #expect(told[5]["duration"] == movie["duration"] && told[5]["livePhotoMovie"]?["path"] == movie["path"])

            // Both are one entry, and what came with the reply.
            let (path, moviePath) = (try #require(photo["path"]?.string), try #require(movie["path"]?.string))
            #expect(moviePath == path.replacing(".jpg", with: ".mov"))
            #expect(try File.read(path, limit: 64 << 20) == Array(frames[0].bytes))
            #expect(try File.read(moviePath, limit: 64 << 20) == Array(frames[1].bytes))
            #expect(result["attachments"]?[1]?["bytes"] == JSONValue(frames[1].count))
            let entry = try #require(try scene.entries.first)
            #expect(entry["id"] == photo["id"] && entry["movie"] == movie["path"] && entry["state"] == "finished")
            #expect(try scene.entries.count == 1 && scene.files.isEmpty)

            try await judge(path, moviePath, photo, movie, identifier)
            try scene.client.call("library.delete", ["id": photo["id"] ?? .null])
            #expect(access(path, F_OK) != 0 && access(moviePath, F_OK) != 0)
            try await scene.bus.stop()
        }

        private func judge(
            _ path: String, _ moviePath: String, _ photo: JSONValue, _ movie: JSONValue, _ identifier: String
        ) async throws {
            let recorded = try RecordedMovie(moviePath)
            #expect(try await recorded.codecs() == ["h264", "aac"])
            #expect(try await recorded.complaints() == "")
            let duration = try await recorded.duration()
            // What a busy machine left out, it says.
            let missing = Double(movie["dropped"]?.integer ?? 0) / 30
            #expect(duration < 3.15 && duration > 2.85 - missing, "\(duration) s, \(missing) s left out")
            // The photo's own picture is where the movie says; a recorder that a busy machine kept from it says so.
            let pictures = try await recorded.pictures()
            let sequence = UInt32(truncatingIfNeeded: try #require(photo["sequence"]?.integer))
            let displayTime = try #require(movie["photoDisplayTime"]?.double)
            #expect(displayTime < 1.6 && displayTime > 1.4 - missing, "\(displayTime), \(missing) s left out")
            if let own = pictures.first(where: { $0.counter?.counter == sequence }) {
                #expect(abs(own.time - displayTime) < 0.04, "\(own.time), \(displayTime)")
            } else {
                #expect(movie["dropped"]?.integer ?? 0 > 0, "its picture is not in the movie")
            }
            let counters = pictures.compactMap { $0.counter?.counter }
            #expect(counters.count == pictures.count && zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 })
            let lags = try RecordedMovie.lags(pictures, try await recorded.ticks())
            // Where pictures are missing, the one nearest to a tick may be as far away as they last.
            #expect(!lags.isEmpty && lags.allSatisfy { abs($0) < 1.0 / 60 + missing }, "\(lags), \(missing) s left out")
            guard access("/usr/bin/exiftool", X_OK) == 0 else { return }
            let scratch = try TemporaryDirectory()
            let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
            let exif = try await RunningProgram(
                "exiftool",
                ["-q", "-json", "-ContentIdentifier", "-MediaGroupUUID", "-ImageUniqueID", path, moviePath],
                environment: environment, scratch: scratch
            ).end(by: .after(seconds: 60))
            let read = try JSONValue(parsing: Array(exif.standardOutput.utf8))
            // Its older versions call that of pictures otherwise.
            #expect((read[0]?["ContentIdentifier"] ?? read[0]?["MediaGroupUUID"]) == .string(identifier), "\(read)")
            #expect(read[1]?["ContentIdentifier"] == .string(identifier))
            #expect(read[0]?["ImageUniqueID"] == .string(identifier.lowercased().replacing("-", with: "")))
        }

        @Test func `suspending live photos or changing the session ends those in progress, and later ones begin anew`()
            async throws
        {
            let scene = try await Scene(home)
            try await scene.waitForPast()
            let other = try RawClient(path: scene.bus.directory.commandSocket)
            // Suspended while it is made: it ends then.
            var id = try scene.start(["reply"], other)
            try scene.ears.next("didCapturePhoto", of: id)
            try scene.set(["livePhotoCaptureSuspended": true])
            var result = try scene.reply(other).result
            let (whole, before) = (try seconds(result, "duration"), try seconds(result, "photoDisplayTime"))
            #expect(abs(before - 1.5) < 0.1 && whole - before < 1.4, "\(before) of \(whole) s")
            try await scene.wait { $0["livePhotoCaptureSuspended"] == true && $0["livePhotoPast"] == 0 }
            let suspended: JSONValue = ["session": .string(scene.session), "settings": ["livePhoto": true]]
            #expect(try scene.client.refusal("photo.capture", suspended)?.data["path"] == "settings.livePhoto")
            // From now on, and nothing older.
            try scene.set(["livePhotoCaptureSuspended": false])
            id = try scene.start(["reply"], other)
            try scene.ears.next("didCapturePhoto", of: id)
            // Another way of making them: it ends with what it has.
            let generation = try #require(
                try await scene.bus.wait(for: "state/device/cam0/") { $0 != nil }?["generation"]?.integer)
            try scene.set(["livePhotoAutoTrimmingEnabled": true])
            try await scene.bus.wait(for: "state/device/cam0/") { ($0?["generation"]?.integer ?? 0) > generation }
            result = try scene.reply(other).result
            #expect(try seconds(result, "photoDisplayTime") < 1 && seconds(result, "duration") < 2.4)

            // One that waits for its turn is not what was asked for any more.
            try await scene.waitForPast()
            try other.start("photo.capture", ["device": "cam0", "deliver": ["reply"], "settings": ["burst": 40]])
            try await scene.bus.wait(for: "state/device/cam0/") { $0?["photo"]?["readiness"] == "waitingForCapture" }
            _ = try scene.start()
            try await scene.bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 1 }
            let third = try RawClient(path: scene.bus.directory.commandSocket)
            try third.call(
                "session.configure",
                [
                    "session": .string(scene.session),
                    "actions": [["setOutput": ["output": "photo", "livePhotoAutoTrimmingEnabled": false]]],
                ])
            let refusal = try scene.refusal()
            #expect(refusal?.reason == .interrupted && refusal?.data["interruption"] == "reconfiguration")
            _ = try scene.reply(other)
            try await scene.bus.stop()
        }

        @Test func `a session with a movie output takes none`() async throws {
            let scene = try await Scene(home)
            try await scene.waitForPast()
            let other = try RawClient(path: scene.bus.directory.commandSocket)
            let id = try scene.start(["reply"], other)
            try scene.ears.next("didCapturePhoto", of: id)
            try scene.configure(["addOutput": "movie"])
            // The one in progress is what there is of it.
            #expect(try seconds(scene.reply(other).result, "duration") < 2.9)
            let output = try await scene.wait { $0["livePhotoCaptureEnabled"] == false && $0["livePhotoPast"] == nil }
            #expect(output["livePhotoCaptureSupported"]?["supported"] == false)
            #expect(output["livePhotoCaptureSupported"]?["why"]?.string?.contains("movie output") == true)
            let ask: JSONValue = ["session": .string(scene.session), "settings": ["livePhoto": true]]
            #expect(try scene.client.refusal("photo.capture", ask)?.data["path"] == "settings.livePhoto")
            let enable: JSONValue = ["setOutput": ["output": "photo", "livePhotoCaptureEnabled": true]]
            let refusal = try scene.client.refusal(
                "session.configure", ["session": .string(scene.session), "actions": [enable]])
            #expect(refusal?.data["path"] == "actions[0].setOutput.livePhotoCaptureEnabled")
            try await eventually { scene.bus.pids(of: "camerabus-recorder").isEmpty }
            // Without one it can again.
            try scene.configure(["removeOutput": "movie"])
            try scene.set(["livePhotoCaptureEnabled": true])
            try await scene.wait { $0["livePhotoPast"] != nil && $0["livePhotoCaptureSupported"]?["supported"] == true }
            try await scene.bus.stop()
        }

        @Test func `a movie whose rendition is refused ends its photo with why, and there is one when it is given`()
            async throws
        {
            let scene = try await Scene(home)
            try await scene.waitForPast()
            var others = try (1...8).map { try FrameReader(scene.bus, "cam0", "gray:\($0 * 16)x0") }
            for other in others { _ = try other.next() }
            // What everybody gets at any time is enough, unless the picture is turned.
            _ = try scene.start()
            #expect(try scene.reply().result["livePhotoMovie"] != nil)
            try scene.configure(["connection": ["output": "photo", "videoOrientation": "portrait"]])
            for deliver: JSONValue in [["reply"], ["library"]] {
                let id = try scene.start(deliver)
                let error = try scene.refusal()
                #expect(error?.reason == .limitExceeded && error?.data["limit"] == "renditions")
                #expect(error?.message.hasPrefix("The live photo has no movie: ") == true)
                let end = try scene.ears.next("didFinishCapture", of: id)
                #expect(end["error"]?["data"]?["limit"] == "renditions")
            }
            #expect(try scene.entries.isEmpty && scene.files.isEmpty)
            others.removeLast()
            try await scene.waitForPast()
            _ = try scene.start()
            #expect(try scene.reply().result["livePhotoMovie"]?["height"] == 640)
            withExtendedLifetime(others) {}
            try await scene.bus.stop()
        }

        @Test func `killed processes leave neither of its files, and the next one works`() async throws {
            let scene = try await Scene(home)
            let other = try RawClient(path: scene.bus.directory.commandSocket)
            try await scene.waitForPast()
            // Its recorder, while it is made.
            var id = try scene.start(["library"], other)
            try scene.ears.next("didCapturePhoto", of: id)
            for pid in scene.bus.pids(of: "camerabus-recorder") { kill(pid, SIGKILL) }
            var error = try scene.refusal(other)
            #expect(error?.reason == .interrupted && error?.data["interruption"] == "livePhotoMovie")
            #expect(error?.data["photos"] == nil)
            let end = try scene.ears.next("didFinishCapture", of: id)
            #expect(end["photos"] == 0 && end["error"]?["data"]?["interruption"] == "livePhotoMovie")
            try await eventually { try scene.entries.isEmpty && scene.files.isEmpty }
            // The camera's worker.
            try await scene.waitForPast()
            id = try scene.start(["library"], other)
            try scene.ears.next("didCapturePhoto", of: id)
            kill(try #require(try scene.bus.workerPID("cam0")), SIGKILL)
            error = try scene.refusal(other)
            #expect(error?.reason == .workerCrashed)
            try scene.ears.next("didFinishCapture", of: id)
            try await eventually { try scene.entries.isEmpty && scene.files.isEmpty }
            // The bus: what it had made is nobody's.
            try await scene.waitForPast()
            id = try scene.start(["library"], other)
            try scene.ears.next("didCapturePhoto", of: id)
            let recorder = try #require(scene.bus.pids(of: "camerabus-recorder").first)
            try await scene.bus.killCoordinator()
            try await scene.bus.startCoordinator()
            try await eventually { !scene.bus.pids(of: "camerabus-recorder").contains(recorder) && scene.files.isEmpty }
            try await eventually { try scene.entries.isEmpty }
            try await scene.waitForPast()
            let again = try RawClient(path: scene.bus.directory.commandSocket)
            _ = try scene.start(["library"], again)
            #expect(try scene.reply(again).result["livePhotoMovie"]?["path"] != nil)
            #expect(try scene.entries.count == 1)
            try await scene.bus.stop()
        }
    }
}
