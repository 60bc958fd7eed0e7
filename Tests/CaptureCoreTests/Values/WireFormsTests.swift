import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite struct WireFormsTests {
    @Test func aDeviceSurvivesTheWire() throws {
        let text = SampleDevice.description.json.description
        #expect(try DeviceDescription(json: JSONValue(parsing: text)) == SampleDevice.description)
    }

    @Test func aConfigurationSurvivesTheWire() throws {
        var configuration = SampleDevice.current
        #expect(try DeviceConfiguration(json: JSONValue(parsing: configuration.json.description)) == configuration)
        configuration.formatID = nil
        configuration.frameDuration = nil
        #expect(try DeviceConfiguration(json: configuration.json) == configuration)
    }

    @Test func aFormatHasTheContractsMembers() {
        let format = SampleDevice.formats[3].json
        #expect(format["id"] == "f3" && format["pixelFormat"] == "MJPG")
        #expect(format["width"] == 1280 && format["height"] == 720 && format["sizes"] == .null)
        #expect(
            format["frameRates"]?[0]
                == [
                    "minFrameDuration": "1/30", "maxFrameDuration": "1/30", "minFrameRate": 30, "maxFrameRate": 30,
                ])
        #expect(format["frameRates"]?[1]?["maxFrameRate"] == .number(30000.0 / 1001))
        #expect(format["videoFieldOfView"] == .null && format["highResolutionStillImageDimensions"] == .null)
        let stepwise = SampleDevice.formats[5].json
        #expect(
            stepwise["sizes"]
                == [
                    "minWidth": 160, "maxWidth": 1600, "stepWidth": 16, "minHeight": 120, "maxHeight": 1200,
                    "stepHeight": 8,
                ])
        #expect(stepwise["frameRates"]?[0]?["stepFrameDuration"] == "1/100")
        #expect(stepwise["frameRates"]?[0]?["minFrameRate"] == 5)
    }

    @Test func aControlHasItsValueAndMenu() throws {
        let control = SampleDevice.controls[4].json(value: .integer(3))
        #expect(control["value"] == 3 && control["type"] == "menu" && control["defaultValue"] == 3)
        #expect(
            control["menu"] == [["index": 1, "name": "Manual Mode"], ["index": 3, "name": "Aperture Priority Mode"]])
        #expect(try CaptureControl.value(in: control) == .integer(3))
        #expect(try CaptureControl.value(in: SampleDevice.controls[4].json(value: nil)) == nil)
        #expect(SampleDevice.controls[5].json(value: nil)["menu"]?[0] == ["index": 0, "value": 100_000_000])
        #expect(SampleDevice.controls[0].json(value: nil)["menu"] == nil)
        #expect(SampleDevice.controls[10].json(value: .integers([1, 2, 3, 4]))["dimensions"] == [2, 2])
    }

    @Test(arguments: [
        ControlValue.boolean(true), .integer(.min), .integer(.max), .string("ä\u{0}\""), .integers([]),
        .integers([-1, 2]),
    ]) func aControlsValueSurvivesTheWire(value: ControlValue) throws {
        #expect(try ControlValue(json: JSONValue(parsing: value.json.description)) == value)
    }

    @Test(arguments: seeds) func anyPixelFormatSurvivesTheWire(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            var code = UInt32.random(in: 0 ... .max, using: &random)
            if random.chance(50) { code = code & 0x9F5F_5F5F | 0x2020_2020 }
            let format = PixelFormat(code: code)
            #expect(try PixelFormat(json: format.json) == format, "seed \(seed), code \(String(code, radix: 16))")
        }
        #expect(PixelFormat("Y16")?.json == "Y16" && PixelFormat("Y16-BE")?.json == "Y16 -BE")
    }

    @Test func membersThatAreNotKnownAreLeftAlone() throws {
        guard case .object(var members) = SampleDevice.formats[0].json else { return }
        members["inTenYears"] = 1
        #expect(try CaptureFormat(json: .object(members)) == SampleDevice.formats[0])
        guard case .object(var control) = SampleDevice.controls[0].json(value: nil) else { return }
        control["flags"] = ["slider", "in-ten-years"]
        #expect(try CaptureControl(json: .object(control)) == SampleDevice.controls[0])
    }

    @Test func rowsThatAreAlikeSayWhichTheyAre() throws {
        #expect(SampleDevice.formats[0].json["variant"] == nil)
        let size = Dimensions(width: 640, height: 480)
        let rows = ["30", "60"].enumerated().map { index, variant in
            CaptureFormat(
                id: "f\(index)", pixelFormat: .nv12, dimensions: size, frameRates: [], variant: variant)
        }
        for row in rows { #expect(try CaptureFormat(json: row.json) == row) }
        let one = FormatSelection(pixelFormat: .nv12, dimensions: size, variant: "60")
        #expect(one.request(in: rows) == .id("f1"))
        let any = FormatSelection(pixelFormat: .nv12, dimensions: size)
        #expect(any.request(id: "f1", in: rows) == .id("f1"))
        #expect(any.request(in: rows) == .size(pixelFormat: .nv12, size))
        #expect(one.request(in: []) == .size(pixelFormat: .nv12, size))
        let settings = DeviceSettings(uniqueID: "u", name: "n", driver: "d", format: one)
        let (change, _) = settings.change(device: "cam0", formats: rows, controls: nil, mode: .exact, path: "cam0")
        #expect(change["activeFormat"] == "f1")
        #expect(DeviceSettings(json: settings.json) == settings)
    }

    @Test func rangesThatAreUpsideDownAreErrors() {
        var format = SampleDevice.formats[5]
        format.frameRates = [FrameRateRange(minFrameDuration: duration(1, 5), maxFrameDuration: duration(1, 50))]
        #expect(throws: BusError.invalidParams("frameRates[0]", "minFrameDuration is longer than maxFrameDuration")) {
            try CaptureFormat(json: format.json)
        }
        format = SampleDevice.formats[5]
        format.sizes?.minimum.height = 1201
        #expect(throws: BusError.invalidParams("sizes", "the smallest size is larger than the largest")) {
            try CaptureFormat(json: format.json)
        }
    }

    /// Every member of a device's JSON replaced, in turn, by something else: an error that names the place, or a value;
    /// never a trap.
    @Test func damagedDevicesAreErrors() throws {
        func damage(_ json: JSONValue, at path: String, _ use: (JSONValue, String) -> Void) {
            for other in [nil, .null, true, -1, 1e300, 9_223_372_036_854_775_807, "x", [], [:]] as [JSONValue?] {
                if let other { use(other, path) }
            }
            switch json {
            case .object(let members):
                for (name, member) in members {
                    var rest = members
                    rest[name] = nil
                    use(.object(rest), path)
                    damage(member, at: path.isEmpty ? name : "\(path).\(name)") { other, place in
                        var changed = members
                        changed[name] = other
                        use(.object(changed), place)
                    }
                }
            case .array(let elements):
                for (index, element) in elements.enumerated() {
                    damage(element, at: "\(path)[\(index)]") { other, place in
                        var changed = elements
                        changed[index] = other
                        use(.array(changed), place)
                    }
                }
            default: break
            }
        }
        var refused = 0
        var device = SampleDevice.description
        device.formats = [device.formats[3], device.formats[5]]
        device.controls = [device.controls[4], device.controls[10]]
        damage(device.json, at: "") { json, place in
            do throws(BusError) {
                _ = try DeviceDescription(json: json)
            } catch {
                refused += 1
                let told = error.data["path"]?.string ?? "none"
                #expect(error.reason == .invalidParams)
                #expect(told.hasPrefix(place) || place.hasPrefix(told), "\(place): \(error.message)")
            }
        }
        #expect(refused > 200)
    }
}
