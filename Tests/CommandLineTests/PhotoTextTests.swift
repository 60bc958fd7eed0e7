import ArgumentParser
import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

@testable import camerabus

/// What the command line makes of photos.
@Suite struct PhotoTextTests {
    private typealias Extent = PhotoFileNames.Extent

    private func path(
        _ output: String?, _ extent: PhotoFileNames.Extent = .init(), device: String = "cam0", number: Int = 1,
        fileType: String = "jpeg", folders: Set<String> = []
    ) throws -> String {
        try PhotoFileNames(output, isFolder: { folders.contains($0) }).path(
            of: .init(device: device, number: number, realtime: 1_000_000_123_456_789, fileType: fileType), extent)
    }

    @Test func `several photos have marks before the ending of a name`() throws {
        #expect(try path("a.jpg") == "a.jpg")
        #expect(try path("v.d/a", Extent(hasSeveralDevices: true)) == "v.d/a-cam0.jpg")
        #expect(try path("a.jpg", Extent(count: 3), number: 2) == "a-2.jpg")
        #expect(try path("a.jpg", Extent(hasSeveralDevices: true, count: 100), number: 7) == "a-cam0-007.jpg")
        // Nobody knows how many there will be.
        #expect(try path("a.jpg", Extent(count: nil), number: 7) == "a-00007.jpg")
        #expect(try path("100%%.jpg", Extent(count: 2)) == "100%-1.jpg")
    }

    @Test func `a pattern has the camera and the number where it says`() throws {
        #expect(try path("%s/%04d.dng", Extent(hasSeveralDevices: true, count: nil), number: 12) == "cam0/0012.dng")
        let places = try PhotoFileNames("%d.jpg")
        #expect(places.flaw(Extent(count: nil)) == nil && places.flaw(Extent(hasSeveralDevices: true)) != nil)
        #expect(try PhotoFileNames("%s.jpg").flaw(Extent(hasSeveralDevices: true, count: 2)) != nil)
        #expect(throws: (any Error).self) { try PhotoFileNames("50%.jpg") }
        for name in ["a.webp", "out/b-%d.BMP", "c.mov"] {
            #expect(throws: (any Error).self) { try PhotoFileNames(name) }
        }
        #expect(try PhotoFileNames("a.mov.d/b").fileType == nil)
        #expect(try PhotoFileNames("a.png").fileType == "png" && PhotoFileNames("out/b-%d.TIF").fileType == "tiff")
    }

    @Test func `a folder has names made in it, of the camera and the time`() throws {
        let name = "cam0-\(PhotoFileNames.time(1_000_000_123_456_789))"
        #expect(name.wholeMatch(of: /cam0-19700\d{3}-\d{6}-123/) != nil, "\(name)")
        #expect(try path(nil, Extent(hasSeveralDevices: true, count: 9), number: 4) == "\(name).jpg")
        #expect(try path("v/", fileType: "dng") == "v/\(name).dng")
        #expect(try path("v", folders: ["v"]) == "v/\(name).jpg")
    }

    @Test func `standard output takes one photo`() throws {
        let places = try PhotoFileNames("-")
        #expect(places.isStandardOutput && places.flaw(Extent()) == nil)
        #expect(places.flaw(Extent(count: 2)) != nil && places.flaw(Extent(hasSeveralDevices: true)) != nil)
        #expect(places.flaw(Extent(count: nil)) != nil)
    }

    @Test func `an ending says the format`() throws {
        for (name, type) in [("a.JPG", "jpeg"), ("a.jpeg", "jpeg"), ("%d.dng", "dng"), ("a.b", nil), ("-", nil)] {
            #expect(try PhotoFileNames(name).fileType == type, "\(name)")
        }
    }

    @Test func `a name without an ending gets the photo's, and what is no file none`() throws {
        #expect(try path("a") == "a.jpg")
        #expect(try path("a", fileType: "dng") == "a.dng")
        #expect(try path("v/a.b", Extent(count: 2)) == "v/a.b-1.jpg")
        #expect(try path("%s-%d") == "cam0-1.jpg")
        #expect(try path("a.JPG") == "a.JPG")
        #expect(try path(".hidden") == ".hidden.jpg")
        for name in ["/dev/stdout", "pipe.png"] {
            let places = try PhotoFileNames(name, isFolder: { _ in false }, isSpecial: { $0 == name })
            let photo = PhotoFileNames.Photo(device: "cam0", number: 1, realtime: 0, fileType: "jpeg")
            #expect(places.path(of: photo, Extent()) == name)
        }
    }

    @Test func `names that are too long are found before a photo is taken`() throws {
        let folder = try TemporaryDirectory()
        let long = String(repeating: "n", count: 251)
        #expect(throws: Failure.self) { try PhotoFileNames.check("\(folder.path)/\(long).jpg") }
        #expect(throws: Failure.self) { try PhotoFileNames.check("\(folder.path)/no/a.jpg") }
        try PhotoFileNames.check("\(folder.path)/\(String(long.prefix(200))).jpg")
    }

    @Test(arguments: [
        ["a", "-o", "a.avi"], ["a", "-o", "v/a.jpg"], ["a", "-o", "a.MP3"], ["a", "-o", "a.mp4", "--type", "mkv"],
    ])
    func `a movie of another ending is refused as a photo is`(arguments: [String]) throws {
        #expect(throws: (any Error).self) { _ = try Camerabus.command(["record"] + arguments) }
        _ = try Camerabus.command(["record", "a", "-o", "a.b"])
    }

    @Test func `exposures are lists of numbers`() {
        #expect(ExposureBiases(argument: "-2,0,+2")?.values == [-2, 0, 2])
        #expect(ExposureDurations(argument: "1/125,0.5")?.values == ["1/125", 0.5])
        for wrong in ["", "1", "1,", "1,x", "1,2,", "1 2", Array(repeating: "1", count: 17).joined(separator: ",")] {
            #expect(ExposureBiases(argument: wrong) == nil, "\(wrong)")
            #expect(ExposureDurations(argument: wrong) == nil, "\(wrong)")
        }
        #expect(ExposureBiases(argument: "0,21") == nil && ExposureBiases(argument: "0,nan") == nil)
        for wrong in ["1/0,1", "0,1", "-1,1", "1/2/3,1", "1/-2,1"] {
            #expect(ExposureDurations(argument: wrong) == nil, "\(wrong)")
        }
    }

    @Test func `a list that is none says what is one`() {
        let error = #expect(throws: ValidationError.self) { try ExposureDurations.read("1/30") }
        #expect(error?.message.contains("2 to 16 times") == true)
        #expect(throws: ValidationError.self) { try ExposureBiases.read("1") }
    }

    private func command(_ arguments: String...) throws -> PhotoCommand {
        let command = try Camerabus.command(["photo"] + arguments)
        return try #require(command as? PhotoCommand)
    }

    @Test func `options become settings`() throws {
        let plain = try command("cam0")
        #expect(plain.making.settings(fileType: nil) == [:] && !plain.making.changesDevice && plain.series.total == 1)
        let settings = try command(
            "cam0", "--format", "jpeg", "--quality", "80", "--flash", "auto", "--red-eye-reduction", "--stabilization",
            "--high-resolution", "--thumbnail", "--orientation", "portrait", "--mirrored", "--turned", "--bracket",
            "-2,0,2"
        ).making.settings(fileType: nil)
        #expect(
            settings == [
                "format": "jpeg", "quality": 80, "flash": "auto", "redEyeReduction": true, "stabilization": true,
                "highResolution": true, "thumbnail": true, "orientation": "portrait", "mirrored": true, "turned": true,
                "bracket": ["exposureBias": [.number(-2), .number(0), .number(2)]],
            ])
        let both = try command("cam0", "--format", "jpeg+dng", "-o", "a.jpg").making
        #expect(both.settings(fileType: "jpeg") == ["format": "jpeg", "raw": true] && both.withRaw)
        let sized = try command("cam0", "--size", "1920x1080").making
        #expect(sized.settings(fileType: nil) == ["maxPhotoDimensions": ["width": 1920, "height": 1080]])
        #expect(sized.changesDevice)
        let past = try command("cam0", "--ago", "500")
        #expect(past.making.settings(fileType: nil) == ["ago": 500])
        let live = try command("cam0", "--live", "--mic", "mic0", "--flash", "auto", "-n", "3", "-o", "a.jpg")
        #expect(live.making.settings(fileType: "jpeg") == ["livePhoto": true, "flash": "auto", "format": "jpeg"])
        _ = try command("--session", "s", "cam0", "--live", "--library")
        let burst = try command("cam0", "--burst", "5", "--interval", "200", "--thumbnail-size", "320", "-o", "a.dng")
        #expect(
            burst.making.settings(fileType: "dng") == [
                "format": "dng", "burst": 5, "interval": 200, "thumbnail": ["maxSize": 320],
            ])
        #expect(burst.extent(ofDevices: 1) == Extent(count: 5))
        #expect(try command("a", "b", "-n", "3", "--bracket=0,1").extent(ofDevices: 2).count == 6)
        #expect(try command("a", "--every", "5").series.total == nil)
        let durations = try command("a", "--bracket-durations=1/125,0.5").making
        #expect(durations.settings(fileType: nil)["bracket"] == ["exposureDuration": ["1/125", 0.5]])
        #expect(durations.changesDevice && durations.shots == 2)
    }

    @Test(arguments: [
        [], ["a", "a"], ["--rig", "r", "a"], ["--rig", "r", "--session", "s"], ["--session", "s", "a", "b"],
        ["a", "-o", ""], ["a", "-o", "-", "--json"], ["a", "-o", "-", "--burst", "2"], ["a", "b", "-o", "-"],
        ["a", "-o", "-", "--every", "1"], ["a", "b", "-o", "%d.jpg"], ["a", "--burst", "2", "-o", "%s.jpg"],
        ["a", "--format", "dng", "-o", "a.jpg"], ["a", "--force", "--library"], ["a", "--format", "webp"],
        ["a", "--format", "dng+jpeg"], ["a", "--format", "jpeg+dng", "-o", "-"],
        ["a", "--format", "jpeg+dng", "-o", "a.dng"], ["a", "--format", "jpeg+dng", "--live"],
        ["a", "--format", "jpeg+dng", "--ago", "500"], ["a", "--size", "f3"], ["a", "--size", "1920"],
        ["a", "--size", "640x480", "--high-resolution"], ["a", "--size", "640x480", "--live"],
        ["a", "--quality", "0"], ["a", "--flash", "yes"], ["a", "--orientation", "up"], ["a", "--burst", "101"],
        ["a", "--burst", "8", "--interval", "10000"], ["a", "--bracket-durations=1/30"], ["a", "--interval", "5"],
        ["a", "--burst", "2", "--bracket=0,1"], ["a", "--bracket=1"],
        ["a", "--ago", "0"], ["a", "--ago", "500", "--burst", "2"], ["a", "--ago", "500", "--flash", "on"],
        ["a", "--ago", "500", "--format", "dng"],
        ["a", "--ago", "500", "--stabilization"], ["a", "--ago", "500", "-n", "3"],
        ["--session", "s", "--live", "--orientation", "portrait"], ["--session", "s", "--live", "--mirrored"],
        ["a", "--mic", "m"], ["a", "b", "--live"], ["--rig", "r", "--live"], ["a", "--live", "--burst", "2"],
        ["a", "--live", "--bracket=0,1"], ["a", "--live", "--ago", "500"], ["a", "--live", "--high-resolution"],
        ["a", "--live", "--format", "dng"], ["a", "--live", "-o", "a.dng"], ["a", "--live", "-o", "-"],
        ["a", "--live", "-o", "a.mov"], ["--session", "s", "--live", "--mic", "m"],
        ["a", "--thumbnail-size", "8"], ["a", "--count", "0"], ["a", "--every", "0"], ["a", "--red-eye-reduction"],
    ])
    func `what contradicts itself is refused before anybody is asked`(arguments: [String]) {
        #expect(throws: (any Error).self) { _ = try Camerabus.command(["photo"] + arguments) }
    }

    @Test(arguments: [
        (["--live", "--bracket=0,1"], "--bracket can't be used with --live, "),
        (["--live", "--high-resolution"], "--high-resolution can't be used with --live, "),
        (["--live", "--ago", "500"], "--ago can't be used with --live, "),
        (["--live", "--format", "dng"], "--format dng can't be used with --live, "),
        (["--live", "-o", "a.mov"], "-o takes the name of the picture (.jpg)"),
        (["--ago", "500", "--flash", "on"], "--flash can't be used with --ago, "),
    ])
    func `a refusal names the option that is in the way`(arguments: [String], told: String) {
        let error = #expect(throws: (any Error).self) { _ = try Camerabus.command(["photo", "a"] + arguments) }
        #expect(error.map { Camerabus.message(for: $0).contains(told) } == true, "\(String(describing: error))")
    }

    @Test func `a time-lapse that is too fast says so once`() {
        #expect(PhotoText.behind(0, of: 5) == nil)
        #expect(
            PhotoText.behind(4, of: 5)
                == "4 of 5 photos were late: the camera or this machine is too slow for this rate.")
    }

    @Test func `a stage stands in a line`() {
        func line(_ name: String, _ json: JSONValue) -> String {
            PhotoText.line(PhotoStage(uniqueID: "u", name: name, json: json))
        }
        #expect(
            line("willBeginCapture", ["devices": ["a", "b"], "expectedPhotoCount": 2])
                == "willBeginCapture a b (2 photos)")
        #expect(line("didCapturePhoto", [:]) == "didCapturePhoto")
        #expect(
            line("didFinishProcessingPhoto", ["photo": ["device": "a", "index": 2]]) == "didFinishProcessingPhoto a 3")
        #expect(line("didFinishRecordingLivePhotoMovie", ["duration": 3]) == "didFinishRecordingLivePhotoMovie 3 s")
        #expect(
            line("didFinishProcessingLivePhotoToMovieFile", ["duration": 2.9, "photoDisplayTime": 1.4])
                == "didFinishProcessingLivePhotoToMovieFile 2.9 s, the photo at 1.4 s")
        #expect(line("didFinishCapture", ["error": .null]) == "didFinishCapture")
        let error: JSONValue = ["code": -32000, "message": "", "data": ["reason": "diskFull"]]
        #expect(line("didFinishCapture", ["error": error]) == "didFinishCapture: diskFull")
        #expect(PhotoText.duration(0.008) == "1/125 s" && PhotoText.duration(0.5) == "0.5 s")
        #expect(PhotoText.spread(.microseconds(1500)) == "The photos were taken within 1.5 ms.")
    }

    @Test func `what is adjusted is told in the units in which it was asked`() {
        func text(_ name: String, _ asked: Double, _ given: Double) -> String {
            PhotoText.adjustment([
                "device": "cam0", "path": .string("settings.bracket.\(name)[1]"), "asked": .number(asked),
                "given": .number(given), "why": "So it is.",
            ])
        }
        #expect(
            text("exposureBias", -9, -2) == "adjusted: cam0's exposure 2 is -2 EV instead of -9 EV. So it is.")
        #expect(
            text("exposureDuration", 0.000001, 0.001)
                == "adjusted: cam0's exposure 2 is 1/1000 s instead of 1/1000000 s. So it is.")
    }

    @Test func `what came later than asked is told`() {
        #expect(PhotoText.late([], of: 3) == nil)
        let text = PhotoText.late([.milliseconds(400), .milliseconds(1100)], of: 100)
        #expect(text?.hasPrefix("2 of 100 photos were late, by at most 1.1 s:") == true, "\(text ?? "")")
    }

    @Test func `who waits is told for whom`() {
        let owner: JSONValue = ["uid": 1000, "gid": 1000, "pid": 7, "name": "probe"]
        let state: JSONValue = ["readiness": "waitingForCapture", "waiting": 1, "owner": owner]
        #expect(
            PhotoText.before("cam1", state, own: 8)
                == "cam1 is taking photos for probe (pid 7, uid 1000). Yours wait in the queue.")
        #expect(PhotoText.before("cam1", state, own: 7) == nil)
        #expect(PhotoText.before("cam1", ["readiness": "ready", "waiting": 0], own: 7) == nil)
        #expect(PhotoText.before("cam1", nil, own: 7) == nil)
    }

    @Test func `a file is stored whole, and takes no other's place unless told to`() throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/a"
        func store(_ bytes: [UInt8], replaces: Bool) throws {
            try bytes.withUnsafeBytes { try AtomicFile.store($0, to: path, replaces: replaces) }
        }
        try store([1, 2, 3], replaces: false)
        #expect(throws: SystemError.self) { try store([4], replaces: false) }
        #expect(try File.read(path, limit: 10) == [1, 2, 3])
        try store([4], replaces: true)
        #expect(try File.read(path, limit: 10) == [4])
        #expect(folder.contents() == ["a"])
    }
}
