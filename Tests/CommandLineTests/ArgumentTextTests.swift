import ArgumentParser
import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

@testable import camerabus

@Suite struct ArgumentTextTests {
    @Test(
        arguments: [
            ("brightness=10", "brightness", 10), ("hue=-5", "hue", -5), ("mask=0xff", "mask", 255),
            ("white_balance_automatic=false", "white_balance_automatic", false), ("flip=true", "flip", true),
            ("pattern=Bars", "pattern", "Bars"), ("line=50 Hz", "line", "50 Hz"), ("reset", "reset", .null),
            ("text=\"10\"", "text", "10"), ("area=640,480", "area", [640, 480]), ("list=[1, 2]", "list", [1, 2]),
            ("text=", "text", ""), ("text=a=b", "text", "a=b"), ("text=1,b", "text", "1,b"),
            ("big=99999999999999999999", "big", "99999999999999999999"),
        ] as [(String, String, JSONValue)])
    func `assignments are read`(text: String, name: String, value: JSONValue) {
        #expect((try? ControlAssignment(reading: text)) == ControlAssignment(name: name, value: value))
    }

    @Test(arguments: ["", "=5", "a=\"", "a=[1"])
    func `broken assignments are refused`(text: String) {
        #expect(throws: ValidationError.self) { try ControlAssignment(reading: text) }
    }

    @Test(arguments: [10, -3, true, "Bars", "10", "true", "a,b", "1,2", [1, 2], ""] as [JSONValue])
    func `what get prints is what set reads`(value: JSONValue) {
        #expect(ControlAssignment.value(GetCommand.settable(value)) == value)
    }

    @Test func `a rectangle is four numbers`() throws {
        let bounds: JSONValue = ["x": -4, "y": 0, "width": 1936, "height": 1096]
        let control = CameraControlValueText(["name": "cropRectangle", "type": "rectangle", "bounds": bounds])
        #expect(control.range == "x,y,width,height within -4,0,1936,1096")
        let part: JSONValue = ["x": -2, "y": 4, "width": 640, "height": 480]
        #expect(ValueText.assigned(part) == "-2,4,640,480")
        let typed = try ControlAssignment(reading: "cropRectangle=\(ValueText.assigned(part))")
        #expect(try control.value(typed.value) == part && control.value([-2, 4, 640, 480]) == part)
        #expect(try control.value(part) == part)
        for wrong: JSONValue in ["1,2,3", "1,2,3,4,5", "1,2,3,x", "640x480", 3, [1, 2, 3], [1, 2, 3, "4"], .null] {
            let failure = #expect(throws: Failure.self) { try control.value(wrong) }
            #expect(failure?.description.contains("within -4,0,1936,1096") == true)
        }
    }

    @Test func `times are seconds or fractions of them`() throws {
        let control = CameraControlValueText(["name": "exposureDuration", "type": "number", "unit": "s"])
        #expect(try control.value(try ControlAssignment(reading: "exposureDuration=1/100").value) == 0.01)
        #expect(try control.value(0.01) == 0.01)
        for wrong: JSONValue in ["1/0", "1/", "/100", "1/2/3", "-1/100", "fast"] {
            #expect(throws: Failure.self) { try control.value(wrong) }
        }
        let position = CameraControlValueText(["name": "lensPosition", "type": "number"])
        #expect(throws: Failure.self) { try position.value("1/2") }
    }

    @Test func `formats are sizes or ids`() throws {
        for size in ["1280x720", "1280X720", "1280×720"] {
            #expect(try FormatArgument(reading: size) == .size(width: 1280, height: 720))
        }
        #expect(try FormatArgument(reading: "f3") == .id("f3"))
        for wrong in ["", "0x720", "1280x0", "70000x70000", "640", "640x", "4:3"] {
            #expect(throws: ValidationError.self) { try FormatArgument(reading: wrong) }
        }
        #expect(
            FormatArgument.size(width: 4, height: 2).json(pixelFormat: "YUYV")
                == ["width": 4, "height": 2, "pixelFormat": "YUYV"])
        #expect(FormatArgument.id("f3").json(pixelFormat: nil) == "f3")
    }

    @Test func `rates are numbers or fractions`() throws {
        #expect(try FrameRate(reading: "30").json == 30)
        #expect(try FrameRate(reading: "29.97").json == 29.97)
        #expect(try FrameRate(reading: "30000/1001").json == 29.97)
        #expect(try FrameRate(reading: "100/3").json == "100/3")
        for wrong in ["", "0", "-1", "nan", "inf", "30/0", "1/2/3", "fast"] {
            #expect(throws: ValidationError.self) { try FrameRate(reading: wrong) }
        }
        let error = #expect(throws: ValidationError.self) { try FrameRate(reading: "1/30") }
        #expect(error?.message.contains("30 for a frame duration") == true)
    }

    @Test func `names of files have their number`() throws {
        #expect(FileNamePattern(argument: "f-%05d.jpg")?.name(7) == "f-00007.jpg")
        #expect(FileNamePattern(argument: "f-%3d.jpg")?.name(7) == "f-  7.jpg")
        #expect(FileNamePattern(argument: "%d-%d%%")?.name(12) == "12-12%")
        #expect(FileNamePattern(argument: "%02d")?.name(123) == "123")
        let plain = try #require(FileNamePattern(argument: "latest.jpg"))
        #expect(plain.name(3) == "latest.jpg" && !plain.isSeries && !plain.isStandardOutput)
        #expect(FileNamePattern(argument: "-")?.isStandardOutput == true)
        #expect(plain.namesDevice == false)
        #expect(FileNamePattern(argument: "%s-%02d.jpg")?.name(7, device: "cam0") == "cam0-07.jpg")
        for wrong in ["", "f-%", "f-%x.jpg", "f-%5", "f-%99999d", "folder/"] {
            #expect(FileNamePattern(argument: wrong) == nil)
            #expect(throws: ValidationError.self) { try FileNamePattern(reading: wrong) }
        }
        do {
            _ = try Camerabus.command(["frames", "cam0", "-o", "h-%s.raw"])
            Issue.record("a name with %s was taken")
        } catch {
            #expect(Camerabus.fullMessage(for: error).contains("%s in the name of -o is only for --set"))
        }
    }

    @Test func `times are seconds`() {
        #expect(Seconds(argument: "0.25")?.duration == .milliseconds(250))
        for wrong in ["", "-1", "nan", "inf", "1e9", "1s"] { #expect(Seconds(argument: wrong) == nil) }
    }

    @Test func `topics get their end`() {
        #expect(WatchCommand.complete("state/device/cam1") == "state/device/cam1/")
        #expect(WatchCommand.complete("state/") == "state/")
        #expect(WatchCommand.complete("") == "")
    }

    @Test func `slow renditions have time`() {
        #expect(FramesCommand.patience(.seconds(10), "jpeg@0.1") == .seconds(30))
        #expect(FramesCommand.patience(.seconds(10), "jpeg:640x360@10") == .seconds(10))
        #expect(FramesCommand.patience(.seconds(10), "nonsense@@") == .seconds(10))
    }

    @Test func `the environment's lock goes where it can`() throws {
        #expect(try CallCommand.withLock("t", "device.set", ["device": "a"]) == ["device": "a", "lock": "t"])
        #expect(try CallCommand.withLock("t", "device.set", ["lock": "u"]) == ["lock": "u"])
        #expect(try CallCommand.withLock("t", "device.renew", [:]) == ["lock": "t"])
        #expect(try CallCommand.withLock("t", "device.get", [:]) == [:])
        #expect(try CallCommand.withLock(nil, "device.set", [:]) == [:])
    }

    @Test func `a file is replaced whole, and what is no file is written into`() throws {
        let scratch = try TemporaryDirectory()
        let (file, link, pipe) = ("\(scratch.path)/file", "\(scratch.path)/link", "\(scratch.path)/pipe")
        func write(_ text: String, to path: String) throws {
            try Array(text.utf8).withUnsafeBytes { try AtomicFile.write($0, to: path) }
        }
        func kind(_ path: String) -> UInt32 {
            var status = stat()
            return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0
        }
        try write("first", to: file)
        #expect(symlink(file, link) == 0 && mkfifo(pipe, 0o600) == 0)
        try write("second", to: link)
        #expect(try File.read(file, limit: 99) == Array("second".utf8) && kind(link) == S_IFLNK)
        let reader = try FileDescriptor(opening: pipe, O_RDONLY | O_NONBLOCK)
        try write("third", to: pipe)
        var bytes = [UInt8](repeating: 0, count: 9)
        #expect(read(reader.rawValue, &bytes, 9) == 5 && kind(pipe) == S_IFIFO)
        #expect(throws: SystemError.self) { try write("x", to: scratch.path) }
        #expect(scratch.contents().sorted() == ["file", "link", "pipe"])
    }

    @Test func `exit statuses are those of the help`() {
        #expect(ExitStatus.of(ClientError.refused(BusError(.deviceBusy, ""))) == 1)
        #expect(ExitStatus.of(ClientError.refused(BusError(.lockTimeout, ""))) == 4)
        #expect(ExitStatus.of(ValidationError("")) == 2)
        #expect(ExitStatus.of(ClientError.noBus(lookedAt: [])) == 3)
        #expect(ExitStatus.of(ClientError.connectionLost(method: "")) == 3)
        #expect(ExitStatus.of(ClientError.timedOut(method: "", milliseconds: 1)) == 4)
        #expect(ExitStatus.of(OutputClosed()) == 0)
    }

    @Test func `an output of a session is a word, or an object of JSON`() throws {
        func outputs(_ outputs: String...) throws -> JSONValue? {
            let command = try Camerabus.command(["session", "run", "cam0"] + outputs.flatMap { ["--output", $0] })
            return try #require(command as? SessionCommand.Run).wishes.params["outputs"]
        }
        #expect(
            try outputs("photo", "jpeg:preview", #"{"type": "photo", "preRoll": 500}"#)
                == ["photo", ["type": "preview", "format": "jpeg"], ["type": "photo", "preRoll": 500]])
        #expect(throws: (any Error).self) { _ = try outputs("{photo}") }
    }

    @Test func `what is behind the dashes is the command`() throws {
        let lock = try #require(
            try Camerabus.command(["lock", "a", "b", "--wait", "2", "--", "sh", "-c", "x", "--", "y"]) as? LockCommand)
        #expect(lock.devices == ["a", "b"])
        #expect(lock.wait == 2)
        #expect(lock.command == ["sh", "-c", "x", "--", "y"])
        #expect((try Camerabus.command(["lock", "a"]) as? LockCommand)?.command == [])
        #expect(throws: (any Error).self) { try Camerabus.command(["lock", "--", "true"]) }
    }

    @Test func `a signal that comes before the command is handed on to it`() async throws {
        let relay = SignalRelay()
        relay.take(SIGTERM, isFromTerminal: false)
        let child = try relay.start { try ChildProcess(program: "/bin/sleep", arguments: ["600"]) }
        var ending: ChildProcess.Ending?
        try await eventually {
            ending = child.reap()
            return ending != nil
        }
        #expect(ending == .signalled(SIGTERM))
    }
}
