import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite("Names of controls")
struct ControlNamesTests {
    @Test(
        "a driver's former text makes the present name",
        arguments: [
            ("White Balance Temperature, Auto", 0x98090C, "white_balance_automatic"),
            ("White Balance Component, Auto", 0x98090C, "white_balance_automatic"),
            ("White Balance Red Component", 0x98090E, "red_balance"),
            ("White Balance Blue Component", 0x98090F, "blue_balance"), ("Hue, Auto", 0x980919, "hue_automatic"),
            ("Exposure, Auto", 0x9A0901, "auto_exposure"),
            ("Exposure (Absolute)", 0x9A0902, "exposure_time_absolute"),
            ("Exposure, Auto Priority", 0x9A0903, "exposure_dynamic_framerate"),
            ("Focus, Auto", 0x9A090C, "focus_automatic_continuous"),
            // The same text on another control is that control's own, and so is another text.
            ("Focus, Auto", 0x980900, "focus_auto"), ("Sharp, Automatic", 0x9A090C, "sharp_automatic"),
        ] as [(String, UInt32, String)])
    func present(_ title: String, _ id: UInt32, _ name: String) {
        #expect(ControlNames.present(CaptureControl.name(ofTitle: title), id: id) == name)
    }

    private func plan(_ controls: [String: JSONValue]) throws(BusError) -> ConfigurationPlan {
        try ConfigurationPlanner(description: SampleDevice.description).plan(
            ConfigurationChange(device: "front", controls: controls), path: "changes[0]",
            current: SampleDevice.current,
            mode: .exact)
    }

    @Test("a request may use a former name, and gets the present one")
    func request() throws {
        let plan = try plan(["exposure_absolute": 100, "exposure_auto": "Manual Mode"])
        #expect(
            plan.controls == [
                PlannedControl(name: "auto_exposure", value: .integer(1)),
                PlannedControl(name: "exposure_time_absolute", value: .integer(100)),
            ])
    }

    @Test("two names of one control in one request are refused, at the second")
    func twice() {
        let error = #expect(throws: BusError.self) { try plan(["focus_auto": 1, "focus_automatic_continuous": 0]) }
        #expect(error?.reason == .invalidParams)
        #expect(error?.data["path"] == "changes[0].controls.focus_automatic_continuous")
    }

    @Test("a control of a driver's own name is found by the common ones")
    func common() {
        let control = CaptureControl(name: "shutter_mode", title: "Shutter Mode", id: 0x9A0901, type: .menu)
        for name in ["shutter_mode", "auto_exposure", "exposure_auto"] {
            #expect(ControlNames.control(name, in: [control]) == control)
        }
        #expect(ControlNames.control("focus_auto", in: [control]) == nil)
        #expect(ControlNames.aliases(of: control) == ["auto_exposure", "exposure_auto"])
        #expect(control.json(value: nil)["aliases"] == ["auto_exposure", "exposure_auto"])
        #expect(SampleDevice.controls[0].json(value: nil)["aliases"] == nil)
    }
}
