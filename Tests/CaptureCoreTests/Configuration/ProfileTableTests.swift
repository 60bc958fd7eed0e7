import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite("Profiles and rigs, as they are kept")
struct ProfileTableTests {
    private static func settings(_ uniqueID: String, name: String = "Cam") -> DeviceSettings {
        DeviceSettings(
            uniqueID: uniqueID, name: name, driver: "uvcvideo",
            format: FormatSelection(
                pixelFormat: .motionJPEG, dimensions: Dimensions(width: 1280, height: 720)),
            frameDuration: FrameDuration(1001, 30000),
            controls: [
                "brightness": .integer(5), "hdr": .boolean(true), "curve": .integers([1, 2]), "title": .string("x"),
            ])
    }

    private static let editor = Editor(uid: 1000, isAdmin: false)

    private static func control(
        _ name: String, _ type: ControlType = .integer, flags: [ControlFlag] = [], value: JSONValue
    ) -> JSONValue {
        let control = CaptureControl(
            name: name, title: name, id: 0x980900, type: type, minimum: 0, maximum: 100, step: 1, defaultValue: 0,
            menu: type == .menu ? [0: .name("Off"), 2: .name("On")] : [:], flags: Set(flags), category: "user")
        var members = control.json(value: nil).object ?? [:]
        members["value"] = value
        return .object(members)
    }

    @Test("a profile says on disk what it knows, and is read again")
    func roundTrip() throws {
        var table = ProfileTable()
        try table.save(
            Profile(devices: [Self.settings("a"), Self.settings("b")], saved: 5), as: "day", by: Self.editor)
        try table.save(
            Profile(devices: [DeviceSettings(uniqueID: "c", name: "", driver: "")], saved: 6), as: "x", by: Self.editor)
        #expect(try ProfileTable(json: try JSONValue(parsing: table.json.description)) == table)
        var rigs = RigTable()
        try rigs.set(Rig(devices: ["a", "b"], tolerance: 5), as: "stereo", by: Self.editor)
        rigs.configured = ["fixed": Rig(devices: ["c"])]
        let read = try RigTable(json: try JSONValue(parsing: rigs.json.description))
        #expect(read.made == rigs.made && read.configured.isEmpty)
    }

    @Test("names that began with a hyphen, as they once might, get another one")
    func migration() throws {
        let devices: JSONValue = [Self.settings("a").json]
        let profiles: JSONValue = ["-x": ["saved": 1, "devices": devices], "x": ["saved": 2, "devices": devices]]
        let table = try ProfileTable(json: ["version": 1, "profiles": profiles])
        #expect(table["x"]?.saved == 2 && table["x-1"]?.saved == 1)
        let names = ["-", "--a", "-" + String(repeating: "b", count: 31)]
        let rigs = JSONValue.object(
            Dictionary(uniqueKeysWithValues: names.map { ($0, ["devices": ["d"]] as JSONValue) }))
        let made = try RigTable(json: ["version": 1, "rigs": rigs]).made
        #expect(Set(made.keys) == ["renamed-1", "a", String(repeating: "b", count: 31)])
    }

    @Test("what is too much, or has no name, is refused")
    func limits() throws {
        var table = ProfileTable()
        let profile = Profile(devices: [Self.settings("a")], saved: 0)
        for name in ["", "A", "a b", "ä", "-x", "-", String(repeating: "x", count: 33)] {
            #expect(throws: BusError.self) { try table.save(profile, as: name, by: Self.editor) }
        }
        var huge = profile
        huge.devices[0].controls["table"] = .integers(Array(repeating: 1_000_000, count: 20_000))
        #expect(throws: BusError.self) { try table.save(huge, as: "huge", by: Self.editor) }
        for number in 0..<ProfileTable.maximumOfUser { try table.save(profile, as: "p\(number)", by: Self.editor) }
        #expect(throws: BusError.self) { try table.save(profile, as: "more", by: Self.editor) }
        try table.save(profile, as: "p7", by: Self.editor)
        try table.delete("p7", by: Self.editor)
        #expect(throws: BusError.self) { try table.delete("p7", by: Self.editor) }
        try table.save(profile, as: "more", by: Self.editor)
        // What one user has leaves places to the others.
        let (other, admin) = (Editor(uid: 1001, isAdmin: false), Editor(uid: 0, isAdmin: true))
        try table.save(profile, as: "others", by: other)
        for number in table.profiles.count..<ProfileTable.maximumProfiles {
            try table.save(profile, as: "a\(number)", by: admin)
        }
        for editor in [other, admin] {
            #expect(throws: BusError.self) { try table.save(profile, as: "last", by: editor) }
        }

        var rigs = RigTable()
        for number in 0..<RigTable.maximumOfUser {
            try rigs.set(Rig(devices: ["a"]), as: "r\(number)", by: Self.editor)
        }
        #expect(throws: BusError.self) { try rigs.set(Rig(devices: ["a"]), as: "more", by: Self.editor) }
        for number in rigs.made.count..<RigTable.maximumRigs {
            try rigs.set(Rig(devices: ["a"]), as: "a\(number)", by: admin)
        }
        #expect(throws: BusError.self) { try rigs.set(Rig(devices: ["a"]), as: "last", by: admin) }
        rigs.configured = ["r1": Rig(devices: ["b"])]
        #expect(rigs["r1"]?.devices == ["b"])
        #expect(throws: BusError.self) { try rigs.set(Rig(devices: ["a"]), as: "r1", by: Self.editor) }
        #expect(throws: BusError.self) { try rigs.delete("r1", by: Self.editor) }
    }

    @Test("what is of another user, or of nobody, only administrators change, and that makes it no one else's")
    func owners() throws {
        let (other, admin) = (Editor(uid: 1001, isAdmin: false), Editor(uid: 0, isAdmin: true))
        func refusal(_ body: () throws -> Void) -> BusError? {
            do {
                try body()
                return nil
            } catch { return error as? BusError }
        }
        var table = ProfileTable()
        let profile = Profile(devices: [Self.settings("a")], saved: 1)
        try table.save(profile, as: "day", by: Self.editor)
        let stolen = refusal { try table.save(profile, as: "day", by: other) }
        #expect(stolen?.reason == .unauthorized && stolen?.data["owner"] == 1000 && stolen?.data["needed"] == "admin")
        #expect(stolen?.message.contains("The profile 'day' belongs to uid 1000") == true)
        #expect(refusal { try table.delete("day", by: other) } != nil)
        var changed = profile
        changed.saved = 2
        try table.save(changed, as: "day", by: admin)
        #expect(table["day"]?.owner == 1000 && table["day"]?.saved == 2)
        #expect(try ProfileTable(json: table.json) == table)
        try table.delete("day", by: Self.editor)

        var rigs = RigTable()
        try rigs.set(Rig(devices: ["a"]), as: "pair", by: Self.editor)
        #expect(refusal { try rigs.set(Rig(devices: ["b"]), as: "pair", by: other) }?.data["rig"] == "pair")
        #expect(refusal { try rigs.delete("pair", by: other) }?.reason == .unauthorized)
        try rigs.set(Rig(devices: ["b"]), as: "pair", by: admin)
        #expect(rigs["pair"]?.owner == 1000 && rigs["pair"]?.devices == ["b"])
        #expect(try RigTable(json: rigs.json) == rigs)
        try rigs.delete("pair", by: Self.editor)

        // Those of an earlier version.
        table = try ProfileTable(
            json: ["version": 1, "profiles": ["old": ["saved": 1, "devices": [Self.settings("a").json]]]])
        rigs = try RigTable(json: ["version": 1, "rigs": ["old": ["devices": ["a"]]]])
        let nobodys = refusal { try table.delete("old", by: Self.editor) }
        #expect(nobodys?.data["owner"] == .null && nobodys?.message.contains("belongs to the administrators") == true)
        #expect(refusal { try rigs.set(Rig(devices: ["b"]), as: "old", by: Self.editor) } != nil)
        try rigs.set(Rig(devices: ["b"]), as: "old", by: admin)
        #expect(rigs["old"]?.owner == nil)
        try table.delete("old", by: admin)
    }

    @Test(
        "a damaged one is refused as a whole",
        arguments: [
            "[]", "{}", #"{"version":2,"profiles":{},"rigs":{}}"#, #"{"version":1}"#,
            #"{"version":1,"profiles":{"a":{"saved":1,"devices":[]}},"rigs":{"a":{"devices":[]}}}"#,
            #"{"version":1,"profiles":{"A":{"saved":1,"devices":[{}]}},"rigs":{"A":{"devices":["x"]}}}"#,
            #"{"version":1,"profiles":{"a":{"saved":1,"devices":[{"uniqueID":"x"}]}},"rigs":{"a":{"devices":["x","x"]}}}"#,
            #"{"version":1,"profiles":{"a":5},"rigs":{"a":{"devices":["x"],"tolerance":-1}}}"#,
        ])
    func damage(text: String) throws {
        let json = try JSONValue(parsing: text)
        #expect(throws: StoredTableError.self) { try ProfileTable(json: json) }
        #expect(throws: StoredTableError.self) { try RigTable(json: json) }
    }

    @Test("settings are what can be set, lasts and counts")
    func settable() {
        let values = DeviceSettings.settable([
            Self.control("gain", value: 5), Self.control("button", .button, value: .null),
            Self.control("temperature", flags: [.readOnly], value: 5),
            Self.control("exposure", flags: [.inactive], value: 5), Self.control("level", flags: [.volatile], value: 5),
            Self.control("unread", value: .null), [:], 5, Self.control("mode", .menu, value: 2),
        ])
        #expect(values == ["gain": .integer(5), "mode": .integer(2)])
    }

    @Test("a device gets its own settings, the only ones, or those of the one like it")
    func choice() {
        let profile = Profile(
            devices: [Self.settings("a", name: "A"), Self.settings("b", name: "B"), Self.settings("c", name: "B")],
            saved: 0)
        #expect(profile.settings(uniqueID: "b", name: "x", driver: "x")?.uniqueID == "b")
        #expect(profile.settings(uniqueID: "new", name: "A", driver: "uvcvideo")?.uniqueID == "a")
        #expect(profile.settings(uniqueID: "new", name: "B", driver: "uvcvideo") == nil)
        #expect(profile.settings(uniqueID: "new", name: "A", driver: "other") == nil)
        let single = Profile(devices: [Self.settings("a")], saved: 0)
        #expect(single.settings(uniqueID: "new", name: "?", driver: "?")?.uniqueID == "a")
    }

    @Test("nearest leaves out what a device can't be told, exact leaves it to the device to refuse")
    func change() throws {
        var settings = Self.settings("a")
        settings.controls = [
            "gain": .integer(5), "mode": .integer(1), "nothing": .integer(1), "fixed": .integer(1), "ok": .integer(2),
        ]
        let known = [
            Self.control("gain", value: 0), Self.control("mode", .menu, value: 0), Self.control("ok", .menu, value: 0),
            Self.control("fixed", flags: [.readOnly], value: 0),
        ].compactMap { try? CaptureControl(json: $0) }
        let (near, leftOut) = settings.change(device: "cam1", controls: known, mode: .nearest, path: "cam1")
        #expect(near["controls"] == ["gain": 5, "ok": 2])
        #expect(leftOut.map(\.path) == ["cam1.controls.fixed", "cam1.controls.mode", "cam1.controls.nothing"])
        #expect(leftOut.allSatisfy { $0.given == .null })
        let (exact, nothing) = settings.change(device: "cam1", controls: known, mode: .exact, path: "cam1")
        #expect(exact["controls"]?.object?.count == 5 && nothing.isEmpty)
        // It is what device.configure takes.
        let change = try ConfigurationChange.parse(exact, path: "")
        let duration = try #require(FrameDuration(1001, 30000))
        #expect(change.device == "cam1" && change.frameRate == .duration(duration))
    }
}
