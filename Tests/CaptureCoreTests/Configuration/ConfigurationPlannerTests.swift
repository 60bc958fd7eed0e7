import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct ConfigurationPlannerTests {
    private func plan(
        _ text: String, mode: ConfigurationMode = .exact, current: DeviceConfiguration = SampleDevice.current,
        device: DeviceDescription = SampleDevice.description
    ) throws -> ConfigurationPlan {
        guard case .object(var members) = try JSONValue(parsing: text) else { return ConfigurationPlan() }
        members["device"] = "cam0"
        let change = try ConfigurationChange.parse(.object(members), path: "changes[1]")
        return try ConfigurationPlanner(description: device).plan(
            change, path: "changes[1]", current: current, mode: mode)
    }

    private func refusal(_ text: String, mode: ConfigurationMode = .exact) -> BusError? {
        #expect(throws: BusError.self) { try plan(text, mode: mode) }
    }

    private func selection(_ format: PixelFormat, _ width: Int, _ height: Int) -> FormatSelection {
        FormatSelection(pixelFormat: format, dimensions: Dimensions(width: width, height: height))
    }

    // MARK: Format

    @Test func aFormatByItsID() throws {
        let plan = try plan(#"{"activeFormat":"f4"}"#)
        #expect(plan.format == selection(.motionJPEG, 1920, 1080) && plan.formatID == "f4")
        #expect(plan.frameDuration == duration(1, 30) && plan.adjustments.isEmpty)
        // A format of many sizes is its largest.
        #expect(try self.plan(#"{"activeFormat":"f5"}"#).format == selection(.nv12, 1600, 1200))
    }

    @Test func anUnknownIDIsRefusedInBothModes() {
        for mode in ConfigurationMode.allCases {
            let error = refusal(#"{"activeFormat":"f99"}"#, mode: mode)
            #expect(error?.reason == .formatUnsupported)
            #expect(error?.data["nearest"] == ["id": "f0", "pixelFormat": "YUYV", "width": 640, "height": 480])
        }
    }

    @Test func aSizeKeepsThePresentPixelFormat() throws {
        #expect(try plan(#"{"activeFormat":{"width":1280,"height":720}}"#).formatID == "f1")
        var current = SampleDevice.current
        current.format.pixelFormat = .motionJPEG
        #expect(try plan(#"{"activeFormat":{"width":1280,"height":720}}"#, current: current).formatID == "f3")
    }

    @Test func aRateThatIsAskedCountsForMoreThanThePresentPixelFormat() throws {
        #expect(try plan(#"{"activeFormat":{"width":1280,"height":720},"frameRate":10}"#).formatID == "f1")
        let plan = try plan(#"{"activeFormat":{"width":1280,"height":720},"frameRate":29.97}"#)
        #expect(plan.formatID == "f3" && plan.frameDuration == duration(1001, 30000))
        // NV12 and H.264 have 50, H.264 alone has 55.
        #expect(try self.plan(#"{"activeFormat":{"width":1280,"height":720},"frameRate":50}"#).formatID == "f5")
        #expect(try self.plan(#"{"activeFormat":{"width":1280,"height":720},"frameRate":55}"#).formatID == "f6")
    }

    @Test func withoutThePresentPixelFormatUncompressedComesFirstIfItReachesTheRate() throws {
        var current = SampleDevice.current
        current.format.pixelFormat = .bgr24
        #expect(try plan(#"{"activeFormat":{"width":640,"height":480}}"#, current: current).formatID == "f0")
        // YUYV has 10 frames a second at this size, and 30 are set.
        #expect(try plan(#"{"activeFormat":{"width":1280,"height":720}}"#, current: current).formatID == "f3")
        current.frameDuration = duration(1, 10)
        #expect(try plan(#"{"activeFormat":{"width":1280,"height":720}}"#, current: current).formatID == "f1")
    }

    /// `device.set` has its controls in `params` itself.
    @Test func aPathBeginsWithoutADotWhereTheChangeIsTheWholeRequest() throws {
        let planner = ConfigurationPlanner(description: SampleDevice.description)
        let change = ConfigurationChange(device: "cam0", frameRate: .rate(20), controls: ["brightness": "5"])
        #expect(throws: BusError.invalidParams("controls.brightness", "must be an integer, not string")) {
            try planner.plan(change, path: "", current: SampleDevice.current, mode: .nearest)
        }
    }

    @Test func steppedSizes() throws {
        let plan = try plan(#"{"activeFormat":{"width":800,"height":600}}"#)
        #expect(plan.format == selection(.nv12, 800, 600) && plan.formatID == "f5")
        let error = refusal(#"{"activeFormat":{"width":801,"height":600,"pixelFormat":"NV12"}}"#)
        #expect(error?.reason == .formatUnsupported)
        #expect(error?.data["nearest"] == ["id": "f5", "pixelFormat": "NV12", "width": 800, "height": 600])
    }

    @Test func theNearestSizeIsToldAndInNearestModeTaken() throws {
        let request = #"{"activeFormat":{"width":1900,"height":1000}}"#
        #expect(
            refusal(request)?.data["nearest"] == ["id": "f4", "pixelFormat": "MJPG", "width": 1920, "height": 1080])
        let plan = try plan(request, mode: .nearest)
        #expect(plan.formatID == "f4")
        let adjustment = try #require(plan.adjustments.first)
        #expect(adjustment.path == "changes[1].activeFormat")
        #expect(adjustment.json["asked"] == ["width": 1900, "height": 1000])
        #expect(adjustment.json["given"] == ["id": "f4", "pixelFormat": "MJPG", "width": 1920, "height": 1080])
    }

    @Test func aPixelFormatThatIsAskedIsKeptIfTheDeviceHasItAtAll() throws {
        let yuyv = try plan(#"{"activeFormat":{"pixelFormat":"YUYV","width":1920,"height":1080}}"#, mode: .nearest)
        #expect(yuyv.formatID == "f1")
        let rgb = try plan(#"{"activeFormat":{"pixelFormat":"RGB3","width":1920,"height":1080}}"#, mode: .nearest)
        #expect(rgb.formatID == "f4")
        #expect(
            refusal(#"{"activeFormat":{"pixelFormat":"RGB3","width":640,"height":480}}"#)?.reason == .formatUnsupported)
    }

    @Test func aLargeSizeKeepsItsAspectInASteppedFormat() {
        let size = SampleDevice.formats[5].nearestSize(to: Dimensions(width: 3840, height: 2160))
        #expect(size == Dimensions(width: 1600, height: 904))
    }

    @Test func aDeviceWithoutFormatsHasNoNearest() {
        var device = SampleDevice.description
        device.formats = []
        for text in [#"{"activeFormat":"f0"}"#, #"{"activeFormat":{"width":640,"height":480}}"#] {
            let error = #expect(throws: BusError.self) { try plan(text, mode: .nearest, device: device) }
            #expect(error?.reason == .formatUnsupported && error?.data["nearest"] == .null)
        }
    }

    // MARK: Frame rate

    @Test func aRateOfThePresentFormat() throws {
        let plan = try plan(#"{"frameRate":15}"#)
        #expect(plan == ConfigurationPlan(frameDuration: duration(1, 15)))
    }

    @Test func aRateThatIsNotThereIsRefusedWithThoseThatAre() {
        let error = refusal(#"{"frameRate":60}"#)
        #expect(error?.reason == .frameRateUnsupported)
        #expect(error?.data["ranges"]?.array?.map { $0["minFrameDuration"] } == ["1/30", "1/15"])
    }

    @Test func theRatesOfAllFormatsThatWereMeantAreTold() {
        let error = refusal(#"{"activeFormat":{"width":640,"height":480},"frameRate":7}"#)
        #expect(error?.data["ranges"]?.array?.map { $0["minFrameDuration"] } == ["1/60", "1/50", "1/30", "1/15"])
    }

    @Test func theNearestRateIsTold() throws {
        let plan = try plan(#"{"frameRate":"20/1"}"#, mode: .nearest)
        #expect(plan.frameDuration == duration(1, 15))
        #expect(
            plan.adjustments == [
                Adjustment(
                    path: "changes[1].frameRate", asked: 20, given: "1/15",
                    why: "This format doesn't have this "
                        + "frame rate.")
            ])
    }

    @Test func `of two frame durations the one that was given is reported`() throws {
        let unequal = #"{"frameRate":{"minFrameDuration":"1/30","maxFrameDuration":"1/10"}}"#
        let plan = try plan(unequal)
        #expect(plan.frameDuration == duration(1, 30))
        #expect(plan.adjustments.map(\.path) == ["changes[1].frameRate"])
        #expect(plan.adjustments.first?.given == "1/30")
        #expect(plan.adjustments.first?.asked == ["minFrameDuration": "1/30", "maxFrameDuration": "1/10"])
        let equal = #"{"frameRate":{"minFrameDuration":"1/30","maxFrameDuration":"1/30"}}"#
        #expect(try self.plan(equal).adjustments.isEmpty)
        #expect(try self.plan(#"{"frameRate":{"maxFrameDuration":"1/10"}}"#).adjustments.isEmpty)
    }

    @Test func aNewFormatKeepsTheRateOrTellsTheNearest() throws {
        #expect(try plan(#"{"activeFormat":"f2"}"#).adjustments.isEmpty)
        let plan = try plan(#"{"activeFormat":"f1"}"#)
        #expect(plan.frameDuration == duration(1, 10))
        #expect(plan.adjustments.map(\.path) == ["changes[1].frameRate"])
        #expect(plan.adjustments.first?.asked == "1/30" && plan.adjustments.first?.given == "1/10")
        // The same format again changes nothing.
        #expect(try self.plan(#"{"activeFormat":"f0"}"#).frameDuration == nil)
    }

    @Test func aFormatWithoutRatesTakesNone() throws {
        #expect(try plan(#"{"activeFormat":"f7"}"#).frameDuration == nil)
        let error = refusal(#"{"activeFormat":"f7","frameRate":30}"#)
        #expect(error?.reason == .frameRateUnsupported && error?.data["ranges"] == [])
        let plan = try plan(#"{"activeFormat":"f7","frameRate":30}"#, mode: .nearest)
        #expect(plan.frameDuration == nil && plan.adjustments.map(\.path) == ["changes[1].frameRate"])
    }

    // MARK: Controls

    @Test(arguments: [
        (#"{"brightness":-64}"#, ControlValue.integer(-64)),
        (#"{"brightness":3.0}"#, .integer(3)),
        (#"{"white_balance_automatic":false}"#, .boolean(false)),
        (#"{"white_balance_automatic":1}"#, .boolean(true)),
        (#"{"auto_exposure":1}"#, .integer(1)),
        (#"{"auto_exposure":"Manual Mode"}"#, .integer(1)),
        (#"{"auto_exposure":"manual mode"}"#, .integer(1)),
        (#"{"link_frequency":1}"#, .integer(1)),
        (#"{"link_frequency":"200000000"}"#, .integer(1)),
        (#"{"model":"abcd"}"#, .string("abcd")),
        (#"{"save":true}"#, .boolean(true)),
        (#"{"save":null}"#, .boolean(true)),
        (#"{"bits":5}"#, .integer(5)),
        (#"{"matrix":[1,2,3,200]}"#, .integers([1, 2, 3, 200])),
        (#"{"list":[1]}"#, .integers([1])),
        (#"{"crop":[640,480]}"#, .integers([640, 480])),
        (#"{"crop":{"width":640,"height":480}}"#, .integers([640, 480])),
    ]) func aControlTakes(controls: String, value: ControlValue) throws {
        let plan = try plan(#"{"controls":\#(controls)}"#)
        #expect(plan.controls.map(\.value) == [value] && plan.adjustments.isEmpty)
    }

    @Test(arguments: [
        (#"{"brightness":65}"#, BusError.Reason.controlOutOfRange),
        (#"{"brightness":"5"}"#, .invalidParams),
        (#"{"brightness":5.5}"#, .invalidParams),
        (#"{"brightness":1e300}"#, .invalidParams),
        (#"{"brightness":null}"#, .invalidParams),
        (#"{"focus_absolute":7}"#, .controlOutOfRange),
        (#"{"white_balance_automatic":2}"#, .controlOutOfRange),
        (#"{"white_balance_automatic":"on"}"#, .invalidParams),
        (#"{"auto_exposure":0}"#, .controlOutOfRange),
        (#"{"auto_exposure":"Auto Mode"}"#, .controlOutOfRange),
        (#"{"auto_exposure":true}"#, .invalidParams),
        (#"{"model":"abc"}"#, .controlOutOfRange),
        (#"{"model":"abcdefghij"}"#, .controlOutOfRange),
        (#"{"model":7}"#, .invalidParams),
        (#"{"model":"a\u0000"}"#, .invalidParams),
        (#"{"save":1}"#, .invalidParams),
        (#"{"bits":2}"#, .controlOutOfRange),
        (#"{"bits":-1}"#, .controlOutOfRange),
        (#"{"matrix":[1,2,3]}"#, .invalidParams),
        (#"{"matrix":[1,2,3,201]}"#, .controlOutOfRange),
        (#"{"matrix":[1,2,3,"4"]}"#, .invalidParams),
        (#"{"list":[1,2,3,4]}"#, .invalidParams),
        (#"{"crop":[-1,2]}"#, .controlOutOfRange),
        (#"{"crop":5}"#, .invalidParams),
        (#"{"serial":"x"}"#, .controlReadOnly),
        (#"{"held":1}"#, .controlBusy),
        (#"{"gone":1}"#, .controlUnsupported),
        (#"{"odd":1}"#, .controlUnsupported),
        (#"{"nothing":1}"#, .controlUnsupported),
    ]) func aControlRefuses(controls: String, reason: BusError.Reason) throws {
        let error = try #require(refusal(#"{"controls":\#(controls)}"#))
        #expect(error.reason == reason)
        let name = try #require(JSONValue(parsing: controls).object?.keys.first)
        if reason == .invalidParams {
            #expect(error.data["path"] == .string("changes[1].controls.\(name)"))
        } else {
            #expect(error.data["control"] == .string(name))
        }
        if reason == .controlOutOfRange {
            #expect(error.data["min"] != nil && error.data["max"] != nil && error.data["step"] != nil)
        }
        if reason == .controlUnsupported {
            let supported = try #require(error.data["supported"]?.array)
            #expect(supported.contains("brightness") && !supported.contains("gone") && !supported.contains("serial"))
        }
    }

    @Test(arguments: [
        (#"{"brightness":1000}"#, ControlValue.integer(64)),
        (#"{"brightness":-9223372036854775808}"#, .integer(-64)),
        (#"{"focus_absolute":7}"#, .integer(5)),
        (#"{"focus_absolute":8}"#, .integer(10)),
        (#"{"bits":7}"#, .integer(5)),
    ]) func theNearestValueIsTold(controls: String, value: ControlValue) throws {
        let plan = try plan(#"{"controls":\#(controls)}"#, mode: .nearest)
        let control = try #require(plan.controls.first)
        #expect(control.value == value)
        #expect(plan.adjustments.map(\.path) == ["changes[1].controls.\(control.name)"])
        #expect(plan.adjustments.first?.given == value.json)
    }

    @Test(arguments: [#"{"auto_exposure":2}"#, #"{"bits":-1}"#, #"{"model":"abc"}"#, #"{"matrix":[1,2,3,201]}"#])
    func whereThereIsNoNearestValueBothModesRefuse(controls: String) {
        #expect(refusal(#"{"controls":\#(controls)}"#, mode: .nearest)?.reason == .controlOutOfRange)
    }

    @Test func theLastStepMayLieBelowTheMaximum() throws {
        var device = SampleDevice.description
        device.controls = [
            CaptureControl(name: "a", title: "A", id: 1, type: .integer, minimum: 1, maximum: 12, step: 4)
        ]
        let plan = try plan(#"{"controls":{"a":12}}"#, mode: .nearest, device: device)
        #expect(plan.controls.first?.value == .integer(9))
    }

    @Test func aNameThatCouldMeanTwoItemsIsRefused() throws {
        var device = SampleDevice.description
        device.controls = [
            CaptureControl(
                name: "a", title: "A", id: 1, type: .menu, maximum: 1, menu: [0: .name("Off"), 1: .name("OFF")])
        ]
        #expect(try plan(#"{"controls":{"a":"OFF"}}"#, device: device).controls.first?.value == .integer(1))
        #expect(throws: BusError.self) { try plan(#"{"controls":{"a":"off"}}"#, device: device) }
    }

    @Test func rangesAtTheEdgeOfIntegersDoNotOverflow() throws {
        var device = SampleDevice.description
        device.controls = [
            CaptureControl(name: "wide", title: "", id: 1, type: .integer64, minimum: .min, maximum: .max, step: 3),
            CaptureControl(name: "none", title: "", id: 2, type: .integer, minimum: 5, maximum: 4, step: -1),
            CaptureControl(
                name: "huge", title: "", id: 3, type: .u8,
                dimensions: [Int(UInt32.max), Int(UInt32.max), Int(UInt32.max)]),
        ]
        let plan = try plan(#"{"controls":{"wide":9223372036854775807}}"#, mode: .nearest, device: device)
        #expect(plan.controls.first?.value == .integer(.max))
        for controls in [#"{"none":4}"#, #"{"huge":[1]}"#] {
            #expect(throws: BusError.self) {
                try self.plan(#"{"controls":\#(controls)}"#, mode: .nearest, device: device)
            }
        }
    }

    // MARK: Automatic modes

    @Test func aManualValueIsBusyWhileItsAutomaticModeIsOn() {
        for controls in [
            #"{"white_balance_temperature":4000}"#,
            #"{"white_balance_temperature":4000,"white_balance_automatic":true}"#,
            #"{"exposure_time_absolute":100,"auto_exposure":3}"#,
        ] { #expect(refusal(#"{"controls":\#(controls)}"#)?.reason == .controlBusy) }
    }

    @Test func aChangeThatSwitchesTheAutomaticModeOffSetsItFirst() throws {
        let plan = try plan(
            #"{"controls":{"exposure_time_absolute":100,"auto_exposure":"Manual Mode","brightness":1,"white_balance_temperature":4000,"white_balance_automatic":false}}"#
        )
        #expect(
            plan.controls.map(\.name) == [
                "white_balance_automatic", "auto_exposure", "brightness", "white_balance_temperature",
                "exposure_time_absolute",
            ])
    }

    @Test func aChangeThatSwitchesTheAutomaticModeOnCannotSetTheManualValue() {
        let error = refusal(#"{"controls":{"focus_absolute":10,"focus_automatic_continuous":true}}"#)
        #expect(error?.reason == .controlBusy && error?.data["control"] == "focus_absolute")
    }

    @Test func aDriverThatDoesNotMindIsTakenAtItsWord() throws {
        var current = SampleDevice.current
        current.controls["focus_automatic_continuous"] = .boolean(true)
        let request = #"{"controls":{"focus_absolute":10,"focus_automatic_continuous":true}}"#
        #expect(try plan(request, current: current).controls.count == 2)
    }

    // MARK: Always

    /// Whatever is asked: a plan is within what the device can do, gives in exact mode what was asked, and asked again
    /// it is the same with nothing to adjust.
    @Test(arguments: seeds) func plansHold(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var planned = 0
        for index in 0..<400 {
            let change = randomChange(&random)
            let mode = random.pick(ConfigurationMode.allCases)
            let planner = ConfigurationPlanner(description: SampleDevice.description)
            let plan: ConfigurationPlan
            do {
                plan = try planner.plan(change, path: "", current: SampleDevice.current, mode: mode)
            } catch {
                continue
            }
            planned += 1
            let comment: Comment = "seed \(seed), \(index): \(change.json) \(mode) \(plan.json)"
            let row = SampleDevice.formats.first { $0.id == plan.formatID ?? "f0" }
            if let format = plan.format {
                #expect(row?.pixelFormat == format.pixelFormat && row?.has(format.dimensions) == true, comment)
            }
            if let duration = plan.frameDuration {
                #expect(row?.frameRates.contains { $0.nearest(to: duration) == duration } == true, comment)
            }
            if mode == .exact {
                var mayDiffer = change.frameRate == nil
                if case .range(let low?, let high?)? = change.frameRate { mayDiffer = low != high }
                #expect(plan.adjustments.allSatisfy { mayDiffer && $0.path == "frameRate" }, comment)
            }
            guard let row else { continue }
            var again = change
            if let format = plan.format {
                again.activeFormat = .size(pixelFormat: format.pixelFormat, format.dimensions)
            }
            again.frameRate = row.frameRates.isEmpty ? nil : plan.frameDuration.map(FrameRateRequest.duration)
            again.controls = Dictionary(
                plan.controls.map { ($0.name, $0.value.json) }, uniquingKeysWith: { first, _ in first })
            let same = try planner.plan(again, path: "", current: SampleDevice.current, mode: .exact)
            #expect(same.adjustments.isEmpty && same.controls == plan.controls && same.format == plan.format, comment)
        }
        #expect(planned > 100)
    }

    private func randomChange(_ random: inout SeededGenerator) -> ConfigurationChange {
        var change = ConfigurationChange(device: "cam0")
        if random.chance(70) {
            let sizes = SampleDevice.formats.map(\.dimensions)
            let other = Dimensions(width: 1 + random.below(4000), height: 1 + random.below(3000))
            change.activeFormat =
                random.chance(20)
                ? .id("f\(random.below(9))")
                : .size(
                    pixelFormat: random.chance(50) ? random.pick([.yuyv, .motionJPEG, .nv12, .rgb24]) : nil,
                    random.chance(60) ? random.pick(sizes) : other)
        }
        switch random.below(4) {
        case 0: change.frameRate = .rate(random.pick([5, 7.5, 10, 15, 29.97, 30, 60, 1000]))
        case 1: change.frameRate = .duration(duration(1 + random.below(3), 1 + random.below(90)))
        case 2:
            let ends = [duration(1, 1 + random.below(90)), duration(1, 1 + random.below(90))].sorted()
            change.frameRate = .range(
                min: random.chance(80) ? ends[0] : nil, max: random.chance(80) ? ends[1] : duration(2, 1))
        default: break
        }
        if random.chance(40) { change.controls["brightness"] = .integer(Int64(random.below(200) - 100)) }
        if random.chance(40) { change.controls["focus_absolute"] = .integer(Int64(random.below(300))) }
        if random.chance(20) { change.controls["bits"] = .integer(Int64(random.below(8))) }
        if random.chance(20) { change.controls["white_balance_automatic"] = .bool(random.chance(50)) }
        if random.chance(10) { change.controls["white_balance_temperature"] = .integer(4001) }
        return change
    }
}
