import BusProtocol
import CaptureCore
import Testing

/// What is decided for a device that several want something of, and how it is told.
@Suite struct ArbiterTests {
    private let formats = [
        format("f0", .yuyv, 640, 480, 30, 15), format("f1", .yuyv, 1280, 720, 10),
        format("f2", .motionJPEG, 640, 480, 60, 30), format("f3", .motionJPEG, 1280, 720, 30),
        format("f4", .motionJPEG, 1920, 1080, 30, 15), format("f5", .h264, 1920, 1080, 30, 15),
        format("f6", .grey, 1920, 1080, 60), format("f7", .yuyv, 800, 600, 30),
    ]
    private let vga = Dimensions(width: 640, height: 480)
    private let hd = Dimensions(width: 1280, height: 720)
    private let fullHD = Dimensions(width: 1920, height: 1080)

    private func session(
        _ name: String, _ wish: CaptureDemand.Wish, priority: Int = 0, since: Instant = 0
    ) -> CaptureDemand {
        CaptureDemand(CaptureParty(.session, id: name, name: name), priority: priority, since: since, wish: wish)
    }

    private func subscriber(_ name: String, _ rendition: String, since: Instant = 0) throws -> CaptureDemand {
        CaptureDemand(
            CaptureParty(.subscriber, id: name, name: name), since: since,
            wish: .rendition(try Rendition(parsing: rendition)))
    }

    private func setting(_ id: String, rate: Int) -> StreamSetting? {
        formats.first { $0.id == id }.map {
            StreamSetting(
                formatID: id, format: FormatSelection(pixelFormat: $0.pixelFormat, dimensions: $0.dimensions),
                frameDuration: FrameDuration(framesPerSecond: rate))
        }
    }

    private func decide(
        _ demands: [CaptureDemand], current: StreamSetting? = nil, isStreaming: Bool = true, mayLower: Bool = false,
        lock: CaptureParty? = nil
    ) -> ArbiterDecision {
        Arbiter.decide(
            device: "front", formats: formats, current: current, isStreaming: isStreaming, mayLower: mayLower,
            demands: demands, lock: lock)
    }

    private func wish(_ id: String, _ durations: FrameDurationBounds? = nil) -> CaptureDemand.Wish {
        let selection =
            setting(id, rate: 1)?.format ?? FormatSelection(pixelFormat: .yuyv, dimensions: vga)
        return .format(selection, id: id, frameDurations: durations)
    }

    // MARK: Several from one stream

    @Test func twoAreServedFromOneStream() throws {
        let decision = decide([
            session("recorder", .size(fullHD, rate: duration(1, 30))),
            session("preview", .size(vga, rate: duration(1, 15)), since: 1),
        ])
        #expect(decision.setting == setting("f4", rate: 30))
        #expect(decision.isChange)
        #expect(decision.told("recorder") == "native 1920x1080 1/30")
        #expect(decision.told("preview") == "jpeg:640x480@15 640x480 1/15")
        #expect(
            decision.explanation == [
                "front streams 1920x1080 MJPG at 30/s, which serves both: recorder gets it as it is, preview scaled to "
                    + "640x480 at 15/s."
            ])
    }

    @Test func oneAloneGetsWhatFitsBest() {
        for (wish, id, delivery) in [
            (CaptureDemand.Wish.size(vga), "f0", "native"), (.size(vga, rate: duration(1, 60)), "f2", "native"),
            (.size(vga, rate: duration(1, 20)), "f0", "native@20"), (.size(vga, pixelFormat: .bgr24), "f0", "bgr"),
            (.size(vga, pixelFormat: .motionJPEG), "f2", "native"),
            (.size(Dimensions(width: 600, height: 401)), "f0", "bgr:600x401"),
            (.size(Dimensions(width: 960, height: 540)), "f3", "jpeg:960x540"),
            (.size(fullHD, pixelFormat: .h264), "f5", "native"), (.size(fullHD, pixelFormat: .grey), "f4", "gray"),
            (.preset(.high), "f4", "native"), (.preset(.hd1280x720), "f3", "native"), (.preset(.low), "f0", "native"),
            (.format(FormatSelection(pixelFormat: .grey, dimensions: fullHD)), "f6", "native"),
        ] {
            let decision = decide([session("one", wish)], isStreaming: false)
            #expect(decision.setting?.formatID == id, "\(wish)")
            #expect(decision.rendition("one") == delivery, "\(wish)")
        }
    }

    @Test func theSlowestRateThatDoesIsTaken() {
        let slow = decide([session("one", .size(fullHD, rate: duration(1, 10)))])
        #expect(slow.setting == setting("f4", rate: 15))
        #expect(slow.rendition("one") == "native@10")
    }

    // MARK: Who wins

    @Test func theHigherPriorityWins() {
        let demands = [
            session("camera", wish("f7"), since: 0), session("boss", wish("f3"), priority: 5, since: 9),
            session("viewer", .size(vga), since: 5),
        ]
        let decision = decide(demands, current: setting("f7", rate: 30))
        #expect(decision.setting == setting("f3", rate: 30))
        #expect(decision.verdicts.map(\.demand.party.id) == ["boss", "camera", "viewer"])
        #expect(
            decision.told("camera")
                == "interrupted videoDeviceInUseByAnotherClient by boss", "and only it")
        #expect(decision.rendition("viewer") == "jpeg:640x480")
        #expect(
            decision.explanation == [
                "front streams 1280x720 MJPG at 30/s, which serves both: boss gets it as it is, viewer scaled to "
                    + "640x480.",
                "camera waits: it wants the format 800x600 YUYV, and boss, which has the higher priority (5 against "
                    + "0), has the format 1280x720 MJPG.",
                "Waiting sessions resume by themselves when that ends.",
            ])

        let after = decide(demands.filter { $0.party.id != "boss" }, current: decision.setting)
        #expect(after.rendition("camera") == "native")
        #expect(after.rendition("viewer") == "yuyv:640x480")
    }

    @Test func theOlderWinsAmongEquals() {
        let decision = decide([session("new", wish("f3"), since: 2), session("old", wish("f7"), since: 1)])
        #expect(decision.setting?.formatID == "f7")
        #expect(decision.told("new") == "interrupted videoDeviceInUseByAnotherClient by old")
        #expect(decision.explanation[1].contains("old, which was there first, has the format 800x600 YUYV"))
    }

    @Test func whatNoFormatDoesIsNobodysFault() {
        let big = Dimensions(width: 7680, height: 4320)
        for (wish, why) in [
            (
                CaptureDemand.Wish.size(big),
                "front has no pictures as large as 7680x4320: its largest size is 1920x1080"
            ),
            (.preset(.hd4K3840x2160), "front doesn't support the preset 3840x2160: its largest size is 1920x1080"),
            (
                .size(hd, rate: duration(1, 120)),
                "front has no rate of more than 30/s in that format, and 120/s are wanted"
            ),
            (.format(FormatSelection(pixelFormat: .nv12, dimensions: vga)), "front has no NV12 at 640x480"),
            (.size(hd, pixelFormat: .h264), "the pictures of front can't be converted to that"),
        ] {
            let decision = decide([session("dreamer", wish, priority: 9), session("worker", .size(vga))])
            #expect(decision.told("dreamer") == "unsupported \(why)")
            #expect(decision.rendition("worker") == "native")
            #expect(decision.explanation.last == "dreamer gets nothing: \(why).")
        }
    }

    // MARK: What runs is left alone

    @Test func whatStreamsIsKept() {
        let running = setting("f4", rate: 30)
        let decision = decide([session("new", .size(vga))], current: running)
        #expect(decision.setting == running && !decision.isChange)
        #expect(decision.rendition("new") == "jpeg:640x480")
        let idle = decide([session("new", .size(vga))], current: running, isStreaming: false)
        #expect(idle.setting?.formatID == "f2", "of the pixel format that it has")
        #expect(!decide([session("any", .nothing)], current: running, isStreaming: false).isChange)
        #expect(!decide([], current: running).isChange)
        #expect(decide([], current: nil).setting == nil)
    }

    @Test func theOnlyOneThatAsksAnewSetsItLower() throws {
        let large = setting("f4", rate: 30)
        let small = session("one", .size(vga, rate: duration(1, 15)))
        let decision = decide([small], current: large, mayLower: true)
        #expect(decision.isChange && decision.setting == setting("f2", rate: 30))
        #expect(decision.told("one") == "native@15 640x480 1/15")
        let slower = decide([session("one", .size(fullHD, rate: duration(1, 15)))], current: large, mayLower: true)
        #expect(slower.isChange && slower.setting == setting("f4", rate: 15))
        // An equal or better stream is kept, even if another format would fit better.
        let other = decide([session("one", .size(hd))], current: setting("f1", rate: 10), mayLower: true)
        #expect(!other.isChange && other.setting == setting("f1", rate: 10))
        // Whoever holds the lock keeps it, and a subscriber what it has, if there is a choice.
        let lock = CaptureParty(.lock, id: "l", name: "someone")
        #expect(!decide([small], current: large, mayLower: true, lock: lock).isChange)
        let minded = decide([small, try subscriber("viewer", "jpeg:1280x720@5")], current: large, mayLower: true)
        #expect(minded.setting?.formatID == "f3" && minded.told("viewer") == "jpeg:1280x720@5 1280x720 1/5")
        let kept = decide([small, try subscriber("viewer", "jpeg:1920x1080")], current: large, mayLower: true)
        #expect(kept.setting == setting("f4", rate: 15) && kept.told("viewer") == "jpeg:1920x1080 1920x1080 1/15")
    }

    @Test func theFormatIsKeptWhereTheRateChanges() {
        let decision = decide(
            [session("slow", .size(vga)), session("fast", .size(vga, rate: duration(1, 30)))],
            current: setting("f4", rate: 15))
        #expect(decision.setting == setting("f4", rate: 30))
    }

    @Test func aPresetSpeedsUpWhatStreams() {
        let decision = decide([session("one", .preset(.vga640x480))], current: setting("f4", rate: 15))
        #expect(decision.setting == setting("f4", rate: 30))
        let held = decide(
            [
                session("slow", wish("f1"), priority: 1),
                session("preset", .preset(.vga640x480)),
            ], current: setting("f4", rate: 15))
        #expect(held.setting == setting("f1", rate: 10))
        #expect(held.told("preset") == "yuyv:640x480 640x480 1/10", "what there is, since who comes first has it so")
    }

    @Test func aRangeOfRatesIsContentWithAnyInIt() {
        let range = FrameDurationBounds(min: duration(1, 30), max: duration(1, 15))
        #expect(decide([session("one", wish("f4", range))], current: setting("f4", rate: 15)).isChange == false)
        let fresh = decide([session("one", wish("f4", range))])
        #expect(fresh.setting == setting("f4", rate: 30), "the highest")
        let constant = decide([
            session("one", wish("f2", FrameDurationBounds(constant: duration(1, 30)))),
            session("two", wish("f2", FrameDurationBounds(min: duration(1, 60)))),
        ])
        #expect(constant.setting == setting("f2", rate: 60))
        #expect(constant.rendition("one") == "native@30" && constant.rendition("two") == "native")
    }

    @Test func pictureThatBuildOnOthersAreNotLeftOut() {
        let decision = decide([
            session("one", .size(fullHD, pixelFormat: .h264, rate: duration(1, 15))),
            session("two", .size(fullHD, pixelFormat: .h264, rate: duration(1, 30)), since: 1),
        ])
        #expect(decision.setting == setting("f5", rate: 15))
        #expect(decision.told("two") == "interrupted videoDeviceInUseByAnotherClient by one")
    }

    @Test func colourIsNotTakenAway() {
        let decision = decide([session("one", .size(fullHD, rate: duration(1, 30)))], current: setting("f6", rate: 60))
        #expect(decision.setting == setting("f4", rate: 30))
    }

    // MARK: Locks

    @Test func aLockedDeviceStays() {
        let lock = CaptureParty(.lock, id: "7f3a90c1", name: "calibrate")
        let decision = decide(
            [
                session("boss", wish("f3"), priority: 99), session("small", .size(Dimensions(width: 320, height: 240))),
                session("preset", .preset(.vga640x480)), session("huge", .preset(.hd4K3840x2160)),
            ], current: setting("f0", rate: 15), isStreaming: false, lock: lock)
        #expect(decision.setting == setting("f0", rate: 15) && !decision.isChange)
        #expect(decision.told("boss") == "interrupted videoDeviceInUseByAnotherClient by calibrate")
        #expect(decision.told("small") == "yuyv:320x240 320x240 1/15")
        #expect(decision.told("preset") == "native 640x480 1/15")
        #expect(decision.told("huge")?.hasPrefix("unsupported") == true)
        #expect(
            decision.explanation.prefix(2) == [
                "front is locked by calibrate and stays at 640x480 YUYV at 15/s, which serves both: preset gets it as "
                    + "it is, small scaled to 320x240.",
                "boss waits: it wants the format 1280x720 MJPG, and calibrate has front locked.",
            ])
    }

    // MARK: Subscribers

    @Test func subscribersChangeNothing() throws {
        let wide = try subscriber("viewer", "jpeg:1280x720@5")
        let alone = decide([wide], current: setting("f0", rate: 30))
        #expect(!alone.isChange)
        #expect(
            alone.told("viewer")
                == "unsupported front is set to 640x480 YUYV at 30/s, and a subscription alone doesn't change that")
        let both = decide([wide, session("one", .size(vga), since: 9)], current: setting("f0", rate: 30))
        #expect(!both.isChange)
    }

    @Test func subscribersAreMindedInAChange() throws {
        let demands = [try subscriber("viewer", "jpeg:1280x720@5"), session("one", .size(vga, rate: duration(1, 25)))]
        let decision = decide(demands, current: setting("f0", rate: 15))
        #expect(decision.setting?.formatID == "f3")
        #expect(decision.told("viewer") == "jpeg:1280x720@5 1280x720 1/5")
        let narrow = decide(
            [try subscriber("viewer", "bgr:0x720;rotate=90"), session("one", wish("f2"))],
            current: setting("f0", rate: 15))
        #expect(narrow.told("viewer") == "interrupted videoDeviceInUseByAnotherClient by one")
        #expect(narrow.explanation[1].contains("one, which has a session, has the format 640x480 MJPG"))
    }

    @Test func plainSubscribersAreNamedAndCounted() throws {
        let follows = CaptureDemand(subscribers: 2, of: Rendition(.native))
        let one = session("one", .size(vga, rate: duration(1, 30)))
        let change = decide([follows, one], current: setting("f1", rate: 10))
        #expect(change.isChange && change.setting == setting("f0", rate: 30))
        #expect(
            change.explanation == [
                "front streams 640x480 YUYV at 30/s, for one.",
                "2 plain subscribers of native follow, whatever front is set to.",
            ])
        // Where there is a choice they are minded, and where there is none they wait.
        let wide = CaptureDemand(subscribers: 3, of: try Rendition(parsing: "jpeg:1280x720"))
        let both = decide([wide, one], current: setting("f0", rate: 15))
        #expect(both.setting?.format.dimensions == hd)
        #expect(both.explanation[0].contains("which serves all 4: one gets it scaled to 640x480"))
        #expect(both.explanation[0].contains("3 plain subscribers of jpeg:1280x720 as it is"))
        let single = CaptureDemand(subscribers: 1, of: try Rendition(parsing: "jpeg:1280x720"))
        let narrow = decide([single, session("one", wish("f2"))], current: setting("f1", rate: 10))
        #expect(
            narrow.explanation[1]
                == "a plain subscriber of jpeg:1280x720 waits: it wants jpeg:1280x720, and one, which has a session, "
                + "has the format 640x480 MJPG."
        )
        let alone = decide([wide], current: setting("f0", rate: 30))
        #expect(alone.explanation[1].hasPrefix("3 plain subscribers of jpeg:1280x720 get nothing: "))
    }

    /// Sizes of renditions are those of upright pictures.
    @Test func aSubscriberOfATurnedCameraHasItsOwnSize() throws {
        func told(_ rendition: String) throws -> String? {
            Arbiter.decide(
                device: "front", formats: [format("f0", .yuyv, 640, 480, 30)],
                orientation: PictureOrientation(quarters: 1, isMirrored: false), current: setting("f0", rate: 30),
                demands: [try subscriber("viewer", rendition), session("one", .nothing)]
            ).told("viewer")
        }
        #expect(try told("rgb:480x640") == "rgb:480x640 480x640 1/30")
        #expect(try told("rgb:240x0;rotate=90") == "rgb:240x0;rotate=90 240x180 1/30")
        #expect(try told("rgb;crop=480x600+0+40") == "rgb;crop=480x600+0+40 480x600 1/30")
        for larger in ["rgb:640x480", "rgb;crop=600x480+40+0", "rgb:480x640;rotate=90"] {
            let why = try told(larger) ?? ""
            #expect(why.hasPrefix("unsupported front has no pictures as large as 6"), "\(why)")
            #expect(why.hasSuffix(": its largest size is 480x640"), "\(why)")
        }
    }

    @Test func aRowIsItsId() {
        let rows = [format("f0", .nv12, 640, 480, 30), format("f1", .nv12, 640, 480, 60, 30)]
        func decide(_ id: String, current: String) -> ArbiterDecision {
            let selection = FormatSelection(pixelFormat: .nv12, dimensions: vga)
            let setting = StreamSetting(
                formatID: current, format: selection, frameDuration: FrameDuration(framesPerSecond: 30))
            return Arbiter.decide(
                device: "front", formats: rows, current: setting,
                demands: [session("one", .format(selection, id: id))])
        }
        let other = decide("f1", current: "f0")
        #expect(other.isChange && other.setting?.formatID == "f1")
        let same = decide("f1", current: "f1")
        #expect(!same.isChange && same.setting?.formatID == "f1")
    }

    // MARK: Odd devices

    @Test func odd() {
        let none = Arbiter.decide(
            device: "front", formats: [], current: nil,
            demands: [session("one", .nothing), session("two", .preset(.high))])
        #expect(none.setting == nil && none.verdicts.count == 2)
        #expect(none.told("one") == "unsupported front has no format")

        let stranger = StreamSetting(
            format: FormatSelection(pixelFormat: .nv12, dimensions: Dimensions(width: 801, height: 600)))
        let kept = decide([session("one", .size(vga))], current: stranger)
        #expect(kept.setting == stranger, "a format of no row is one all the same")
        #expect(kept.rendition("one") == "nv12:640x480")

        let grabber = [CaptureFormat(id: "f0", pixelFormat: .yuyv, dimensions: fullHD, frameRates: [])]
        let unknown = Arbiter.decide(
            device: "front", formats: grabber, current: nil,
            demands: [session("one", .size(hd, rate: duration(1, 30)))])
        #expect(unknown.rendition("one") == "yuyv:1280x720@30", "at most, as nobody knows what it has")
    }

    @Test func aRateAsPeopleSayIt() {
        let ntsc = [
            CaptureFormat(
                id: "f0", pixelFormat: .yuyv, dimensions: vga,
                frameRates: [FrameRateRange(discrete: duration(1001, 30000))])
        ]
        let decision = Arbiter.decide(
            device: "front", formats: ntsc, current: nil, demands: [session("one", .size(vga, rate: duration(1, 30)))])
        #expect(decision.told("one") == "native 640x480 1001/30000")
        #expect(decision.explanation == ["front streams 640x480 YUYV at 29.97/s, for one."])
        #expect(decision.forecast == ["front would stream 640x480 YUYV at 29.97/s, for one."])
    }

    /// Numbers that no camera has bring nothing down.
    @Test func numbersWithoutMeasure() {
        let huge = Dimensions(width: .max, height: .max)
        let wishes: [CaptureDemand.Wish] = [
            .size(huge), .size(Dimensions(width: .min, height: -1)), .size(Dimensions(width: 0, height: 0)),
            .format(FormatSelection(pixelFormat: .nv12, dimensions: huge)),
            .size(vga, rate: duration(1, .max)), .size(vga, rate: duration(.max, 1)),
            .size(vga, rate: duration(.max, .max - 1)),
        ]
        for wish in wishes {
            let decision = decide([session("one", wish, priority: .min, since: .min)], current: setting("f0", rate: 30))
            #expect(decision.verdicts.count == 1)
        }
    }
}

extension ArbiterDecision {
    fileprivate func outcome(_ id: String) -> Outcome? { verdicts.first { $0.demand.party.id == id }?.outcome }

    fileprivate func rendition(_ id: String) -> String? {
        guard case .satisfied(let delivery)? = outcome(id) else { return nil }
        return delivery.rendition.description
    }

    fileprivate func told(_ id: String) -> String? {
        switch outcome(id) {
        case .satisfied(let delivery):
            "\(delivery.rendition) \(delivery.dimensions) \(delivery.frameDuration.map(\.description) ?? "?")"
        case .interrupted(let reason, let by): "interrupted \(reason.rawValue) by \(by.name)"
        case .unsupported(let why): "unsupported \(why)"
        case nil: nil
        }
    }
}
