import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Synchronization
import Testing

/// `camerabus photo`, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(5))) struct PhotoCommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func start(_ bus: FakeBus, _ arguments: [String], _ extra: [String: String] = [:]) throws -> RunningProgram
    {
        let environment = ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path, "TZ": "UTC"]
        return try RunningProgram(
            "camerabus", ["photo"] + arguments, environment: environment.merging(extra) { $1 }, scratch: scratch)
    }

    private func run(_ bus: FakeBus, _ arguments: String...) async throws -> ProgramResult {
        try await start(bus, arguments).end()
    }

    private func place(_ name: String) -> String { "\(scratch.path)/\(name)" }

    private func read(_ name: String) throws -> String {
        String(decoding: try File.read(place(name), limit: 100), as: UTF8.self)
    }

    /// What was asked for, without the hellos.
    private func asked(_ bus: FakeBus) -> [JSONValue] {
        bus.requests.filter { $0.method == "photo.capture" }.map(\.params)
    }

    /// A bus whose photos are files of a few letters: the camera and the number.
    private func bus(
        stored: Bool = true, refusing: @escaping @Sendable (Int) -> BusError? = { _ in nil }
    ) throws -> FakeBus {
        let count = Mutex(0)
        return try FakeBus { request, respond in
            guard request.method == "photo.capture" else { return false }
            let turn = count.withLock { count in
                count += 1
                return count
            }
            respond(refusing(turn).map { .error($0) } ?? Self.answer(request.params, turn, stored: stored))
            return true
        }
    }

    private static func answer(_ params: JSONValue, _ turn: Int, stored: Bool) -> FakeBus.Reply {
        let devices = params["devices"]?.array?.compactMap(\.string) ?? [params["device"]?.string ?? "cam7"]
        let settings = params["settings"]
        let shots = settings?["burst"]?.integer ?? Int64(settings?["bracket"]?["exposureBias"]?.array?.count ?? 1)
        let deliver = params["deliver"]?.array?.compactMap(\.string) ?? []
        let types = [settings?["format"]?.string ?? "jpeg"] + (settings?["raw"] == true ? ["dng"] : [])
        var (photos, files): ([JSONValue], [[UInt8]]) = ([], [])
        for device in devices {
            for (index, type) in (0..<shots).flatMap({ index in types.map { (index, $0) } }) {
                let file = Array("\(device) \(turn).\(index)\(type == "dng" ? " raw" : "")".utf8)
                var photo: [String: JSONValue] = [
                    "device": .string(device), "index": .integer(index), "fileType": .string(type), "width": 1280,
                    "height": 720, "bytes": JSONValue(file.count), "sequence": 1, "stream": "s", "settled": false,
                    "timestamp": [
                        "monotonic": 1, "source": "dequeue",
                        "realtime": .integer(1_800_000_000_123_000_000 + index * 33_000_000),
                    ],
                ]
                if deliver.contains("reply") {
                    photo["attachment"] = JSONValue(files.count)
                    files.append(file)
                }
                if deliver.contains("library") {
                    if stored {
                        photo["path"] = .string("/v/\(device)-\(index).jpg")
                    } else {
                        photo["error"] = ["message": "The disk is full.", "data": ["reason": "diskFull", "free": 1]]
                    }
                }
                photos.append(.object(photo))
            }
        }
        var result: [String: JSONValue] = [
            "uniqueID": settings?["uniqueID"] ?? "u", "resolved": ["devices": []],
            "expectedPhotoCount": JSONValue(photos.count), "photos": .array(photos),
            "attachments": .array(
                files.map { ["name": "a", "contentType": "image/jpeg", "bytes": JSONValue($0.count)] }),
        ]
        if devices.count > 1 { result["spread"] = 2_500_000 }
        return .result(.object(result), attachments: files)
    }

    @Test func `a photo is a file, whose name is printed`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0", "-o", place("a.jpg"), "--flash", "auto")
        #expect(result.status == 0 && result.standardOutput == "\(place("a.jpg"))\n", "\(result)")
        #expect(result.standardError == "1280x720, 8 B, 2027-01-15 08:00:00.123, not settled\n")
        #expect(try read("a.jpg") == "cam0 1.0" && scratch.contents().filter { $0.contains(".part") } == [])
        #expect(
            asked(bus) == [
                ["device": "cam0", "settings": ["flash": "auto", "format": "jpeg"], "deliver": ["reply"]]
            ])
    }

    @Test func `nothing is overwritten, and then no photo is taken`() async throws {
        let bus = try bus()
        try File.replace(place("a-2.jpg"), with: [1], mode: 0o600)
        let result = try await run(bus, "cam0", "-n", "3", "-o", place("a.jpg"))
        #expect(result.status == 1 && result.standardError.contains("a-2.jpg exists already; --force"), "\(result)")
        let lost = try await run(bus, "cam0", "-o", place("no/a.jpg"))
        #expect(lost.status == 1 && lost.standardError.contains("/no: No such file"), "\(lost)")
        #expect(asked(bus) == [])
        #expect(try await run(bus, "cam0", "-n", "3", "-o", place("a.jpg"), "--force").status == 0)
        #expect(try read("a-2.jpg") == "cam0 2.0")
    }

    @Test func `several cameras and a bracket have marks, and are one request`() async throws {
        let bus = try bus()
        let result = try await run(bus, "left", "right", "--bracket=-2,2", "-o", place("b.jpg"))
        let names = ["b-left-1.jpg", "b-left-2.jpg", "b-right-1.jpg", "b-right-2.jpg"]
        #expect(result.standardOutput == names.map { place($0) + "\n" }.joined(), "\(result)")
        #expect(try names.map(read) == ["left 1.0", "left 1.1", "right 1.0", "right 1.1"])
        #expect(result.standardError.hasSuffix("The photos were taken within 2.5 ms.\n"))
        #expect(asked(bus).map { $0["devices"] } == [["left", "right"]])
    }

    @Test func `a photo and its DNG are two files of one name`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0", "--format", "jpeg+dng", "-o", place("a.jpg"))
        #expect(result.standardOutput == "\(place("a.jpg"))\n\(place("a.dng"))\n", "\(result)")
        #expect(try read("a.jpg") == "cam0 1.0" && read("a.dng") == "cam0 1.0 raw")
        #expect(asked(bus).map { $0["settings"] } == [["format": "jpeg", "raw": true]])
        // The second's name alone is in the way, and is known before.
        try File.replace(place("b-2.dng"), with: [1], mode: 0o600)
        let there = try await run(bus, "cam0", "--format", "png+dng", "-n", "2", "-o", place("b"))
        #expect(there.status == 1 && there.standardError.contains("b-2.dng exists already; --force"), "\(there)")
        #expect(asked(bus).count == 1)
        let burst = try await run(bus, "cam0", "--format", "jpeg+dng", "--burst", "2", "-o", scratch.path + "/")
        let names = ["123", "156"].flatMap { time in
            ["jpg", "dng"].map { place("cam0-20270115-080000-\(time).\($0)") + "\n" }
        }
        #expect(burst.standardOutput == names.joined(), "\(burst)")
    }

    @Test func `a folder has names of the camera and the time`() async throws {
        let bus = try bus()
        #expect(try await run(bus, "cam0", "--burst", "2", "-o", scratch.path).status == 0)
        let names = ["cam0-20270115-080000-123.jpg", "cam0-20270115-080000-156.jpg"]
        #expect(try names.map(read) == ["cam0 1.0", "cam0 1.1"])
    }

    @Test func `a photo goes to standard output as it is`() async throws {
        let result = try await run(try bus(), "cam0", "-o", "-")
        #expect(result.status == 0 && result.standardOutput == "cam0 1.0")
    }

    @Test func `those of the library are told by their path there`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0", "--library")
        #expect(result.status == 0 && result.standardOutput == "/v/cam0-0.jpg\n", "\(result)")
        #expect(try await run(bus, "cam0", "--library", "-o", place("a.dng")).standardOutput == "\(place("a.dng"))\n")
        #expect(asked(bus).map { $0["deliver"] } == [["library"], ["reply", "library"]])
        #expect(asked(bus).map { $0["settings"]?["format"] } == [nil, "dng"])
        // What could not be stored there is had all the same.
        let full = try await run(try self.bus(stored: false), "cam0", "--library", "-o", place("c.jpg"))
        #expect(full.status == 1 && full.standardOutput == "\(place("c.jpg"))\n", "\(full)")
        #expect(full.standardError.contains("diskFull: The disk is full."))
    }

    @Test func `a time-lapse goes on after a photo that fails`() async throws {
        let busy = BusError(.deviceBusy, "Busy.", ["device": "cam0", "holder": ["name": "x", "pid": 1, "uid": 0]])
        let bus = try bus { $0 == 2 ? busy : nil }
        let result = try await run(bus, "cam0", "--count", "3", "--every", "0.01", "-o", place("l-%03d.jpg"))
        #expect(result.status == 1, "\(result)")
        #expect(result.standardOutput == "\(place("l-001.jpg"))\n\(place("l-002.jpg"))\n")
        #expect(try read("l-002.jpg") == "cam0 3.0")
        #expect(result.standardError.contains("deviceBusy: ") && result.standardError.contains("1 of 3 could not"))
        // The first one is no accident.
        let never = try self.bus { _ in busy }
        #expect(try await run(never, "cam0", "-n", "3", "-o", place("n.jpg")).status == 1)
        #expect(asked(never).count == 1)
    }

    @Test func `a time-lapse goes on after a file that can't be written`() async throws {
        let path = place("l-2.jpg")
        // Its name appears when the first one has been kept.
        let bus = try bus { turn in
            if turn == 2 { try? File.replace(path, with: [1], mode: 0o600) }
            return nil
        }
        let result = try await run(bus, "cam0", "--count", "3", "--every", "0.01", "-o", place("l-%d.jpg"))
        #expect(result.status == 1, "\(result)")
        #expect(result.standardOutput == "\(place("l-1.jpg"))\n\(place("l-3.jpg"))\n")
        #expect(result.standardError.contains("l-2.jpg exists already; --force replaces it. The series continues"))
        #expect(result.standardError.hasSuffix("1 of 3 could not be taken or not be stored.\n"), "\(result)")
        #expect(try File.read(path, limit: 10) == [1])
        #expect(try read("l-3.jpg") == "cam0 3.0")
    }

    @Test func `of a burst that can't be written it is told how much is lost`() async throws {
        let (one, two) = (place("b-2.jpg"), place("b-3.jpg"))
        let bus = try bus { _ in
            for path in [one, two] { try? File.replace(path, with: [1], mode: 0o600) }
            return nil
        }
        let result = try await run(bus, "cam0", "--burst", "4", "-o", place("b.jpg"))
        #expect(result.status == 1, "\(result)")
        #expect(result.standardOutput == "\(place("b-1.jpg"))\n\(place("b-4.jpg"))\n")
        #expect(result.standardError.contains("b-2.jpg exists already"))
        #expect(result.standardError.contains("2 of 4 photos could not be written."), "\(result)")
    }

    @Test func `programs get the answer, and the stages`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0", "-o", place("a.jpg"), "--json")
        let json = try JSONValue(parsing: result.standardOutput)
        #expect(json["uniqueID"] == "u" && json["photos"]?[0]?["file"]?.string == place("a.jpg"))
        #expect(result.standardError == "")
    }

    @Test func `what sets the camera is done under the lock that there is`() async throws {
        let bus = try bus()
        let lock = ["CAMERABUS_LOCK": "token"]
        for arguments in [["--bracket=0,1"], [], ["--high-resolution", "--lock", "other"]] {
            let result = try await start(bus, ["cam0", "--library"] + arguments, lock).end()
            #expect(result.status == 0, "\(result)")
        }
        #expect(asked(bus).map { $0["lock"] } == ["token", nil, "other"])
    }

    @Test func `refusals speak of options`() async throws {
        let bus = try bus { _ in .invalidParams("settings.highResolution", "is not for this camera") }
        let result = try await run(bus, "cam0", "--high-resolution", "-o", place("a.jpg"))
        #expect(result.status == 1)
        #expect(result.standardError == "invalidParams: --high-resolution is not for this camera.\n")
        let old = try FakeBus()
        #expect(try await run(old, "cam0").standardError.contains("This bus does not support that"))
    }

    @Test func `the name of a rig stands for its cameras`() async throws {
        let bus = try FakeBus { request, respond in
            switch request.method {
            case "bus.hello":
                respond(
                    .result([
                        "server": "CameraBus", "version": "0", "protocol": 1, "features": ["keys", "rigs"],
                        "you": ["uid": 0, "gid": 0, "pid": 1], "authorization": ["video": "authorized"],
                        "endpoints": ["command": "", "events": "", "media": [:]], "epoch": "e1", "sequence": 0,
                        "limits": ["requestBytes": 1_048_576],
                    ]))
            case "rig.list":
                respond(.result(["rigs": [["name": "stereo", "devices": [["id": "left"], ["id": "right"]]]]]))
            case "photo.capture":
                let devices: JSONValue = ["devices": ["left", "right"], "deliver": ["reply"]]
                respond(Self.answer(devices, 1, stored: true))
            default: return false
            }
            return true
        }
        for arguments in [["stereo"], ["--rig", "stereo"]] {
            let result = try await start(bus, arguments + ["-o", place("r.jpg"), "--force"]).end()
            #expect(result.standardOutput == "\(place("r-left.jpg"))\n\(place("r-right.jpg"))\n", "\(result)")
        }
        #expect(asked(bus).map { $0["rig"] } == ["stereo", "stereo"])
        let none = try await run(bus, "--rig", "mono")
        #expect(
            none.status == 1 && none.standardError.contains("rigNotFound: There is no rig 'mono'; known rigs: stereo."))
        #expect(try await run(bus, "stereo", "-o", "-").status == 2)
    }
}
