import ArgumentParser
import BusClient
import BusProtocol
import JSON

/// Completes ids of sessions by asking the bus.
let sessionCompletion = CompletionKind.shellCommand("camerabus sessions --ids 2>/dev/null")
private let sessionHelp: ArgumentHelp = "The session's id ('camerabus sessions' lists the ids), or its beginning."

struct SessionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Creates, runs and changes sessions.",
        discussion: """
            A session is a lasting request for frames. Its inputs are devices. Its outputs (videoData, preview, \
            audioData, photo, movie) say what is needed, and its preset in which size. The bus sets the devices so \
            that every session gets what it needs, as far as possible. After an interruption (a device is unplugged, \
            in use or locked, or another session has priority) a session continues by itself.

            The preset inputPriority keeps the present format of the devices. 'jpeg:preview' is an output of the type \
            preview with JPEG pictures.

            EXAMPLES:
              camerabus session run cam0 --preset 1280x720
              camerabus session run stereo --preset 640x480   # all cameras of the rig 'stereo' (see 'camerabus rigs')
              id=$(camerabus session create cam0 --preset 640x480 --fps 15 --output jpeg:preview --start)
              camerabus session switch $id cam1
              camerabus session configure $id '{"addOutput": "photo"}' '{"preset": "photo"}'
              camerabus session run cam0 --mic mic0 --preset inputPriority --output '{"type": "photo", \
            "livePhotoCaptureEnabled": true}'
              camerabus session delete $id
            """,
        subcommands: [
            Create.self, Run.self, Show.self, Start.self, Stop.self, Switch.self, Configure.self, CanAdd.self,
            Delete.self,
        ])
}

extension SessionCommand {
    /// The properties of a new session.
    struct Wishes: ParsableArguments {
        @Argument(
            help: "The input devices, or rigs (default: the first device).",
            completion: rigCompletion)
        var devices: [String] = []

        @Option(
            help: ArgumentHelp(
                "high, medium, low, photo, 640x480, 1280x720, 1920x1080, … (default: high).", valueName: "preset"),
            completion: .list([
                "photo", "high", "medium", "low", "352x288", "640x480", "1280x720", "1920x1080", "3840x2160",
                "iFrame960x540", "iFrame1280x720", "inputPriority",
            ]))
        var preset: String?

        @Option(
            help: ArgumentHelp(
                "Instead of a preset: a size, such as 1280x720, or the id of a format.", valueName: "size"),
            transform: FormatArgument.init(reading:))
        var size: FormatArgument?

        @Option(
            parsing: .unconditional, help: ArgumentHelp("Frames per second: 30, 29.97, 30000/1001.", valueName: "rate"),
            transform: FrameRate.init(reading:))
        var fps: FrameRate?

        @Option(
            name: .customLong("mic"),
            help: ArgumentHelp("A microphone, in addition to the cameras.", valueName: "device"),
            completion: microphoneCompletion)
        var microphones: [String] = []

        @Option(
            help: ArgumentHelp(
                """
                An output: videoData, audioData, preview, photo or movie; with an encoding: jpeg:preview or \
                s16:audioData; or a JSON object with all of its settings (default: videoData).
                """,
                valueName: "output"))
        var output: [String] = []

        @Option(
            parsing: .unconditional,
            help: ArgumentHelp(
                "If sessions conflict, the one with the higher priority wins (default: 0; above 0: administrators).",
                valueName: "number"))
        var priority: Int?

        @Option(help: ArgumentHelp("The purpose, shown to everybody.", valueName: "text"))
        var name: String?

        func validate() throws {
            if preset != nil, size != nil { throw ValidationError("Give either --preset or --size.") }
            if devices.isEmpty, size != nil || fps != nil {
                throw ValidationError("--size and --fps need a device. Name one.")
            }
            for text in output where text.hasPrefix("{") && Self.output(text).object == nil {
                throw ValidationError(
                    #"\#(text) is not valid JSON. Write an output like {"type": "photo", "preRoll": 2000}"#)
            }
        }

        var params: [String: JSONValue] {
            var params: [String: JSONValue] = [:]
            if !devices.isEmpty || !microphones.isEmpty {
                let cameras = devices.map {
                    JSONValue.members([
                        "device": .string($0), "activeFormat": size?.json(pixelFormat: nil), "frameRate": fps?.json,
                    ])
                }
                params["inputs"] = .array(cameras + microphones.map { ["device": .string($0)] })
            }
            if !output.isEmpty { params["outputs"] = .array(output.map(Self.output)) }
            if let preset { params["preset"] = .string(preset) }
            if let priority { params["priority"] = JSONValue(priority) }
            if let name { params["name"] = .string(name) }
            return params
        }

        private static func output(_ text: String) -> JSONValue {
            if text.hasPrefix("{") { return (try? JSONValue(parsing: text)) ?? .null }
            let parts = text.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { return .string(text) }
            return ["type": .string(String(parts[1])), "format": .string(String(parts[0]))]
        }
    }

    /// Prints a session: its id or the JSON to standard output, details to standard error.
    static func tell(_ session: ClientSession, _ options: GlobalOptions) throws {
        if options.json { return try Output.json(json(session)) }
        try Output.line(session.id)
        Output.note(Table.printable("\(session.runState)"))
        let notes = SessionsCommand.notes(
            session.state, resolved: .array(session.resolved), hardwareCost: .number(session.hardwareCost),
            explanation: JSONValue(session.explanation))
        for line in notes { Output.note(Table.printable(line)) }
    }

    static func json(_ session: ClientSession) -> JSONValue {
        .members([
            "session": .string(session.id), "state": session.state, "resolved": .array(session.resolved),
            "hardwareCost": .number(session.hardwareCost), "explanation": JSONValue(session.explanation),
            "kept": session.isKept ? nil : false,
        ])
    }

    struct Create: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates a session that exists until it is deleted, and prints its id.",
            discussion: "With --json: the result of the method session.create, or of session.start.")

        @OptionGroup var options: GlobalOptions
        @OptionGroup var wishes: Wishes

        @Flag(help: "Start it.")
        var start = false

        func run(_ client: Client) async throws {
            // This process ends at once.
            let params = wishes.params.merging(["detached": true]) { _, detached in detached }
            var session = try await client.createSession(params, timeout: timeout)
            if start {
                do {
                    session = try await client.startSession(session.id, timeout: timeout)
                } catch {
                    // Nobody knows its id.
                    _ = try? await client.deleteSession(session.id, timeout: timeout)
                    throw error
                }
            }
            try SessionCommand.tell(session, options)
        }
    }

    struct Run: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates and runs a session until Ctrl-C, and prints its events.",
            discussion: """
                When its topics change, for example by 'camerabus session switch' or 'configure', the new topics are \
                printed; and what a camera delivers, when that changes.

                With --json: the result of the method session.start, then each event, {"resolved"} when the topics \
                change, and {"inputs"} when a camera delivers something else; one line each.
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var wishes: Wishes

        func run(_ client: Client) async throws {
            let made = try await client.createSession(wishes.params, timeout: timeout)
            let events = try await client.watch(
                ["event/session/\(made.id)/", "state/session/\(made.id)/"], timeout: timeout)
            let session = try await client.startSession(made.id, timeout: timeout)
            if options.json {
                try Output.json(SessionCommand.json(session))
            } else {
                try SessionCommand.tell(session, options)
            }
            var deliveries = Deliveries(session.resolved)
            var inputs = Deliveries(session.state["inputs"]?.array ?? [])
            for try await message in events {
                let event = message.json
                if message.topic.hasPrefix("state/") {
                    let (changed, news) = (
                        inputs.news(ofInputs: event["value"]), deliveries.news(in: event["value"])
                    )
                    if options.json {
                        if let changed { try Output.json(["inputs": .array(changed)]) }
                        if let news { try Output.json(["resolved": .array(news)]) }
                        continue
                    }
                    for line in (changed ?? []).compactMap(SessionsCommand.line(ofInput:)) {
                        try Output.line(Table.printable(line))
                    }
                    for delivery in news ?? [] { try Output.line(Table.printable(SessionsCommand.line(delivery))) }
                    continue
                }
                if options.json {
                    try Output.json(event)
                } else {
                    let reason = event["reason"]?.string ?? event["error"]?["reason"]?.string
                    let text = event["message"]?.string ?? event["error"]?["message"]?.string
                    let words = [event["event"]?.string, reason, text].compactMap { $0 }
                    try Output.line(Table.printable(words.joined(separator: ": ")))
                }
            }
        }
    }

    /// The topics of a session's outputs, or what its inputs deliver, as printed last.
    struct Deliveries {
        private var told: [JSONValue]

        init(_ told: [JSONValue]) { self.told = told }

        /// The new topics in a session's state. Nil while it gets nothing, as an event reports that.
        mutating func news(in state: JSONValue?) -> [JSONValue]? {
            guard let resolved = state?["resolved"]?.array, resolved != told,
                resolved.contains(where: { $0["device"] != .null })
            else { return nil }
            told = resolved
            return resolved
        }

        /// The inputs, if a camera delivers something else. Nil while none delivers anything.
        mutating func news(ofInputs state: JSONValue?) -> [JSONValue]? {
            guard let inputs = state?["inputs"]?.array else { return nil }
            let deliver = { (input: JSONValue) -> Bool in input["formatDescription"].map { !$0.isNull } ?? false }
            let (now, before) = (inputs.filter(deliver), told.filter(deliver))
            guard !now.isEmpty, now != before else { return nil }
            told = inputs
            return inputs
        }
    }

    struct Show: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows one session.", discussion: "With --json: the result of the method session.get.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            let answer = try await client.session(session, timeout: timeout)
            if options.json { return try Output.json(SessionCommand.json(answer)) }
            var value = answer.state.object ?? [:]
            value["resolved"] = .array(answer.resolved)
            value["hardwareCost"] = .number(answer.hardwareCost)
            value["explanation"] = JSONValue(answer.explanation)
            try SessionsCommand.table([.object(value)]).print()
        }
    }

    struct Start: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Starts a session.", discussion: "With --json: the result of the method session.start.")

        @OptionGroup var options: GlobalOptions
        @OptionGroup var lock: LockOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            try SessionCommand.tell(
                try await client.startSession(session, lock: lock.lock, timeout: timeout), options)
        }
    }

    struct Stop: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stops a session.", discussion: "With --json: the result of the method session.stop.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            let answer = try await client.stopSession(session, timeout: timeout)
            if options.json { try Output.json(SessionCommand.json(answer)) }
            PersistenceNote.note(isKept: answer.isKept)
        }
    }

    struct Switch: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Switches a session to another camera: from back to front, or from any other to back.",
            discussion: """
                'camerabus devices' shows the POSITION of cameras. The id of the new camera is printed. If the new \
                camera is not available, the session continues unchanged.

                With --json: {"active", "dropped"}; dropped are the options that the new camera does not support.

                EXAMPLES:
                  camerabus session switch $id
                  camerabus session switch $id cam1
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var lock: LockOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String
        @Argument(help: "The new camera (default: chosen by position).", completion: deviceCompletion) var device:
            String?
        @Option(help: ArgumentHelp("The new camera, as an option.", valueName: "device"), completion: deviceCompletion)
        var to: String?

        func validate() throws {
            if device != nil, to != nil { throw ValidationError("The camera is named twice.") }
        }

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            let (switched, dropped) = try await client.switchCamera(
                ofSession: session, to: device ?? to, lock: lock.lock, timeout: timeout)
            let cameras = switched.state["inputs"]?.array?.filter { $0["mediaType"] != "audio" }
            let active = cameras?.first?["device"] ?? .null
            if options.json { return try Output.json(["active": active, "dropped": .array(dropped)]) }
            try Output.line(ValueText.plain(active))
            for option in dropped {
                Output.note(
                    Table.printable("dropped: \(ValueText.plain(option["path"])): \(ValueText.plain(option["why"]))"))
            }
        }
    }

    struct Configure: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Changes a session. If one of the actions is not possible, nothing is changed.",
            discussion: """
                An action is a JSON object with one member:

                  addInput      a device's id, or {"device", "activeFormat", …}
                  setInput      {"device", "activeFormat", "frameRate", …}
                  removeInput   a device's id
                  addOutput     videoData, preview, audioData, photo, movie; or {"type", …}
                  setOutput     {"output": its id, "width", "height", "preRoll", …}
                  removeOutput  the id of an output ('camerabus session show' lists them)
                  preset        high, medium, low, photo, 1280x720, inputPriority, …
                  priority      -1000 to 1000: the session with the higher number wins; above 0: administrators
                  connection    {"output" or "input", "videoOrientation", …}

                'camerabus call bus.methods' has all members in the schema of session.configure. preRoll is in \
                milliseconds.

                With --json: the result of the method session.configure.

                EXAMPLES:
                  camerabus session configure $id '{"preset": "1280x720"}' '{"priority": 5}'
                  camerabus session configure $id '{"removeOutput": "preview"}'
                  camerabus session configure $id '{"setOutput": {"output": "videoData", "width": 320}}'
                  camerabus session configure $id '{"setOutput": {"output": "photo", "livePhotoCaptureEnabled": true, "preRoll": 2000}}'
                  camerabus session configure $id '{"connection": {"output": "preview", "videoOrientation": "portrait"}}'
                  camerabus session configure $id '{"connection": {"input": "cam0", "preferredVideoStabilizationMode": "auto"}}'
                  camerabus session configure $id '{"addInput": {"device": "mic0", "preferredDataSource": "front"}}' '{"addOutput": "audioData"}'
                """)

        @OptionGroup var options: GlobalOptions
        @OptionGroup var lock: LockOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String
        @Argument(help: "The actions, as JSON.", transform: SessionCommand.action) var actions: [JSONValue]

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            try SessionCommand.tell(
                try await client.configureSession(session, actions, lock: lock.lock, timeout: timeout), options)
        }
    }

    struct CanAdd: BusCommand {
        static let configuration = CommandConfiguration(
            commandName: "can-add",
            abstract: "Checks whether an action is possible. If not, prints why (exit status 1).",
            discussion: """
                An action is one of 'camerabus session configure', or {"switchCamera": DEVICE}; null means the camera \
                that 'switch' would choose.

                With --json: {"can", "why"}.

                EXAMPLES:
                  camerabus session can-add $id '{"addInput": "cam1"}'
                  camerabus session can-add $id '{"switchCamera": null}'
                """)

        @OptionGroup var options: GlobalOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String
        @Argument(help: "The action, as JSON.", transform: SessionCommand.action) var action: JSONValue

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            let why = try await client.whyNot(action, inSession: session, timeout: timeout)
            if options.json {
                try Output.json(["can": .bool(why == nil), "why": why.map(JSONValue.string) ?? .null])
            } else {
                try Output.line(Table.printable(why.map { "no: \($0)" } ?? "yes"))
            }
            if why != nil { throw ExitCode(ExitStatus.refused) }
        }
    }

    struct Delete: BusCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stops and deletes a session.",
            discussion: "With --json: {}, or {\"kept\": false} if this could not be written to the disk.")

        @OptionGroup var options: GlobalOptions
        @Argument(help: sessionHelp, completion: sessionCompletion) var session: String

        func run(_ client: Client) async throws {
            let session = try await ShortID.session(session, client, timeout)
            let isKept = try await client.deleteSession(session, timeout: timeout)
            if options.json { try Output.json(isKept ? [:] : ["kept": false]) }
            PersistenceNote.note(isKept: isKept)
        }
    }

    static func action(_ text: String) throws -> JSONValue {
        guard let json = try? JSONValue(parsing: text), json.object?.count == 1 else {
            throw ValidationError("an action is a JSON object with one member, such as '{\"preset\": \"high\"}'")
        }
        return json
    }
}
