import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct PhotoSettingsTests {
    @Test func whatIsAsUsualNeedNotBeSaid() throws {
        #expect(try PhotoSettings(json: [:]) == PhotoSettings())
        #expect(PhotoSettings().json == [:])
        #expect(try PhotoSettings(json: ["thumbnail": true]).thumbnail == PhotoThumbnail(maximumSide: 160, quality: 80))
        #expect(try PhotoSettings(json: ["thumbnail": false]).thumbnail == nil)
        #expect(try PhotoSettings(json: ["thumbnail": ["maxSize": 320]]).thumbnail?.maximumSide == 320)
    }

    @Test func allOfThemSurviveTheWire() throws {
        let settings = PhotoSettings(
            uniqueID: "Shot-1", format: .jpeg, withRaw: true, quality: 90, flash: .auto, redEyeReduction: true,
            stabilization: true, highResolution: true, orientation: .portrait, isMirrored: false, isTurned: true,
            thumbnail: PhotoThumbnail(maximumSide: 320, quality: 70), burst: 3, interval: 16_666_667)
        #expect(try PhotoSettings(json: JSONValue(parsing: settings.json.description)) == settings)
        #expect(settings.shotsPerDevice == 3 && settings.filesPerDevice == 6)
        let sized = PhotoSettings(maxDimensions: Dimensions(width: 1920, height: 1080))
        #expect(try PhotoSettings(json: JSONValue(parsing: sized.json.description)) == sized)
        #expect(sized.changesDevice && sized.changesPicture && sized.changesSize)
        for bracket in [PhotoBracket.exposureBias([-2, 0, 0.3]), .exposureDuration([8_000_000, 1_000_000_001])] {
            let settings = PhotoSettings(format: .dng, bracket: bracket)
            #expect(try PhotoSettings(json: JSONValue(parsing: settings.json.description)) == settings)
        }
    }

    @Test func aMomentThatIsOverSurvivesTheWire() throws {
        let settings = PhotoSettings(format: .jpeg, quality: 80, isTurned: true, ago: 500_250_000)
        #expect(settings.json["ago"] == 500.25 && !settings.changesDevice)
        #expect(try PhotoSettings(json: JSONValue(parsing: settings.json.description)) == settings)
        #expect(try PhotoSettings(json: ["ago": 1]).ago == 1_000_000)
        let order = PhotoOrder(job: "1", settings: settings, attaches: true, moment: 81_234_567_890_123)
        #expect(try PhotoOrder(json: JSONValue(parsing: order.json.description)) == order)
    }

    @Test func durationsMayBeFractions() throws {
        let settings = try PhotoSettings(json: ["bracket": ["exposureDuration": ["1/125", 0.5, 2]]])
        #expect(settings.bracket == .exposureDuration([8_000_000, 500_000_000, 2_000_000_000]))
        #expect(settings.shotsPerDevice == 3 && settings.changesDevice)
    }

    private static let wrong: [(settings: String, path: String)] = [
        (#"{"uniqueID":"a/b"}"#, "uniqueID"),
        (#"{"uniqueID":""}"#, "uniqueID"),
        (#"{"uniqueID":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#, "uniqueID"),
        (#"{"format":"heic"}"#, "format"),
        (#"{"quality":0}"#, "quality"),
        (#"{"format":"dng","quality":90}"#, "quality"),
        (#"{"format":"dng","turned":true}"#, "turned"),
        (#"{"format":"dng","raw":true}"#, "raw"),
        (#"{"raw":"dng"}"#, "raw"),
        (#"{"maxPhotoDimensions":[640,480]}"#, "maxPhotoDimensions"),
        (#"{"maxPhotoDimensions":{"width":0,"height":480}}"#, "maxPhotoDimensions.width"),
        (#"{"maxPhotoDimensions":{"width":640,"height":480,"depth":1}}"#, "maxPhotoDimensions.depth"),
        (#"{"maxPhotoDimensions":{"width":640,"height":480},"highResolution":true}"#, "maxPhotoDimensions"),
        (#"{"maxPhotoDimensions":{"width":640,"height":480},"ago":500}"#, "maxPhotoDimensions"),
        (#"{"maxPhotoDimensions":{"width":640,"height":480},"livePhoto":true}"#, "maxPhotoDimensions"),
        (#"{"ago":500,"raw":true}"#, "raw"),
        (#"{"livePhoto":true,"raw":true}"#, "raw"),
        (#"{"flash":true}"#, "flash"),
        (#"{"redEyeReduction":true}"#, "redEyeReduction"),
        (#"{"burst":101}"#, "burst"),
        (#"{"burst":2,"bracket":{"exposureBias":[0,1]}}"#, "burst"),
        (#"{"interval":100}"#, "interval"),
        (#"{"burst":2,"interval":-1}"#, "interval"),
        (#"{"burst":100,"interval":1000}"#, "interval"),
        (#"{"thumbnail":{"maxSize":15}}"#, "thumbnail.maxSize"),
        (#"{"thumbnail":{"size":100}}"#, "thumbnail.size"),
        (#"{"thumbnail":160}"#, "thumbnail"),
        (#"{"bracket":{}}"#, "bracket"),
        (#"{"bracket":{"exposureBias":[1]}}"#, "bracket.exposureBias"),
        (#"{"bracket":{"exposureBias":[0,21]}}"#, "bracket.exposureBias[1]"),
        (#"{"bracket":{"exposureDuration":["1/125","fast"]}}"#, "bracket.exposureDuration[1]"),
        (#"{"bracket":{"exposureDuration":[0,1]}}"#, "bracket.exposureDuration[0]"),
        (#"{"bracket":{"exposureBias":[0,1],"exposureDuration":[1,2]}}"#, "bracket"),
        (#"{"mirrored":1}"#, "mirrored"),
        (#"{"orientation":"up"}"#, "orientation"),
        (#"{"flashMode":"on"}"#, "flashMode"),
        (#"{"ago":0}"#, "ago"),
        (#"{"ago":10001}"#, "ago"),
        (#"{"ago":"500"}"#, "ago"),
        (#"{"ago":500,"flash":"on"}"#, "flash"),
        (#"{"ago":500,"bracket":{"exposureBias":[0,1]}}"#, "bracket"),
        (#"{"ago":500,"burst":2}"#, "burst"),
        (#"{"ago":500,"highResolution":true}"#, "highResolution"),
        (#"{"ago":500,"stabilization":true}"#, "stabilization"),
        (#"{"ago":500,"format":"dng"}"#, "format"),
        (#"{"livePhoto":1}"#, "livePhoto"),
        (#"{"livePhoto":true,"bracket":{"exposureBias":[0,1]}}"#, "bracket"),
        (#"{"livePhoto":true,"burst":2}"#, "burst"),
        (#"{"livePhoto":true,"ago":500}"#, "ago"),
        (#"{"livePhoto":true,"highResolution":true}"#, "highResolution"),
        (#"{"livePhoto":true,"format":"dng"}"#, "format"),
        (#"{"livePhoto":true,"orientation":"portrait"}"#, "orientation"),
        (#"{"livePhoto":true,"mirrored":false}"#, "mirrored"),
    ]

    @Test(arguments: wrong) func whatIsWrongIsTold(settings: String, path: String) throws {
        let json = try JSONValue(parsing: settings)
        let error = #expect(throws: BusError.self) { try PhotoSettings(json: json) }
        #expect(error?.reason == .invalidParams, "\(settings)")
        #expect(error?.data["path"] == .string("settings.\(path)"), "\(error?.message ?? "")")
    }

    @Test func onlySomeChangeTheCamera() {
        #expect(!PhotoSettings(redEyeReduction: true, thumbnail: PhotoThumbnail(), burst: 9).changesDevice)
        #expect(PhotoSettings(flash: .auto).changesDevice && PhotoSettings(highResolution: true).changesDevice)
    }
}

@Suite struct PhotoWireTests {
    private let order = PhotoOrder(
        job: "Door-1", settings: PhotoSettings(format: .dng, bracket: .exposureBias([-1, 1])), attaches: true,
        place: PhotoPlace(
            library: "/var/lib/library", directory: "/var/lib/library/2026-11-22", stem: "door", ids: ["a1", "b2"],
            owner: LockHolder(uid: 1000, gid: 1000, pid: 42, startTime: 7, name: "probe"), session: "s", rig: "r",
            device: PhotoPlace.Device(id: "cam0", uniqueID: "virtual:0", name: "Virtual Camera 0"), minFree: 1 << 28))

    @Test func anOrderSurvivesTheWire() throws {
        #expect(try PhotoOrder(json: JSONValue(parsing: order.json.description)) == order)
        let plain = PhotoOrder(job: "1", settings: PhotoSettings(), attaches: false)
        #expect(try PhotoOrder(json: plain.json) == plain)
        var live = plain
        live.identifier = LivePhotoIdentifier(digits: String(repeating: "a1", count: 16))
        #expect(try PhotoOrder(json: live.json) == live && live.identifier != nil && !live.isHeldBack)
        live.place = order.place
        #expect(live.isHeldBack && !order.isHeldBack)
        var wrong = live.json.object ?? [:]
        wrong["livePhoto"] = "a1"
        #expect(throws: BusError.self) { try PhotoOrder(json: .object(wrong)) }
        var outside = order
        outside.place?.directory = "/var/lib/elsewhere"
        #expect(throws: BusError.self) { try PhotoOrder(json: outside.json) }
    }

    @Test func ordersAndReportsOfPhotosSurviveTheWire() throws {
        let movie = LivePhotoMovie(
            identifier: try #require(LivePhotoIdentifier(digits: String(repeating: "a1", count: 16))),
            dimensions: Dimensions(width: 640, height: 480), bytes: 20, duration: 2_999_999_999,
            photoDisplayTime: 1_500_000_001)
        for action in [
            WorkerOrder.Action.preparePhoto(order), .takePhoto(job: "Door-1", at: 12), .takePhoto(job: "Door-1"),
            .dropPhoto(job: "Door-1"), .keepFromLibrary(job: "Door-1"),
            .publishPhoto(job: "Door-1", movie: movie, file: "/run/camerabus/live/a.mov"),
        ] {
            let order = WorkerOrder(number: 3, fence: 7, action: action)
            #expect(WorkerOrder(json: try JSONValue(parsing: order.json.description)) == order)
        }
        for stage in PhotoProgress.allCases {
            let report = WorkerReport.photo(job: "Door-1", stage: stage, members: ["photo": 1])
            #expect(WorkerReport(json: try JSONValue(parsing: report.json.description)) == report)
        }
        #expect(WorkerReport(json: ["report": "photo", "job": "a", "stage": "later"]) == nil)
    }

    @Test func whatHasComeOfItSurvivesTheWire() throws {
        let resolution = PhotoResolution(
            device: "cam0", format: .jpeg, dimensions: Dimensions(width: 1280, height: 720), pixelFormat: .yuyv,
            flash: true, thumbnail: Dimensions(width: 160, height: 90), bracket: .exposureBias([-1, 1]), photos: 2)
        #expect(try PhotoResolution(json: JSONValue(parsing: resolution.json.description)) == resolution)
        var photo = PhotoResult(
            device: "cam0", index: 1, fileType: .dng, dimensions: Dimensions(width: 1280, height: 720), bytes: 99,
            timestamp: .init(monotonic: 5, realtime: 6, source: "startOfExposure"), sequence: 8, stream: "s",
            exposure: .init(duration: 10_000_000, iso: 100, bias: -1), flashFired: false, isSettled: false,
            thumbnail: Dimensions(width: 160, height: 90), path: "/a/b.dng", id: "x", attachment: 0)
        #expect(try PhotoResult(json: JSONValue(parsing: photo.json.description)) == photo)
        photo.error = BusError(.unauthorized, "No.", ["status": "denied", "needed": "libraryAdd"])
        #expect(try PhotoResult(json: photo.json).error == photo.error)
        let schema = try #require(Schema.definitions["Photo"])
        #expect(schema.validate(photo.json) == nil)
        #expect(Schema.definitions["PhotoResolution"]?.validate(resolution.json) == nil)
    }
}

@Suite struct PhotoNameTests {
    private func stem(_ name: String?, device: String? = nil, format: PhotoFileType? = nil) throws(BusError) -> String {
        try PhotoName.stem(name: name, time: "142530", uniqueID: "5d20", device: device, format: format)
    }

    @Test func filesHaveTheirTimeAndIDInTheirName() throws {
        #expect(try stem(nil) == "photo-142530-5d20")
        #expect(try stem(nil, device: "cam0") == "photo-142530-5d20-cam0")
        #expect(try stem("door.jpg", device: "cam0", format: .jpeg) == "door-cam0")
        #expect(try stem("Door.DNG") == "Door")
        #expect(try stem("a.b") == "a.b")
    }

    @Test(arguments: ["", ".a", "../a", "a/b", "a\nb", ".jpg", String(repeating: "n", count: 129)])
    func whatIsNoNameIsRefused(name: String) {
        let error = #expect(throws: BusError.self) { try stem(name) }
        #expect(error?.data["path"] == "name")
    }

    @Test func anEndingGoesWithTheFormat() throws {
        #expect(throws: BusError.self) { try stem("door.dng", format: .jpeg) }
        #expect(throws: BusError.self) { try stem("door.jpeg", format: .dng) }
        // A name of either serves for both.
        func pair(_ name: String) throws(BusError) -> String {
            try PhotoName.stem(name: name, time: "", uniqueID: "a", device: nil, format: .jpeg, withRaw: true)
        }
        #expect(try pair("door.dng") == "door" && pair("door.jpg") == "door")
        #expect(throws: BusError.self) { try pair("door.png") }
    }

    @Test func noTwoFilesOfARequestHaveOneName() {
        #expect(PhotoName.file(stem: "door", index: 0, count: 1, fileType: .jpeg) == "door.jpg")
        #expect(PhotoName.file(stem: "door", index: 7, count: 100, fileType: .dng) == "door-07.dng")
        #expect(PhotoName.file(stem: "door", index: 1, count: 3, fileType: .jpeg, attempt: 2) == "door-1_2.jpg")
        #expect(
            PhotoName.movie(stem: "door") == "door.mov" && PhotoName.movie(stem: "door", attempt: 3) == "door_3.mov")
        var names: Set<String> = []
        for attempt in 1...3 {
            for index in 0..<100 {
                names.insert(PhotoName.file(stem: "d", index: index, count: 100, fileType: .jpeg, attempt: attempt))
            }
        }
        #expect(names.count == 300)
    }
}

@Suite struct ExifOrientationTests {
    /// A picture of 3 × 2, turned clockwise and then mirrored, against what EXIF says of its numbers.
    @Test(arguments: CaptureOrientation.allCases, [false, true])
    func theNumberTurnsThePictureAsItIsWanted(orientation: CaptureOrientation, isMirrored: Bool) {
        let (width, height) = (3, 2)
        let number = ExifOrientation.number(orientation, isMirrored: isMirrored)
        for x in 0..<width {
            for y in 0..<height {
                var (wanted, size) = ((x: x, y: y), (width: width, height: height))
                for _ in 0..<(orientation.rotationAngle / 90) {
                    wanted = (x: size.height - 1 - wanted.y, y: wanted.x)
                    size = (width: size.height, height: size.width)
                }
                if isMirrored { wanted.x = size.width - 1 - wanted.x }
                let (right, bottom) = (width - 1 - x, height - 1 - y)
                // Where the file's first line and first column lie: EXIF 2.3, tag 0x0112.
                let shown =
                    switch number {
                    case 1: (x: x, y: y)
                    case 2: (x: right, y: y)
                    case 3: (x: right, y: bottom)
                    case 4: (x: x, y: bottom)
                    case 5: (x: y, y: x)
                    case 6: (x: bottom, y: x)
                    case 7: (x: bottom, y: right)
                    default: (x: y, y: right)
                    }
                #expect(shown.x == wanted.x && shown.y == wanted.y, "\(orientation) \(isMirrored): \(number)")
            }
        }
    }
}

@Suite struct PhotoIDTableTests {
    @Test func anIDIsGoodOnce() throws {
        var ledger = PhotoIDTable()
        try ledger.use("a")
        let error = #expect(throws: BusError.self) { try ledger.use("a") }
        #expect(error?.reason == .photoSettingsReused && error?.data["uniqueID"] == "a")
        try ledger.use("A")
    }

    @Test func theOldestIsForgottenFirst() throws {
        var ledger = PhotoIDTable(maximum: 3)
        for id in ["a", "b", "c", "d"] { try ledger.use(id) }
        #expect(ledger.count == 3 && !ledger.contains("a"))
        #expect(throws: BusError.self) { try ledger.use("b") }
        try ledger.use("a")
        #expect(!ledger.contains("b") && ledger.contains("c"))
        for number in 0..<1000 { try ledger.use("n\(number)") }
        #expect(ledger.count == 3 && ledger.contains("n999") && ledger.contains("n997"))
    }
}
