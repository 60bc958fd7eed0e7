import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import Testing

extension ProcessTests {
    /// Who may take photos, and put them into the library.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct PhotoPermission
    {
        @Test func `a missing permission is requested, and a refused save leaves the photo in the reply`() async throws
        {
            let user = OtherUser.first
            let bus = try await BusHarness(virtual: 1, configuration: OtherUser.configuration)
            let client = try RawClient(path: bus.directory.commandSocket)
            func capture(_ id: String, _ deliver: String) async throws -> ProgramResult {
                let params = #"{"device":"cam0","deliver":\#(deliver),"settings":{"uniqueID":"\#(id)"}}"#
                return try await bus.run("camerabus", ["call", "photo.capture", params], as: user)
            }
            let refused = try await capture("a", #"["library"]"#)
            #expect(refused.status == 1 && refused.standardError.contains("unauthorized"), "\(refused)")
            try await bus.wait(for: "state/authorization/\(user.uid)/") { $0?["asked"] == ["video"] }
            try client.call("authorization.grant", ["uid": JSONValue(user.uid), "media": "video"])
            // Nothing was taken, so the id is good.
            let unsaved = try await capture("a", #"["library"]"#)
            #expect(unsaved.status == 1 && unsaved.standardError.contains("libraryAdd"), "\(unsaved)")
            let replied = try await capture("b", #"["reply","library"]"#)
            let photo = try JSONValue(parsing: replied.standardOutput)["photos"]?[0]
            #expect(photo?["error"]?["data"]?["needed"] == "libraryAdd" && photo?["path"] == nil, "\(replied)")
            #expect(photo?["attachment"] == 0)

            // What waits and goes with the reply as well is taken all the same when it may not be stored any more.
            try client.call("authorization.grant", ["uid": JSONValue(user.uid), "media": "libraryAdd"])
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGSTOP)
            try client.start("photo.capture", ["device": "cam0", "deliver": ["reply"]])
            let unstored = try bus.start(
                "camerabus",
                [
                    "call", "photo.capture",
                    #"{"device":"cam0","deliver":["reply","library"],"settings":{"uniqueID":"d"}}"#,
                ], as: user)
            try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 1 }
            try RawClient(path: bus.directory.commandSocket).call(
                "authorization.deny", ["uid": JSONValue(user.uid), "media": "libraryAdd"])
            kill(pid, SIGCONT)
            #expect(try client.reply(within: 20).result.get()["photos"]?.array?.count == 1)
            let taken = try await unstored.end()
            let given = try JSONValue(parsing: taken.standardOutput)["photos"]?[0]
            #expect(given?["error"]?["data"]?["needed"] == "libraryAdd" && given?["path"] == nil, "\(taken)")
            #expect(given?["attachment"] == 0)

            // What waits is given up when it may be no more.
            let ears = try PhotoEars(bus)
            kill(pid, SIGSTOP)
            defer { kill(pid, SIGCONT) }
            let waiting = try bus.start(
                "camerabus",
                ["call", "photo.capture", #"{"device":"cam0","deliver":["reply"],"settings":{"uniqueID":"c"}}"#],
                as: user)
            try client.start("photo.capture", ["device": "cam0", "deliver": ["reply"]])
            try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 1 }
            try RawClient(path: bus.directory.commandSocket).call(
                "authorization.deny", ["uid": JSONValue(user.uid), "media": "video"])
            kill(pid, SIGCONT)
            let end = try ears.next("didFinishCapture", of: "c")
            #expect(end["error"]?["data"]?["reason"] == "unauthorized")
            let told = try await waiting.end()
            #expect(told.status == 1 && told.standardError.contains("unauthorized"), "\(told)")
            #expect(try client.reply(within: 20).result.get()["photos"]?.array?.count == 1)
            try await bus.stop()
        }

        @Test func `photos of a burst after the permission is revoked are in the reply only`() async throws {
            let (user, home) = (OtherUser.first, try TemporaryDirectory())
            let bus = try await BusHarness(
                virtual: 1, configuration: OtherUser.configuration, arguments: ["--state-dir", home.path])
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try PhotoEars(bus))
            for media in ["video", "libraryAdd"] {
                try client.call("authorization.grant", ["uid": JSONValue(user.uid), "media": .string(media)])
            }
            let params =
                #"{"device":"cam0","deliver":["reply","library"],"settings":{"uniqueID":"b","burst":15,"interval":300}}"#
            let program = try bus.start("camerabus", ["call", "photo.capture", params, "--timeout", "120"], as: user)
            try ears.next("willCapturePhoto", of: "b")
            try client.call("authorization.deny", ["uid": JSONValue(user.uid), "media": "libraryAdd"])
            let answer = try await program.end(by: .after(seconds: 120))
            let photos = try JSONValue(parsing: answer.standardOutput)["photos"]?.array ?? []
            #expect(photos.count == 15 && photos.allSatisfy { $0["attachment"] != nil }, "\(answer)")
            #expect(photos.last?["path"] == nil && photos.last?["error"]?["data"]?["needed"] == "libraryAdd")
            #expect(photos.allSatisfy { ($0["path"] == nil) != ($0["error"] == nil) }, "\(photos)")
            try await bus.stop()
        }

        @Test func `a live photo that may not be stored any more is in the reply alone, both of its files`()
            async throws
        {
            let (user, home) = (OtherUser.first, try TemporaryDirectory())
            let bus = try await BusHarness(
                virtual: 1, configuration: OtherUser.configuration, arguments: ["--state-dir", home.path])
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try PhotoEars(bus))
            for media in ["video", "libraryAdd"] {
                try client.call("authorization.grant", ["uid": JSONValue(user.uid), "media": .string(media)])
            }
            let made = try await bus.run(
                "camerabus",
                [
                    "call", "session.create",
                    #"{"inputs":["cam0"],"preset":"640x480","detached":true,"outputs":[{"type":"photo","livePhotoCaptureEnabled":true}]}"#,
                ], as: user)
            let session = try #require(try JSONValue(parsing: made.standardOutput)["session"]?.string, "\(made)")
            try client.call("session.start", ["session": .string(session)])
            let params =
                #"{"session":"\#(session)","deliver":["reply","library"],"settings":{"uniqueID":"live","livePhoto":true}}"#
            let program = try bus.start("camerabus", ["call", "photo.capture", params], as: user)
            try ears.next("didCapturePhoto", of: "live")
            try client.call("authorization.deny", ["uid": JSONValue(user.uid), "media": "libraryAdd"])
            let answer = try await program.end()
            let result = try JSONValue(parsing: answer.standardOutput)
            #expect(result["photos"]?[0]?["error"]?["data"]?["needed"] == "libraryAdd", "\(answer)")
            #expect(result["photos"]?[0]?["path"] == nil && result["livePhotoMovie"]?["path"] == nil)
            #expect(result["attachments"]?.array?.count == 2)
            #expect(try client.call("library.list")["entries"] == [])
            try await bus.stop()
        }

        @Test func `a photo is not returned again to a user who lost the permission for cameras`() async throws {
            let user = OtherUser.first
            let bus = try await BusHarness(virtual: 1, configuration: OtherUser.configuration)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("authorization.grant", ["uid": JSONValue(user.uid), "media": "video"])
            let request =
                #"{"jsonrpc":"2.0","id":1,"method":"photo.capture","key":"k","params":{"device":"cam0","deliver":["reply"]}}"#
            let program = """
                import sys, zmq
                socket = zmq.Context().socket(zmq.DEALER)
                socket.linger = 0
                socket.connect("ipc://" + sys.argv[1])
                socket.send_multipart([b"", sys.argv[2].encode()])
                if not socket.poll(30000): sys.exit("no answer")
                frames = socket.recv_multipart()
                print('{"files": %d, "reply": %s}' % (len(frames) - 2, frames[1].decode()))
                """
            func capture() async throws -> JSONValue {
                let words = ["-c", program, bus.directory.commandSocket, request]
                let result = try await bus.run(OtherUser.python, words, as: user)
                return try JSONValue(parsing: result.standardOutput)
            }
            let first = try await capture()
            #expect(first["files"] == 1 && first["reply"]?["result"]?["photos"]?[0]?["attachment"] == 0, "\(first)")
            #expect(try await capture() == first)
            try client.call("authorization.deny", ["uid": JSONValue(user.uid), "media": "video"])
            let later = try await capture()
            #expect(later["files"] == 0 && later["reply"]?["result"]?["attachmentsGone"] == true, "\(later)")
            try await bus.stop()
        }
    }
}
