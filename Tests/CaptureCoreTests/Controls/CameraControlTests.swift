import BusProtocol
import JSON
import Testing

@testable import CaptureCore

/// Controls by V4L2's ids, as different cameras have them.
private enum Knobs {
    static func integer(
        _ id: UInt32, _ name: String, _ range: ClosedRange<Int64>, _ value: Int64 = 0, step: Int64 = 1,
        flags: Set<ControlFlag> = []
    ) -> CaptureControl {
        CaptureControl(
            name: name, title: name, id: id, type: .integer, minimum: range.lowerBound, maximum: range.upperBound,
            step: step, defaultValue: value, flags: flags)
    }

    static func flag(_ id: UInt32, _ name: String) -> CaptureControl {
        CaptureControl(name: name, title: name, id: id, type: .boolean, maximum: 1, defaultValue: 0)
    }

    static func menu(_ id: UInt32, _ name: String, _ items: [Int64]) -> CaptureControl {
        CaptureControl(
            name: name, title: name, id: id, type: .menu, maximum: items.max() ?? 0,
            menu: Dictionary(uniqueKeysWithValues: items.map { ($0, .name("item \($0)")) }))
    }

    static func numbers(_ id: UInt32, _ name: String, _ items: [Int64]) -> CaptureControl {
        CaptureControl(
            name: name, title: name, id: id, type: .integerMenu, maximum: Int64(items.count - 1),
            menu: Dictionary(uniqueKeysWithValues: items.enumerated().map { (Int64($0.offset), .value($0.element)) }))
    }

    /// A webcam under a kernel before 5.15: the names are the former ones, the ids are what counts.
    static let webcam = [
        flag(0x98090C, "white_balance_temperature_auto"),
        integer(0x98091A, "white_balance_temperature", 2800...6500, 4600, step: 10, flags: [.inactive]),
        menu(0x9A0901, "exposure_auto", [1, 3]),
        integer(0x9A0902, "exposure_absolute", 3...2047, 250, flags: [.inactive]),
        flag(0x9A0903, "exposure_auto_priority"),
        integer(0x9A090A, "focus_absolute", 0...250, 0, step: 5, flags: [.inactive]), flag(0x9A090C, "focus_auto"),
        integer(0x9A090D, "zoom_absolute", 100...500, 100),
    ]

    static let webcamValues: [String: ControlValue] = [
        "white_balance_temperature_auto": .boolean(true), "white_balance_temperature": .integer(4600),
        "exposure_auto": .integer(3), "exposure_absolute": .integer(250), "exposure_auto_priority": .boolean(false),
        "focus_absolute": .integer(50), "focus_auto": .boolean(true), "zoom_absolute": .integer(200),
    ]

    /// A camera of a telephone or a board.
    static let board = [
        menu(0x9A0901, "auto_exposure", [0, 1]), integer(0x9A0902, "exposure_time_absolute", 1...10_000),
        numbers(0x9A0913, "auto_exposure_bias", [-2000, -1000, 0, 1000, 2000]),
        flag(0x9A0915, "wide_dynamic_range"), flag(0x9A0916, "image_stabilization"),
        numbers(0x9A0917, "iso_sensitivity", [100_000, 200_000, 400_000]),
        menu(0x9A0918, "iso_sensitivity_auto", [0, 1]), menu(0x9A091A, "scene_mode", [0, 8, 11]),
        CaptureControl(name: "3a_lock", title: "3A Lock", id: 0x9A091B, type: .bitmask, maximum: 7),
        menu(0x9C0901, "led_mode", [0, 1, 2]), integer(0x9C0908, "intensity_torch_mode", 0...200),
        integer(0x98090E, "red_balance", 0...400, 100), integer(0x98090F, "blue_balance", 0...200, 100),
    ]
    static let longest = integer(0x9A100D, "auto_exposure_longest", 100...500_000, 500_000)
    static let boardValues: [String: ControlValue] = [
        "auto_exposure": .integer(0), "exposure_time_absolute": .integer(100), "auto_exposure_bias": .integer(2),
        "wide_dynamic_range": .boolean(false), "image_stabilization": .boolean(true), "iso_sensitivity": .integer(1),
        "iso_sensitivity_auto": .integer(1), "scene_mode": .integer(8), "3a_lock": .integer(0),
        "led_mode": .integer(2), "intensity_torch_mode": .integer(50), "red_balance": .integer(150),
        "blue_balance": .integer(100),
    ]
}

@Suite struct CameraControlReadingTests {
    @Test func aWebcamsUnderAnOldKernel() {
        let map = CameraControlMap(controls: Knobs.webcam)
        #expect(
            map.values(Knobs.webcamValues) == [
                "focusMode": "continuousAutoFocus", "lensPosition": .number(0.8),
                "exposureMode": "continuousAutoExposure", "exposureDuration": .number(0.025),
                "whiteBalanceMode": "continuousAutoWhiteBalance", "whiteBalanceTemperature": 4600,
                "videoZoomFactor": 2, "zoomValue": .number(0.5), "rampingVideoZoom": false,
                "lowLightBoostEnabled": false,
            ])
        #expect(map.kind(.exposureDuration) == .number(minimum: 0.0003, maximum: 0.2047))
        #expect(map.kind(.videoZoomFactor) == .number(minimum: 1, maximum: 5))
        #expect(map.supports["exposureMode"] == ["locked", "continuousAutoExposure", "custom"])
        #expect(map.supports["focusMode"] == ["locked", "continuousAutoFocus"])
        #expect(map.supports["torchMode"] == false && map.supports["focusPointOfInterest"] == false)
        for name in ["depth", "portraitMatte", "dualCamera"] { #expect(map.supports[name] == false) }
        #expect(map.supports.object?.count == CameraControlName.allCases.count + 3)
        #expect(map.controls.first { $0.name == .lensPosition }?.sources == ["focus_absolute"])
    }

    @Test func aBoardsOwn() {
        let values = CameraControlMap(controls: Knobs.board).values(Knobs.boardValues)
        #expect(values["ISO"] == 200 && values["exposureTargetBias"] == 0)
        #expect(values["torchMode"] == "on" && values["flashMode"] == "off" && values["torchLevel"] == .number(0.25))
        #expect(values["sceneMode"] == "night" && values["videoStabilizationMode"] == "standard")
        #expect(values["whiteBalanceGains"] == ["red": .number(1.5), "green": 1, "blue": 1])
        #expect(values["focusMode"] == nil && values["videoZoomFactor"] == nil && values["adjustingExposure"] == nil)
    }

    @Test func aBoundOfAutomaticExposures() throws {
        let bounded =
            Knobs.board + [
                Knobs.longest, Knobs.integer(0x9A100E, "exposure_offset", -20_000...20_000, flags: [.readOnly]),
            ]
        var traits = FormatTraits()
        traits.maxExposureDuration = 0.2
        let map = CameraControlMap(controls: bounded, traits: traits)
        #expect(map.kind(.activeMaxExposureDuration) == .number(minimum: 0.0001, maximum: 0.2))
        #expect(map.kind(.exposureTargetOffset) == .number(minimum: -20, maximum: 20))
        let offset = try #require(map.controls.first { $0.name == .exposureTargetOffset })
        #expect(offset.json(value: nil)["readOnly"] == true && offset.json(value: nil)["unit"] == "EV")
        let longest: [String: ControlValue] = [
            "auto_exposure_longest": .integer(500_000), "exposure_offset": .integer(-1585),
        ]
        let values = map.values(Knobs.boardValues.merging(longest) { $1 })
        // What the format can't have bounds nothing.
        #expect(
            values["activeMaxExposureDuration"] == .number(0.2) && values["exposureTargetOffset"] == .number(-1.585))
        let short: [String: ControlValue] = ["auto_exposure_longest": .integer(8000)]
        #expect(map.values(short)["activeMaxExposureDuration"] == .number(0.008))
        #expect(map.longestExposure(within: FrameDuration(framesPerSecond: 30), short) == 80)
        #expect(CameraControlMap(controls: Knobs.board).kind(.activeMaxExposureDuration) == nil)
    }

    @Test func aCameraWithNothingHasNothing() {
        let map = CameraControlMap(controls: [])
        #expect(map.controls.isEmpty && map.values([:]).isEmpty && map.videoMaxZoomFactor == 1)
        #expect(map.supports.object?.values.allSatisfy { $0 == false } == true)
    }

    @Test func theFormatNarrowsIt() {
        var traits = FormatTraits()
        traits.videoMaxZoomFactor = 3
        (traits.minISO, traits.maxISO) = (150, 250)
        traits.videoHDRSupported = false
        traits.maxExposureDuration = 0.1
        let map = CameraControlMap(controls: Knobs.board + Knobs.webcam.filter { $0.id == 0x9A090D }, traits: traits)
        #expect(map.videoMaxZoomFactor == 3 && map.maxZoomFactor == 3)
        #expect(map.kind(.iso) == .number(minimum: 150, maximum: 250, values: [200]))
        #expect(map.kind(.videoHDREnabled) == nil)
        #expect(map.kind(.exposureDuration) == .number(minimum: 0.0001, maximum: 0.1))
        // R2: what a slider spans is not more than four times.
        #expect(CameraControlMap(controls: Knobs.webcam).maxZoomFactor == 4)
        #expect(CameraControlMap(controls: Knobs.webcam, zoomLimit: 2).zoomFactor(ofValue: 1) == 2)
    }

    @Test func whatAsManualMeansBothIsWhatWasAsked() {
        let map = CameraControlMap(controls: Knobs.webcam)
        var values = Knobs.webcamValues
        values["exposure_auto"] = .integer(1)
        #expect(map.values(values)["exposureMode"] == "custom")
        #expect(map.values(values, words: ["exposureMode": "locked"])["exposureMode"] == "locked")
        #expect(
            map.values(Knobs.webcamValues, words: ["exposureMode": "locked"])["exposureMode"]
                == "continuousAutoExposure")
    }
}

@Suite struct CameraControlPlanningTests {
    private func plan(
        _ text: String, _ controls: [CaptureControl] = Knobs.webcam,
        _ values: [String: ControlValue] = Knobs.webcamValues, mode: ConfigurationMode = .exact,
        _ change: (inout DeviceConfiguration, inout DeviceDescription) -> Void = { _, _ in }
    ) throws -> ConfigurationPlan {
        var description = SampleDevice.description
        description.controls = controls
        var current = SampleDevice.current
        current.controls = values
        change(&current, &description)
        let request = ConfigurationChange(device: "cam0", controls: try JSONValue(parsing: text).object ?? [:])
        return try ConfigurationPlanner(description: description).plan(
            request, path: "", current: current, mode: mode)
    }

    private func board(_ text: String, mode: ConfigurationMode = .exact) throws -> ConfigurationPlan {
        try plan(text, Knobs.board, Knobs.boardValues, mode: mode)
    }

    private func set(_ plan: ConfigurationPlan) -> [String] { plan.controls.map { "\($0.name)=\($0.value.json)" } }

    @Test func aBoundOfAutomaticExposuresBringsNoMode() throws {
        let values = Knobs.boardValues.merging(["auto_exposure_longest": .integer(500_000)]) { $1 }
        let plan = try plan(#"{"activeMaxExposureDuration":0.008}"#, Knobs.board + [Knobs.longest], values)
        #expect(set(plan) == ["auto_exposure_longest=8000"] && plan.words.isEmpty)
        let refused = #expect(throws: BusError.self) { try self.plan(#"{"exposureTargetOffset":1}"#) }
        #expect(refused?.reason == .controlUnsupported)
    }

    @Test func aManualValueBringsItsMode() throws {
        let plan = try plan(#"{"lensPosition":0.5,"exposureDuration":0.01,"whiteBalanceTemperature":5000}"#)
        #expect(
            Set(set(plan)) == [
                "white_balance_temperature_auto=false", "exposure_auto=1", "focus_auto=false",
                "white_balance_temperature=5000", "exposure_absolute=100", "focus_absolute=125",
            ])
        let modes = plan.controls.prefix(3).map(\.name).sorted()
        #expect(modes == ["exposure_auto", "focus_auto", "white_balance_temperature_auto"])
        #expect(plan.cameraControls == ["lensPosition", "exposureDuration", "whiteBalanceTemperature"])
        #expect(plan.implied.count == 6 && plan.words == ["exposureMode": "custom"] && plan.adjustments.isEmpty)
    }

    @Test func `times are seconds or fractions of them`() throws {
        #expect(set(try plan(#"{"exposureDuration":"1/100"}"#)) == set(try plan(#"{"exposureDuration":0.01}"#)))
        for wrong in ["1/0", "1/", "-1/100", "0.01", "fast"] {
            let error = #expect(throws: BusError.self) { try plan(#"{"exposureDuration":"\#(wrong)"}"#) }
            #expect(error?.reason == .invalidParams && error?.message.contains("1/100") == true)
        }
        #expect(throws: BusError.self) { try plan(#"{"lensPosition":"1/2"}"#) }
    }

    @Test(arguments: [
        (#"{"lensPosition":0.5,"focusMode":"continuousAutoFocus"}"#, "lensPosition"),
        (#"{"exposureDuration":0.01,"exposureMode":"locked"}"#, "exposureDuration"),
        (
            #"{"whiteBalanceTemperature":5000,"whiteBalanceMode":"continuousAutoWhiteBalance"}"#,
            "whiteBalanceTemperature"
        ),
        // With the driver's own mode, which closes the gate.
        (#"{"exposureDuration":0.01,"exposure_auto":3}"#, "exposure_auto"),
    ])
    func aManualValueWithAnotherModeIsBusy(_ text: String, _ control: String) {
        let error = #expect(throws: BusError.self) { try plan(text) }
        #expect(error?.reason == .controlBusy && error?.data["control"] == .string(control))
    }

    @Test func bothKindsMayBeMixed() throws {
        let plan = try plan(#"{"focusMode":"locked","focus_absolute":100,"exposure_auto":1,"exposureDuration":0.02}"#)
        #expect(plan.controls.count == 4)
        #expect(plan.implied == ["focus_auto", "exposure_absolute"])
    }

    @Test func locksOfThreeAreOneMask() throws {
        #expect(set(try board(#"{"exposureMode":"locked","whiteBalanceMode":"locked"}"#)) == ["3a_lock=3"])
        var values = Knobs.boardValues
        values["3a_lock"] = .integer(5)
        let plan = try plan(#"{"exposureMode":"continuousAutoExposure"}"#, Knobs.board, values)
        #expect(Set(set(plan)) == ["auto_exposure=0", "iso_sensitivity_auto=1", "3a_lock=4"])
    }

    @Test func customFixesTimeAndISO() throws {
        let plan = try board(#"{"ISO":400,"exposureDuration":0.5}"#)
        #expect(
            Set(set(plan)) == [
                "auto_exposure=1", "iso_sensitivity_auto=0", "iso_sensitivity=2", "exposure_time_absolute=5000",
            ])
    }

    @Test func theLampIsOne() throws {
        #expect(set(try board(#"{"torchMode":"off"}"#)) == ["led_mode=0"])
        // The torch is on: it isn't the flash that is to be turned off.
        #expect(try board(#"{"flashMode":"off"}"#).controls.isEmpty)
        #expect(set(try board(#"{"flashMode":"on"}"#)) == ["led_mode=1"])
        #expect(set(try board(#"{"flashMode":"on","torchMode":"off"}"#)) == ["led_mode=1"])
        #expect(throws: BusError.self) { try board(#"{"flashMode":"on","torchMode":"on"}"#) }
        #expect(set(try board(#"{"torchLevel":0.5}"#)) == ["intensity_torch_mode=100"])
    }

    @Test func zoomByFactorAndByShare() throws {
        #expect(set(try plan(#"{"videoZoomFactor":2.5}"#)) == ["zoom_absolute=250"])
        #expect(set(try plan(#"{"zoomValue":1}"#)) == ["zoom_absolute=400"])
        #expect(set(try plan(#"{"zoomValue":0}"#)) == ["zoom_absolute=100"])
        #expect(set(try plan(#"{"videoZoomFactor":5}"#)) == ["zoom_absolute=500"])
        let both = #expect(throws: BusError.self) { try plan(#"{"zoomValue":0,"videoZoomFactor":2}"#) }
        #expect(both?.reason == .invalidParams)
        for text in [#"{"zoomValue":0.5}"#, #"{"videoZoomFactor":2}"#, #"{"zoom_absolute":300}"#] {
            let error = #expect(throws: BusError.self) { try plan(text) { now, _ in now.isRampingZoom = true } }
            #expect(error?.reason == .controlBusy)
        }
        #expect(throws: Never.self) { try plan(#"{"lensPosition":1}"#) { now, _ in now.isRampingZoom = true } }
    }

    @Test func aFormatThatZoomsLessFarTakesTheFactorAlong() throws {
        let plan = try ConfigurationPlanner(
            description: {
                var description = SampleDevice.description
                description.controls = Knobs.webcam
                description.formats[1].traits.videoMaxZoomFactor = 1.5
                return description
            }()
        ).plan(
            ConfigurationChange(device: "cam0", activeFormat: .id("f1")), path: "",
            current: {
                var current = SampleDevice.current
                current.controls = Knobs.webcamValues
                return current
            }(), mode: .exact)
        #expect(set(plan) == ["zoom_absolute=150"])
        #expect(plan.adjustments.contains { $0.path == "controls.videoZoomFactor" && $0.given == .number(1.5) })
    }

    @Test(arguments: [
        (#"{"torchMode":"on"}"#, BusError.Reason.controlUnsupported),
        (#"{"focusMode":"autoFocus"}"#, .controlUnsupported),
        (#"{"exposurePointOfInterest":{"x":0.5,"y":0.5}}"#, .controlUnsupported),
        (#"{"focusMode":"sometimes"}"#, .invalidParams), (#"{"focusMode":1}"#, .invalidParams),
        (#"{"rampingVideoZoom":true}"#, .controlReadOnly), (#"{"videoZoomFactor":5.01}"#, .controlOutOfRange),
        (#"{"videoZoomFactor":0.99}"#, .controlOutOfRange), (#"{"zoomValue":"a"}"#, .invalidParams),
        (#"{"exposureDuration":1}"#, .controlOutOfRange), (#"{"exposureDuration":-1e300}"#, .controlOutOfRange),
        (#"{"lowLightBoostEnabled":2}"#, .invalidParams),
    ])
    func whatCannotBe(_ text: String, _ reason: BusError.Reason) {
        let error = #expect(throws: BusError.self) { try plan(text) }
        #expect(error?.reason == reason, "\(error?.message ?? "")")
        if reason == .controlUnsupported { #expect(error?.data["supported"]?.array?.isEmpty == false) }
    }

    @Test func theNearestValueIsReportedInTheControlsUnits() throws {
        let plan = try plan(#"{"exposureDuration":1,"videoZoomFactor":9}"#, mode: .nearest)
        #expect(plan.adjustments.map(\.path) == ["controls.exposureDuration", "controls.videoZoomFactor"])
        #expect(plan.adjustments.map(\.given) == [.number(0.2047), 5])
        let iso = try board(#"{"ISO":290}"#, mode: .nearest)
        #expect(iso.adjustments.map(\.given) == [200])
        #expect(throws: BusError.self) { try board(#"{"ISO":290}"#) }
        // A step of the driver's is no other value.
        #expect(try self.plan(#"{"exposureDuration":0.01667}"#).adjustments.isEmpty)
    }

    @Test func aTemperatureBecomesGainsWhereTheDriverHasOnlyThose() throws {
        let map = CameraControlMap(controls: Knobs.board)
        guard case .number(let least, let most, _)? = map.kind(.whiteBalanceTemperature) else {
            throw BusError(.internalError, "there is no temperature")
        }
        // A gain of blue of 2 goes no further.
        #expect((3500...4000).contains(least) && most == 12_000)
        let controls = map.controls
        #expect(
            controls.first { $0.name == .whiteBalanceTemperature }?.sources == ["red_balance", "blue_balance"])
        #expect(map.supports["whiteBalanceTemperature"] == true)
        #expect(
            Set(set(try board(#"{"whiteBalanceTemperature":6504}"#))) == [
                "red_balance=100", "blue_balance=100", "3a_lock=2",
            ])
        for kelvin in [4000, 5000, 8000, 11_000] {
            var values = Knobs.boardValues
            for planned in try board("{\"whiteBalanceTemperature\":\(kelvin)}").controls {
                values[planned.name] = planned.value
            }
            let told = try #require(map.values(values)["whiteBalanceTemperature"]?.double)
            // As near as gains of hundredths come.
            #expect(abs(told / Double(kelvin) - 1) < 0.03, "\(told)")
        }
        let both = #expect(throws: BusError.self) {
            try board(#"{"whiteBalanceTemperature":5000,"whiteBalanceGains":{"red":1,"blue":1}}"#)
        }
        #expect(both?.reason == .controlBusy)
        // What the driver has is not made of gains.
        #expect(
            CameraControlMap(controls: Knobs.board + Knobs.webcam).kind(.whiteBalanceTemperature)
                == .number(minimum: 2800, maximum: 6500))
    }

    @Test func aTintIsGreenerOrMoreMagentaAtOneTemperature() throws {
        let map = CameraControlMap(controls: Knobs.board)
        #expect(map.kind(.whiteBalanceTint) == .number(minimum: -150, maximum: 150))
        // A driver's own temperature has none.
        #expect(CameraControlMap(controls: Knobs.board + Knobs.webcam).kind(.whiteBalanceTint) == nil)
        func read(_ text: String, _ before: [String: ControlValue] = Knobs.boardValues) throws -> [String: ControlValue]
        {
            try plan(text, Knobs.board, before).controls.reduce(into: before) { $0[$1.name] = $1.value }
        }
        for (kelvin, tint) in [(5000, 30), (6000, -60), (9000, 20)] {
            let values = try read(#"{"whiteBalanceTemperature":\#(kelvin),"whiteBalanceTint":\#(tint)}"#)
            let told = map.values(values)
            #expect(abs((told["whiteBalanceTint"]?.double ?? 1e3) - Double(tint)) <= 2, "\(told)")
            #expect(abs((told["whiteBalanceTemperature"]?.double ?? 0) / Double(kelvin) - 1) < 0.02, "\(told)")
            // Alone it keeps the temperature.
            let other = map.values(try read(#"{"whiteBalanceTint":-20}"#, values))
            #expect(abs((other["whiteBalanceTint"]?.double ?? 1e3) + 20) <= 2, "\(other)")
            #expect(abs((other["whiteBalanceTemperature"]?.double ?? 0) / Double(kelvin) - 1) < 0.03, "\(other)")
        }
        // For greener light, green is the weakest.
        let green = WhitePoint.gains(5000, tint: 40)
        let plain = WhitePoint.gains(5000)
        #expect(green.red > plain.red && green.blue > plain.blue)
        // Gains of blue end at 2.
        let far = #expect(throws: BusError.self) {
            try board(#"{"whiteBalanceTemperature":5000,"whiteBalanceTint":150}"#)
        }
        #expect(far?.reason == .controlOutOfRange && far?.data["min"] == -150)
        #expect((40...60).contains(far?.data["max"]?.double ?? 0), "\(String(describing: far))")
        let nearest = try board(#"{"whiteBalanceTemperature":5000,"whiteBalanceTint":150}"#, mode: .nearest)
        #expect(nearest.adjustments.map(\.path) == ["controls.whiteBalanceTint"])
        #expect(set(nearest).contains { $0.hasPrefix("blue_balance=19") || $0 == "blue_balance=200" })
        let both = #expect(throws: BusError.self) {
            try board(#"{"whiteBalanceTint":5,"whiteBalanceGains":{"red":1,"blue":1}}"#)
        }
        #expect(both?.reason == .controlBusy)
    }

    @Test func gainsOfALightAreReadAsThatLight() throws {
        for kelvin in stride(from: 2600.0, through: 11_500, by: 300) {
            for tint in [-120.0, -30, 0, 20] {
                let gains = WhitePoint.gains(kelvin, tint: tint)
                guard gains.blue < 20 else { continue }
                let light = try #require(WhitePoint.light(red: gains.red, blue: gains.blue))
                #expect(abs(light.kelvin - kelvin) < 2 && abs(light.tint - tint) < 0.1, "\(kelvin) \(tint): \(light)")
            }
        }
        // A fluorescent lamp (F2 of CIE 15) is greener than a light of its 4230 K, by less than 10.
        let white = [0.3721, 0.3751]
        func color(_ x: Double, _ y: Double) -> [Double] {
            let light = [x / y, 1, (1 - x - y) / y]
            return [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]].map { row in
                zip(row, light).reduce(0) { $0 + $1.0 * $1.1 }
            }
        }
        let lamp = color(white[0], white[1])
        let light = try #require(WhitePoint.light(red: lamp[1] / lamp[0], blue: lamp[1] / lamp[2]))
        #expect(abs(light.kelvin - 4230) < 60 && abs(light.tint) < 15, "\(light)")
    }

    /// CIE 15: x and y of daylights, whose white in linear sRGB the gains make neutral.
    @Test(arguments: [(5003.0, 0.34567, 0.35850), (5503, 0.33242, 0.34743), (7504, 0.29902, 0.31485)])
    func gainsAreThoseOfStandardLights(_ kelvin: Double, _ x: Double, _ y: Double) {
        func color(_ x: Double, _ y: Double) -> [Double] {
            let light = [x / y, 1, (1 - x - y) / y]
            return [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]].map { row in
                zip(row, light).map(*).reduce(0, +)
            }
        }
        let (light, white) = (color(x, y), color(0.31271, 0.32902))
        let gains = WhitePoint.gains(kelvin)
        #expect(abs(gains.red * light[0] / light[1] - white[0] / white[1]) < 0.005)
        #expect(abs(gains.blue * light[2] / light[1] - white[2] / white[1]) < 0.005)
    }

    @Test func gainsAreRatios() throws {
        #expect(
            Set(set(try board(#"{"whiteBalanceGains":{"red":2,"green":1,"blue":0.5}}"#))) == [
                "red_balance=200", "blue_balance=50", "3a_lock=2",
            ])
        for text in [
            #"{"whiteBalanceGains":{"red":9,"blue":1}}"#, #"{"whiteBalanceGains":{"red":1}}"#,
            #"{"whiteBalanceGains":{"red":1,"blue":1,"green":2}}"#, #"{"whiteBalanceGains":[1,1]}"#,
        ] {
            #expect(throws: BusError.self) { try board(text) }
        }
    }
}

@Suite struct ZoomRampTests {
    @Test func doublesOncePerRate() {
        let ramp = ZoomRamp(from: 1, to: 4, rate: 2, start: 1000)
        #expect(ramp.duration == 1_000_000_000)
        #expect(ramp.factor(at: 0) == 1 && ramp.factor(at: 1000) == 1)
        #expect(abs(ramp.factor(at: 500_001_000) - 2) < 1e-9)
        #expect(ramp.factor(at: 1_000_001_000) == 4 && ramp.isOver(at: 1_000_001_000))
        #expect(!ramp.isOver(at: 1_000_000_999))
    }

    @Test func goesDownAsWell() {
        let ramp = ZoomRamp(from: 8, to: 1, rate: 1, start: 0)
        #expect(ramp.duration == 3_000_000_000)
        var last = 8.0
        for time in stride(from: Int64(0), through: 3_000_000_000, by: 100_000_000) {
            let factor = ramp.factor(at: time)
            #expect(factor <= last && factor >= 1)
            last = factor
        }
        #expect(last == 1)
    }

    @Test func nowhereTakesNoTimeAndNothingOverflows() {
        #expect(ZoomRamp(from: 2, to: 2, rate: 1, start: 5).isOver(at: 5))
        #expect(ZoomRamp(from: 1, to: .infinity, rate: 1e-300, start: 0).duration == 86_400_000_000_000)
        #expect(ZoomRamp(from: -3, to: 0, rate: 1, start: 0).factor(at: 7) == 1)
    }
}
