import ArgumentParser
import BusClient
import BusProtocol
import JSON
import Testing

@testable import camerabus

/// What people type, and what they are told.
@Suite struct ErrorTextTests {
    private func text(_ reason: BusError.Reason, _ message: String, _ data: [String: JSONValue], _ command: String)
        -> String
    {
        ErrorText(command: command).text(.refused(BusError(reason, message, data)))
    }

    @Test func `a refusal says whose something is, or else who may do it`() {
        let data: [String: JSONValue] = ["status": "denied", "needed": "admin"]
        let owner = "The rig 'pair' belongs to uid 1000; only that user and administrators may change it."
        #expect(text(.unauthorized, owner, data.merging(["owner": 1000]) { $1 }, "rigs").hasSuffix(owner))
        let method = text(.unauthorized, "fault.inject is for administrators: root.", data, "fault")
        #expect(method.contains("Only administrators may do that") && !method.contains("fault.inject"))
    }

    @Test func `refusals speak of commands, not of the protocol`() {
        let holder: JSONValue = ["name": "probe", "pid": 42, "uid": 1000]
        let busy: [String: JSONValue] = ["device": "cam0", "holder": holder, "queue": 0]
        let told = text(.deviceBusy, "device.lock with wait queues for it.", busy, "set")
        #expect(
            told.hasPrefix("deviceBusy: cam0 is locked by probe (pid 42, uid 1000). Use 'camerabus lock cam0 --wait"))
        #expect(text(.deviceBusy, "", busy, "format").contains(". Use --wait SECONDS to wait for it"))
        #expect(text(.lockTimeout, "", busy, "lock").contains("cam0 is still locked by probe"))
        let lost = text(.lockLost, "take a new one (device.lock)", ["fence": 3], "format")
        #expect(lost.contains("'camerabus lock DEVICE -- COMMAND'") && !lost.contains("device.lock"))
        let control = text(
            .controlUnsupported, "cam0 has no control foo; device.controls lists its controls.",
            ["device": "cam0", "supported": []], "set")
        #expect(
            control == "controlUnsupported: cam0 has no control foo; 'camerabus controls cam0' lists its controls.")
        let format = BusError.invalidParams("changes[0].activeFormat", "must be one of a device's formats")
        #expect(
            ErrorText(command: "format").text(.refused(format))
                == "invalidParams: The format: must be one of a device's formats.")
        let gain = BusError.invalidParams("changes[0].controls.gain", "must be an integer")
        let raw = BusError(
            .photoFormatUnavailable, "no dng can be made of YUYV; so and so", ["available": ["photo": ["jpeg"]]])
        #expect(
            ErrorText(command: "photo", device: "pics").text(.refused(raw)).contains(
                "'camerabus format pics --pixel RG12'"))
        let packed = BusError(
            .photoFormatUnavailable, "no jpeg can be made of pRAA; so and so",
            ["available": ["photo": [], "raw": ["pRAA"]]])
        #expect(
            ErrorText(command: "photo", device: "pics").text(.refused(packed)).contains(
                "no jpeg can be made of pRAA; --format dng takes it raw; 'camerabus format pics --pixel YUYV'"))
        #expect(ErrorText(command: "set").text(.refused(gain)) == "invalidParams: gain must be an integer.")
        let torch = ClientError.refused(
            BusError(.controlUnsupported, "This camera has no torchMode; device.controls lists its controls.", [:]))
        #expect(
            ErrorText(command: "set", device: "pics").text(torch)
                == "controlUnsupported: This camera has no torchMode; 'camerabus controls pics' lists its controls.")
        #expect(
            text(.sessionNotFound, "There is no session 's'; session.list answers those that there are.", [:], "")
                == "sessionNotFound: There is no session 's'; 'camerabus sessions' lists them.")
        #expect(
            ErrorText(command: "devices").text(.timedOut(method: "device.list", milliseconds: 2500)).contains(" 2.5 s"))
    }

    @Test func `a moment that nobody holds is told with the command that has it held`() {
        let data: [String: JSONValue] = ["device": "cam0", "ago": 500, "preRoll": 0, "oldest": .null]
        #expect(
            text(
                .momentNotHeld, "No session that runs holds pictures of cam0; session.configure and so on.", data,
                "photo")
                == "momentNotHeld: No session that runs holds pictures of cam0; camerabus session run cam0 --preset "
                + #"inputPriority --output '{"type": "photo", "preRoll": 2000}' runs one that does."#)
    }

    @Test func `refusals of live photos speak of --live`() {
        func told(_ path: String, _ why: String) -> String {
            ErrorText(command: "photo").text(.refused(.invalidParams(path, why)))
        }
        let off = told("settings.livePhoto", "is not available while livePhotoCaptureEnabled is false")
        #expect(
            off.hasPrefix("invalidParams: --live is not available while livePhotoCaptureEnabled is false; camerabus "))
        #expect(off.contains(#"'{"setOutput": {"output": "photo", "livePhotoCaptureEnabled": true}}'"#))
        #expect(
            told("outputs[0].addOutput.livePhotoCaptureEnabled", "can't be true: a has no format")
                == "invalidParams: --live is not possible: a has no format.")
        #expect(told("settings.livePhoto", "needs a session") == "invalidParams: --live needs a session.")
    }

    @Test(arguments: [
        ("", "priority", "priority: "), ("fault", "steps[0].at", "script[0].at: "), ("", "", ""),
        ("", "actions[1].setOutput.width", "actions[1].setOutput.width: "),
    ])
    func `what is wrong is told with what it is wrong with`(command: String, path: String, subject: String) {
        let error = ClientError.refused(.invalidParams(path, "must be a number"))
        #expect(ErrorText(command: command).text(error) == "invalidParams: \(subject)must be a number.")
    }

    @Test(arguments: [
        ("record", "maxFileSize", "--max-size: must be more"), ("record", "path", "-o: must be more"),
        ("take", "exportPreset", "--preset: must be more"), ("take", "maxDuration", "--max: must be more"),
        ("format", "path", "path: must be more"),
    ])
    func `a refusal names the option that was typed`(command: String, path: String, told: String) {
        let error = ClientError.refused(.invalidParams(path, "must be more"))
        #expect(ErrorText(command: command).text(error) == "invalidParams: \(told).")
    }

    @Test func `a movie in the way is told with the command that ends it`() {
        #expect(
            text(
                .recordingInProgress, "You make a movie of cam0 already, m1; movie.stop ends it.", ["movie": "m1"],
                "record")
                == "recordingInProgress: You make a movie of cam0 already, m1; 'camerabus movies stop m1' ends it.")
        #expect(
            text(.recordingInProgress, "The take t1 is being recorded; pause it first.", ["take": "t1"], "take")
                .hasSuffix("; 'camerabus take pause t1' ends the segment."))
        #expect(
            text(
                .notRecording, "There is no movie 'x', or it has ended; movie.list lists them.", ["movie": "x"],
                "movies"
            )
            .hasSuffix("; 'camerabus movies' lists the movies that are being recorded."))
        #expect(
            text(.recordingInProgress, "The take t1 is being finished.", [:], "take").hasSuffix("is being finished."))
        #expect(TakeCommand.Finish.typedName == "take" && RecordCommand.typedName == "record")
    }

    @Test func `what asks for permission can be typed as it is told`() throws {
        let told = PermissionText.meaning("notDetermined", uid: 1000, "audio")
        let words = try #require(told.split(separator: "'").dropFirst().first).split(separator: " ").map(String.init)
        #expect(words.first == "camerabus")
        #expect(throws: Never.self) { try Camerabus.command(Array(words.dropFirst())) }
    }

    @Test func `what keeps a device that gave frames is told once, and waited for`() {
        var waiting = FrameStall("cam0")
        let gone = ClientError.refused(BusError(.deviceDisconnected, "cam0 is disconnected.", [:]))
        let wrong = ClientError.refused(BusError(.formatUnsupported, "", [:]))
        #expect(waiting.note(of: gone, hasGiven: false) == nil)
        #expect(waiting.note(of: wrong, hasGiven: true) == nil)
        #expect(waiting.note(of: ClientError.silent("nothing"), hasGiven: true) == nil)
        let note = "deviceDisconnected: cam0 is disconnected. Waiting for cam0."
        #expect(!waiting.hasLasted(.zero))
        #expect(waiting.note(of: gone, hasGiven: true, now: 1_000_000_000) == note)
        #expect(waiting.note(of: gone, hasGiven: true, now: 3_000_000_000) == "")
        #expect(
            !waiting.hasLasted(.seconds(3), now: 3_999_999_999) && waiting.hasLasted(.seconds(3), now: 4_000_000_000))
        waiting.end()
        #expect(!waiting.hasLasted(.zero))
        #expect(waiting.note(of: gone, hasGiven: true) == note)
    }

    @Test func `what a session gets is told when it is something else`() {
        var deliveries = SessionCommand.Deliveries([["topic": "a/"]])
        #expect(deliveries.news(in: ["resolved": [["topic": "a/"]]]) == nil)
        #expect(deliveries.news(in: ["resolved": [["output": "audioData", "device": .null]]]) == nil)
        #expect(deliveries.news(in: ["resolved": []]) == nil && deliveries.news(in: .null) == nil)
        #expect(deliveries.news(in: ["resolved": [["topic": "b/"]]]) == [["topic": "b/"]])
        #expect(deliveries.news(in: ["resolved": [["topic": "b/"]]]) == nil)
    }

    @Test func `what a camera delivers is told when it is something else`() {
        func input(_ range: String?) -> JSONValue {
            ["device": "cam0", "formatDescription": range.map { ["colorRange": .string($0)] } ?? .null]
        }
        var inputs = SessionCommand.Deliveries([input("video"), ["device": "mic0", "formatDescription": .null]])
        #expect(inputs.news(ofInputs: ["inputs": [input("video")]]) == nil)
        #expect(inputs.news(ofInputs: ["inputs": [input(nil)]]) == nil && inputs.news(ofInputs: .null) == nil)
        #expect(inputs.news(ofInputs: ["inputs": [input("full")]]) == [input("full")])
        #expect(inputs.news(ofInputs: ["inputs": [input("full")]]) == nil)
    }

    @Test func `an output without a device says why`() {
        let delivery: JSONValue = ["output": "audioData", "device": .null, "topic": .null, "why": "It gets nothing."]
        #expect(SessionsCommand.line(delivery) == "audioData: -; It gets nothing.")
    }

    @Test func `what a camera states is one line`() {
        let stated: JSONValue = [
            "pixelFormat": "YUYV", "width": 720, "height": 576, "orientation": 90, "mirrored": true,
            "colorPrimaries": "bt470bg", "yCbCrMatrix": "smpte170m", "colorRange": "video",
            "pixelAspectRatio": "64:45", "cleanAperture": ["x": 8, "y": 0, "width": 704, "height": 576],
            "bitsPerComponent": 8, "frameDuration": "1/25",
        ]
        #expect(
            SessionsCommand.line(ofInput: ["device": "cam0", "formatDescription": stated])
                == "cam0 delivers YUYV 720x576, 25 frames/s, primaries bt470bg, matrix smpte170m, range video, "
                + "pixels 64:45, 8 bits, clean 704x576+8+0, turn by 90 to be upright, mirrored")
        #expect(SessionsCommand.line(ofInput: ["device": "mic0", "formatDescription": .null]) == nil)
    }

    @Test func `help has no runs of blanks within a line`() {
        func check(_ command: any ParsableCommand.Type) {
            let configuration = command.configuration
            for line in configuration.discussion.split(separator: "\n") {
                let text = line.drop { $0 == " " }
                // What is that long is no row of a table.
                #expect(text.count < 120 || !text.contains("   "), "\(command): \(text)")
            }
            configuration.subcommands.forEach(check)
        }
        check(Camerabus.self)
    }

    @Test func `who calls methods reads of methods`() {
        let message = "Lock cam0 first (device.lock)."
        #expect(text(.lockRequired, message, [:], "call") == "lockRequired: \(message)")
        #expect(
            text(.methodNotFound, "There is no method 'x'; bus.methods lists.", [:], "call").contains(
                "call bus.methods"))
    }

    @Test func `what is adjusted is told in units of people`() {
        let why: JSONValue = "So it is."
        #expect(
            Adjustments.line(["path": "changes[0].frameRate", "asked": 22.5, "given": "1/25", "why": why])
                == "frame rate: 25 frames/s instead of 22.5: So it is.")
        #expect(
            Adjustments.line(["path": "changes[0].frameRate", "asked": "1001/30000", "given": "1/30", "why": why])
                == "frame rate: 30 frames/s instead of 29.97: So it is.")
        let given: JSONValue = ["id": "f3", "pixelFormat": "GREY", "width": 1000, "height": 1000]
        #expect(
            Adjustments.line(
                [
                    "path": "changes[0].activeFormat", "asked": ["width": 999, "height": 999], "given": given,
                    "why": why,
                ])
                == "format: GREY 1000x1000 instead of 999x999: So it is.")
        #expect(
            Adjustments.line(["path": "controls.gain", "asked": 200, "given": 100, "why": why])
                == "gain: 100 instead of 200: So it is.")
    }

    @Test func `options before the command go behind it`() {
        func mended(_ words: String) -> String {
            ArgumentCorrection.globalOptionsBehindCommand(words.split(separator: " ").map(String.init)).joined(
                separator: " ")
        }
        #expect(mended("--json devices") == "devices --json")
        #expect(mended("--runtime-dir /x --timeout=2 get cam0 gain") == "get --runtime-dir /x --timeout=2 cam0 gain")
        for same in ["devices --json", "--help", "--json", "--json --help", "---completion set -- positional@1 1 0"] {
            #expect(mended(same) == same)
        }
    }

    @Test func `advice is given where it is known what was meant`() {
        func advice(_ words: String) -> String? {
            ArgumentCorrection.advice(words.split(separator: " ").map(String.init))
        }
        #expect(advice("lock a b sh -c x")?.hasSuffix(": camerabus lock a b -- sh -c x") == true)
        #expect(advice("lock a --note t ls -l")?.hasSuffix(": camerabus lock a --note t -- ls -l") == true)
        for none in [
            "lock", "lock -c", "lock a -c", "lock a -- sh -c", "lock a --wait=1 b", "set", "set a -5 b", "devices -5",
        ] {
            #expect(advice(none) == nil, "\(none)")
        }
        #expect(advice("--json")?.hasPrefix("The command is missing") == true && advice("--nonsense") == nil)
        #expect(advice("set a gain -5")?.hasSuffix(": gain=-5") == true)
        #expect(advice("set a x=1 gain -0.5")?.hasSuffix(": gain=-0.5") == true)
        #expect(advice("frames a b jpeg -n 2") != nil && advice("frames a jpeg --nonsense") == nil)
        #expect(advice("frames a jpeg --format x") == nil && advice("frames a b jpeg -o - --shared --json -n2") != nil)
    }

    @Test func `an option that there is not is told for what it is, whatever stands behind it`() {
        func told(_ words: String) -> String? {
            do {
                _ = try Camerabus.command(words.split(separator: " ").map(String.init))
                return nil
            } catch {
                return (error as? Failure)?.description ?? Camerabus.message(for: error)
            }
        }
        for (words, option) in [
            ("frames cam0 --limit 3", "--limit"), ("frames cam0 --number=0 --limti=3", "--limti"),
            ("take make cam0 --duratoin 3", "--duratoin"),
            ("take cam0 --duratoin 3", "--duratoin"), ("lock cam0 --lease 0 --nosuch", "--nosuch"),
            ("frames cam0 -q 3", "-q"),
            ("sound mic0 --limit 3", "--limit"), ("frames cam0 --numbr 3", "--numbr"),
        ] {
            #expect(told(words)?.contains("Unknown option '\(option)'") == true, "\(words): \(told(words) ?? "")")
        }
        #expect(told("frames cam0 --numbr 3")?.contains("Did you mean '--number'?") == true)
        // What is wrong with a known one is still told.
        #expect(told("frames cam0 --number -3")?.contains("--number takes a number greater than 0") == true)
        #expect(told("frames cam0 -n 0 -o -")?.contains("--number takes a number greater than 0") == true)
        #expect(told("frames cam0 nonsense")?.contains("is not a rendition") == true)
    }

    @Test func `a command that there is not is told, with the one that may be meant`() {
        func told(_ words: String) -> String? {
            ArgumentCorrection.unknownCommand(
                words.split(separator: " ").map(String.init), of: ["frames", "formats", "format", "top"])
        }
        #expect(told("fames cam0")?.contains("no command 'fames'. Did you mean 'frames'?") == true)
        #expect(told("foramt")?.contains("'format'?") == true && told("hepl")?.contains("'help'?") == true)
        #expect(told("help nope")?.hasPrefix("There is no command 'nope'. 'camerabus") == true)
        for fine in ["", "frames", "help", "help top", "--help", "--version", "--nonsense"] {
            #expect(told(fine) == nil, "\(fine)")
        }
        #expect(throws: Failure.self) { try Camerabus.command(["help", "nope"]) }
        #expect(throws: Never.self) { try Camerabus.command(["help", "frames"]) }
    }

    @Test func `what can't be a device's name is told with the names that there are`() {
        #expect(
            DeviceArgumentCheck.refusal("no device", ["cam0", "cam1"]).hasSuffix(
                "'no device' is not a device id; known ids: cam0, cam1."))
        #expect(DeviceArgumentCheck.refusal("CAM0", ["cam0"]).hasSuffix("Did you mean 'cam0'?"))
        #expect(DeviceArgumentCheck.refusal("x/", []).hasSuffix("; there are no devices."))
    }

    @Test func `pairs without their sign are seen`() throws {
        func pair(_ words: String...) throws -> String? {
            SetCommand.pair(try words.map { try ControlAssignment(reading: $0) })
        }
        #expect(try pair("gain", "10") == "gain=10")
        #expect(try pair("a=1", "flip", "on") == "flip=on")
        #expect(try pair("reset", "other") == nil)
        #expect(try pair("gain=1", "10") == nil)
    }

    @Test func `pixel formats are found whatever their case`() {
        #expect(FormatCommand.code("mjpg", of: ["YUYV", "MJPG", "MJPG"]) == "MJPG")
        #expect(FormatCommand.code("pBAA", of: ["PBAA", "pBAA"]) == "pBAA")
        #expect(FormatCommand.code("pbaa", of: ["PBAA", "pBAA"]) == nil)
        #expect(FormatCommand.code("NV12", of: ["YUYV"]) == nil)
    }

    private func value(_ type: String, _ typed: JSONValue) throws -> JSONValue {
        let control: JSONValue = [
            "name": "c", "type": .string(type), "minimum": -4, "maximum": 4, "step": 2, "value": 1,
            "menu": [["index": 0, "name": "Off"], ["index": 1, "name": "On"]],
        ]
        return try ControlValueText(control).value(typed)
    }

    @Test func `what is typed fits the control's type`() throws {
        for yes in [true, "yes", "ON", "True", 1] as [JSONValue] { #expect(try value("bool", yes) == true) }
        for no in [false, "no", "off", 0] as [JSONValue] { #expect(try value("bool", no) == false) }
        #expect(try value("menu", "On") == "On")
        #expect(try value("menu", true) == "true")
        #expect(try value("int", 3) == 3)
        #expect(try value("button", .null) == .null)
        #expect(try value("u8", [1, 2]) == [1, 2])
        for (type, wrong) in [
            ("int", "1.5"), ("int", true), ("int", .null), ("bool", "perhaps"), ("bool", 2), ("menu", .null),
            ("bool", .null), ("button", 1),
        ] as [(String, JSONValue)] {
            #expect(throws: Failure.self, "\(type) \(wrong)") { try value(type, wrong) }
        }
        do {
            _ = try value("int", "1.5")
        } catch let failure as Failure {
            #expect(
                failure.description
                    == "c can't be '1.5'; it takes whole numbers from -4 to 4 in steps of 2. The current value is 1.")
            #expect(failure.status == 2)
        }
    }

    @Test func `state is news once`() {
        var freshness = RepeatedStateFilter()
        func news(_ topic: String, _ epoch: String, _ sequence: Int64, _ value: JSONValue = 1) -> Bool {
            freshness.isNews(topic: topic, ["epoch": .string(epoch), "sequence": .integer(sequence), "value": value])
        }
        #expect(news("state/bus/", "a", 5))
        #expect(!news("state/bus/", "a", 5) && !news("state/bus/", "a", 4))
        #expect(news("state/lock/x/", "a", 5) && news("state/bus/", "a", 6))
        #expect(news("state/bus/", "b", 1) && !news("state/bus/", "b", 1))
        #expect(news("event/lock/x/", "b", 1) && news("event/lock/x/", "b", 1))
        #expect(news("state/lock/x/", "b", 9, .null) && news("state/lock/x/", "b", 10))
        let beat = freshness.isNews(topic: "heartbeat/", ["epoch": "b"])
        #expect(beat)
    }

    @Test func `topics are known by their parts`() {
        for known in ["", "state/", "state/device/", "state/device/cam0/", "event/lock/x/", "event/bus/", "heartbeat/"]
        {
            #expect(WatchCommand.isKnown(known), "\(known)")
        }
        for unknown in ["nonsense/", "state/devices/", "state/device/cam0/x/", "cam0/", "frame/cam0/"] {
            #expect(!WatchCommand.isKnown(unknown), "\(unknown)")
        }
    }

    @Test func `help is broken at blanks, below its own text`() {
        let text = """
            One two three four five

              -n, --number <count>    End after so many frames (default: never).
              3  no bus to talk to

            EXAMPLES:
              camerabus frames cam0 jpeg:640x360@10 -n 5 -o 'f-%02d.jpg'

            averyveryverylongwordthatdoesnotfit in a line
            """
        #expect(
            HelpText.wrapped(text, columns: 40).split(separator: "\n", omittingEmptySubsequences: false) == [
                "One two three four five", "", "  -n, --number <count>    End after so",
                "                          many frames",
                "                          (default:", "                          never).", "  3  no bus to talk to",
                "",
                "EXAMPLES:", "  camerabus frames cam0 jpeg:640x360@10 -n 5 -o 'f-%02d.jpg'", "",
                "averyveryverylongwordthatdoesnotfit in a", "line",
            ])
        #expect(HelpText.wrapped("averylongword and", columns: 5) == "averylongword\nand")
    }
}
