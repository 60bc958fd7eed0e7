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
    }
}
