import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// What sessions say that their outputs can have, beside what comes.
    @Suite(.timeLimit(.minutes(5))) struct SessionOutputs {
        private static let outputs: JSONValue = [
            "videoData", ["type": "videoData", "format": "native", "id": "raw"], "preview", "photo", "movie",
        ]

        /// What says nothing against it, of a session whose camera is set to that.
        private func promised(_ client: RawClient, _ session: JSONValue, _ pixelFormat: String) throws -> [String] {
            let format: JSONValue = ["pixelFormat": .string(pixelFormat), "width": 320, "height": 240]
            let set = try client.call(
                "session.configure",
                ["session": session, "actions": [["setInput": ["device": "cam0", "activeFormat": format]]]], within: 30)
            let resolved = set["resolved"]?.array ?? []
            let told = set["explanation"]?.array?.compactMap(\.string) ?? []
            for entry in resolved {
                let output = entry["output"]?.string ?? ""
                let why = entry["why"]?.string
                #expect(told.contains { $0.hasPrefix("\(output) gets nothing: ") } == (why != nil), "\(told)")
                #expect(why?.contains("can be made of \(pixelFormat), which cam0 delivers") ?? true)
            }
            return resolved.filter { $0["why"] == .null }.compactMap { $0["output"]?.string }
        }

        /// What comes.
        private func delivered(_ bus: BusHarness, _ client: RawClient, _ session: JSONValue) throws -> [String] {
            let resolved = try client.call("session.get", ["session": session])["resolved"]?.array ?? []
            return try resolved.filter { entry in
                switch entry["type"] {
                case "photo":
                    return try client.refusal("photo.capture", ["session": session, "deliver": ["reply"]]) == nil
                case "movie":
                    try client.start("movie.start", ["session": session])
                    guard case .success(let movie) = try client.reply(within: 30).result else { return false }
                    try client.call("movie.stop", ["movie": movie["movie"] ?? .null], within: 30)
                    return true
                default:
                    let reader = try FrameReader(bus, "cam0", try #require(entry["rendition"]?.string))
                    guard entry["why"] == .null else { return try reader.error().reason != .formatUnsupported }
                    _ = try reader.next()
                    return true
                }
            }.compactMap { $0["output"]?.string }
        }

        @Test func `a session says what of its outputs can't be made of its camera's format`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let made = try client.call("session.create", ["inputs": ["cam0"], "outputs": Self.outputs])
            let session = made["session"] ?? .null
            try client.call("session.start", ["session": session])
            for (format, outputs) in [
                ("YUYV", ["videoData", "raw", "preview", "photo", "movie"]),
                ("H264", ["raw", "movie"]), ("pRAA", ["raw", "photo"]),
                ("RGGB", ["videoData", "raw", "preview", "photo", "movie"]),
            ] {
                #expect(try promised(client, session, format) == outputs, "\(format)")
                #expect(try delivered(bus, client, session) == outputs, "\(format)")
            }
            try await bus.stop()
        }

        @Test func `an output that the camera's format can't serve is not added`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            func can(_ session: JSONValue, _ output: JSONValue) throws -> JSONValue {
                try client.call("session.canAdd", ["session": session, "action": ["addOutput": output]])
            }
            let h264: JSONValue = ["pixelFormat": "H264", "width": 320, "height": 240]
            let inputs: JSONValue = [["device": "cam0", "activeFormat": h264]]
            let made = try client.call("session.create", ["inputs": inputs, "outputs": ["movie"]])
            let session = made["session"] ?? .null
            for output: JSONValue in ["videoData", "preview", "photo"] {
                let answer = try can(session, output)
                #expect(answer["can"] == false && answer["reason"] == "cannotAddOutput")
                #expect(answer["why"]?.string?.contains("can be made of H264, which cam0 delivers") == true)
                let refusal = try client.refusal(
                    "session.configure", ["session": session, "actions": [["addOutput": output]]])
                #expect(refusal?.reason == .cannotAddOutput)
            }
            let raw: JSONValue = ["type": "videoData", "format": "native"]
            #expect(try can(session, raw)["can"] == true)
            let both: JSONValue = [
                [
                    "setInput": [
                        "device": "cam0", "activeFormat": ["pixelFormat": "YUYV", "width": 320, "height": 240],
                    ]
                ],
                ["addOutput": "photo"],
            ]
            try client.call("session.configure", ["session": session, "actions": both])
            #expect(try can(session, "preview")["can"] == true)
            try client.call("session.configure", ["session": session, "actions": [["addOutput": raw]]])
            let back: JSONValue = [["setInput": ["device": "cam0", "activeFormat": h264]]]
            // A change of the camera is not refused for its sake; what it comes to is told before the start.
            let changed = try client.call("session.configure", ["session": session, "actions": back])
            #expect(changed["resolved"]?.array?.map { $0["why"] == .null } == [true, false, true])
            let other: JSONValue = ["setOutput": ["output": "videoData", "format": "jpeg"]]
            let refusal = try client.refusal("session.configure", ["session": session, "actions": [other]])
            #expect(refusal?.reason == .formatUnsupported && refusal?.data["nearest"] == .null)
            // What nobody has named is made all the same, and says why it gets nothing.
            let plain = try client.call("session.create", ["inputs": inputs])
            #expect(plain["resolved"]?[0]?["why"] != .null)
            try await bus.stop()
        }

        @Test(arguments: [
            ("cam0", ["videoData", "movie"], "mic0", "audioData", "microphone", "audio"),
            ("mic0", ["audioData", "movie"], "cam0", "photo", "camera", "video"),
            ("mic0", ["audioData", "movie"], "cam0", "preview", "camera", "video"),
        ])
        func `an output without an input of its kind gets nothing, and says so`(
            _ input: String, _ outputs: [String], _ other: String, _ lost: String, _ missing: String, _ media: String
        ) async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let made = try client.call(
                "session.create", ["inputs": [.string(input), .string(other)], "outputs": JSONValue(outputs + [lost])])
            let session = made["session"] ?? .null
            func isTold(_ answer: JSONValue) -> Bool {
                let sentence = "\(lost) gets nothing: the session has no \(missing); add one with addInput."
                let entry = answer["resolved"]?.array?.first { $0["output"] == .string(lost) }
                return answer["explanation"]?.array?.contains(.string(sentence)) == true && entry?["device"] == .null
                    && entry?["why"]?.string?.contains("has no \(missing)") == true && entry?["topic"] == .null
                    && entry?["mediaType"] == .string(media) && entry?["type"] == .string(lost)
            }
            #expect(!isTold(made))
            // A device that goes leaves its outputs; what they come to is told before the start, and then.
            let removed = try client.call(
                "session.configure", ["session": session, "actions": [["removeInput": .string(other)]]])
            #expect(isTold(removed))
            let started = try client.call("session.start", ["session": session], within: 30)
            #expect(isTold(started) && isTold(started["state"] ?? .null) && started["state"]?["state"] == "running")
            let shown = try await bus.run("camerabus", ["session", "show", session.string ?? ""])
            #expect(shown.standardOutput.contains("\(lost): -; It gets nothing: the session has no \(missing)"))
            let back = try client.call(
                "session.configure", ["session": session, "actions": [["addInput": .string(other)]]], within: 30)
            #expect(!isTold(back) && back["resolved"]?.array?.contains { $0["device"] == .null } == false)
            try await bus.stop()
        }

        @Test func `an output without an input of its kind is not added`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            for (input, outputs, missing) in [
                ("cam0", ["audioData"], "microphone"), ("mic0", ["videoData", "preview", "photo"], "camera"),
            ] {
                let made = try client.call("session.create", ["inputs": [.string(input)], "outputs": ["movie"]])
                let session = made["session"] ?? .null
                for output in outputs {
                    let action: JSONValue = ["addOutput": .string(output)]
                    let can = try client.call("session.canAdd", ["session": session, "action": action])
                    #expect(can["can"] == false && can["reason"] == "cannotAddOutput")
                    #expect(can["why"]?.string == "the session has no \(missing); add one with addInput")
                    let refusal = try client.refusal("session.configure", ["session": session, "actions": [action]])
                    #expect(refusal?.reason == .cannotAddOutput)
                    let create = try client.refusal(
                        "session.create", ["inputs": [.string(input)], "outputs": [.string(output)]])
                    #expect(create?.reason == .cannotAddOutput)
                }
                // With the input that it needs, in whichever order, it is.
                let other: JSONValue = input == "cam0" ? "mic0" : "cam0"
                let both: JSONValue = [["addOutput": .string(outputs[0])], ["addInput": other]]
                try client.call("session.configure", ["session": session, "actions": both])
            }
            // What comes first is not known yet, and what nobody has named is made all the same.
            let empty = try client.call(
                "session.create", ["inputs": [], "outputs": ["videoData", "audioData", "movie"]])
            let told = empty["explanation"]?.array?.compactMap(\.string) ?? []
            #expect(told.map { $0.prefix { $0 != " " } } == ["videoData", "audioData", "movie"], "\(told)")
            let session = empty["session"] ?? .null
            let can = try client.call("session.canAdd", ["session": session, "action": ["addOutput": "photo"]])
            #expect(can["can"] == true)
            let started = try client.call("session.start", ["session": session])
            #expect(started["state"]?["explanation"]?.array?.count == 3 && started["resolved"]?.array?.count == 3)
            let plain = try client.call("session.create", ["inputs": ["mic0"]])
            #expect(plain["resolved"]?[0]?["output"] == "videoData" && plain["resolved"]?[0]?["device"] == .null)
            try await bus.stop()
        }
    }
}
