/// The names of controls that the kernel's drivers have called differently.
///
/// A control's name is made of its driver's text, and `uvcvideo` took over the kernel's common texts in Linux 5.15: one
/// and the same control was `exposure_auto` before and is `auto_exposure` since. What it is, is told by its id; here
/// its name is the present one under any kernel, and the former ones are understood wherever a client names a control.
public enum ControlNames {
    private struct Entry {
        var id: UInt32
        var name: String
        var former: [String]
    }

    private static let user: UInt32 = 0x0098_0900
    private static let camera: UInt32 = 0x009A_0900

    private static let table: [Entry] = [
        // V4L2_CID_AUTO_WHITE_BALANCE; a camera has the one mode or the other, of temperature or of components.
        Entry(
            id: user + 12, name: "white_balance_automatic",
            former: ["white_balance_temperature_auto", "white_balance_component_auto"]),
        // V4L2_CID_RED_BALANCE, V4L2_CID_BLUE_BALANCE
        Entry(id: user + 14, name: "red_balance", former: ["white_balance_red_component"]),
        Entry(id: user + 15, name: "blue_balance", former: ["white_balance_blue_component"]),
        // V4L2_CID_HUE_AUTO
        Entry(id: user + 25, name: "hue_automatic", former: ["hue_auto"]),
        // V4L2_CID_EXPOSURE_AUTO, V4L2_CID_EXPOSURE_ABSOLUTE, V4L2_CID_EXPOSURE_AUTO_PRIORITY
        Entry(id: camera + 1, name: "auto_exposure", former: ["exposure_auto"]),
        Entry(id: camera + 2, name: "exposure_time_absolute", former: ["exposure_absolute"]),
        Entry(id: camera + 3, name: "exposure_dynamic_framerate", former: ["exposure_auto_priority"]),
        // V4L2_CID_FOCUS_AUTO
        Entry(id: camera + 12, name: "focus_automatic_continuous", former: ["focus_auto"]),
    ]

    /// The name of a control, of the name that its driver's text makes: the present one for a former one.
    ///
    /// A driver that calls a control of this id otherwise keeps its own name.
    public static func present(_ derived: String, id: UInt32) -> String {
        guard let entry = table.first(where: { $0.id == id }), entry.former.contains(derived) else { return derived }
        return entry.name
    }

    /// Other names that a control is known by: its former ones, and the common one where its driver has its own.
    public static func aliases(of control: CaptureControl) -> [String] {
        guard let entry = table.first(where: { $0.id == control.id }) else { return [] }
        return ([entry.name] + entry.former).filter { $0 != control.name }
    }

    /// The control that a name means: the one of this name, else the one that is also known by it.
    public static func control(_ name: String, in controls: [CaptureControl]) -> CaptureControl? {
        if let control = controls.first(where: { $0.name == name }) { return control }
        guard let entry = table.first(where: { $0.name == name || $0.former.contains(name) }) else { return nil }
        return controls.first { $0.id == entry.id }
    }
}
