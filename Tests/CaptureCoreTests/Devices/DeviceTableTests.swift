import CaptureCore
import JSON
import Testing

@Suite("What is remembered of devices")
struct DeviceTableTests {
    private var table = DeviceTable()

    @Test("it says on disk what it knows, and reads it again")
    mutating func roundTrip() throws {
        let facts = CameraFacts(
            node: "/dev/video0", index: 0, device: "/sys/devices/x",
            usb: .init(vendor: "046d", product: "0825", serial: nil, interface: "00"), card: "C", driver: "uvcvideo",
            bus: "usb-1")
        table.update("a", name: "C", at: 5) {
            $0.facts = facts
            $0.alias = "front"
            $0.committed = ["generation": 3]
            $0.isStabilized = true
            $0.isSmooth = true
        }
        table.update("virtual-0", name: "V", at: 6) { $0.made = "cam0" }
        table.update("m", name: "M", at: 7) {
            $0.microphone = MicrophoneFacts(
                node: "/dev/snd/pcmC0D0c", pcm: "hw:CARD=PCH,DEV=0", card: 0, cardID: "PCH", index: 0,
                device: "/sys/devices/y", cardName: "HDA Intel PCH", name: "ALC256 Analog", driver: "snd_hda_intel",
                bus: "")
        }
        table.claims = ["a": .init(place: "p", isShared: true), "b": .init(place: nil, isShared: true)]
        let text = table.json.description
        #expect(try DeviceTable(json: try JSONValue(parsing: text)) == table)
    }

    @Test("an alias that begins with a hyphen, as it once might, becomes another one")
    func migration() throws {
        func entry(_ alias: String) -> JSONValue { ["name": "C", "seen": 1, "alias": .string(alias)] }
        let devices: JSONValue = ["a": entry("-front"), "b": entry("front"), "c": entry("--help"), "d": entry("A b")]
        let table = try DeviceTable(json: ["version": 1, "devices": devices, "claims": [:]])
        #expect(table.entries.mapValues(\.alias) == ["a": "front-1", "b": "front", "c": "help", "d": nil])
    }

    @Test(
        "a damaged one is refused as a whole",
        arguments: [
            "[]", "{}", #"{"version":2,"devices":{},"claims":{}}"#, #"{"version":1,"devices":{"a":{}},"claims":{}}"#,
            #"{"version":1,"devices":{},"claims":{"a":{}}}"#, #"{"version":1,"devices":[],"claims":{}}"#,
            #"{"version":1,"devices":{"a":{"name":"x","seen":1,"facts":{}}},"claims":{}}"#,
            #"{"version":1,"devices":{"a":{"name":"x","seen":1,"microphone":{}}},"claims":{}}"#,
        ])
    func damage(text: String) throws {
        let json = try JSONValue(parsing: text)
        #expect(throws: DeviceTable.Damage.self) { try DeviceTable(json: json) }
    }

    @Test("it is bounded: names and settings stay longest, and what is in use stays in any case")
    mutating func bounds() {
        for number in 0..<400 {
            table.update("d\(number)", name: "", at: Int64(number)) {
                if number % 4 == 0 { $0.alias = "a\(number)" }
                if number == 1 { $0.committed = [:] }
            }
        }
        table.prune(keeping: ["d2"])
        #expect(table.entries.count == DeviceTable.maximumEntries)
        for number in stride(from: 0, to: 400, by: 4) { #expect(table["d\(number)"] != nil) }
        #expect(table["d1"] != nil && table["d2"] != nil && table["d3"] == nil && table["d399"] != nil)
    }

    @Test("devices of clients have a share of their own, and take none of the machine's")
    mutating func shares() {
        for number in 0..<DeviceTable.maximumEntries { table.update("d\(number)", name: "", at: 0) { _ in } }
        // More than there is room for, each worth more than what is remembered of a camera.
        for number in 0..<262 {
            table.update("client-\(number)", name: "", at: Int64(number)) {
                $0.alias = "s\(number)"
                $0.committed = [:]
            }
            table.prune(keeping: ["client-\(number)"])
        }
        #expect(table.entries.keys.count(where: ClientSource.isSource) == DeviceTable.maximumSources)
        for number in 0..<DeviceTable.maximumEntries { #expect(table["d\(number)"] != nil) }
        #expect(table["client-261"] != nil && table["client-0"] == nil)
    }

    @Test("a device's ids are remembered, also those of a table of an earlier version")
    mutating func ids() throws {
        table.update("virtual-0", name: "V", at: 1) { entry in for id in ["cam0", "front", "cam0"] { entry.had(id) } }
        #expect(table["virtual-0"]?.ids == ["cam0", "front"])
        #expect(try DeviceTable(json: table.json) == table)
        table.update("virtual-0", name: "V", at: 1) { entry in for number in 0..<40 { entry.had("n\(number)") } }
        #expect(table["virtual-0"]?.ids.count == DeviceTable.maximumIDs && table["virtual-0"]?.ids.last == "n39")
        func entry(_ made: String, _ alias: String?) -> JSONValue {
            .members(["name": "C", "seen": 1, "made": .string(made), "alias": alias.map(JSONValue.string)])
        }
        let devices: JSONValue = ["a": entry("c-1", "front"), "b": entry("cam1", nil), "client-x": entry("x", "y")]
        let earlier = try DeviceTable(json: ["version": 1, "devices": devices, "claims": [:]])
        #expect(earlier["a"]?.ids == ["c-1", "front"] && earlier["b"]?.ids == ["cam1"])
        #expect(earlier["client-x"]?.ids == [] && earlier["client-x"]?.alias == "y")
    }

    // MARK: Names

    private func device(_ uniqueID: String, alias: String? = nil, made: String? = nil) -> DeviceNames.Device {
        DeviceNames.Device(uniqueID: uniqueID, name: "HD Webcam: C270", alias: alias, made: made)
    }

    @Test("a device's own id is made of its name, with more digits where that is taken; none is left out")
    func names() {
        let one = DeviceNames.assign([device("x")], configured: [:])["x"]?.id ?? ""
        #expect(one == "hd-webcam-c270-\(Slug.digits("x", count: 4))")
        // Another has that id already, and keeps it.
        let both = DeviceNames.assign([device("x"), device("y", made: one)], configured: [:])
        #expect(both["y"]?.id == one)
        #expect(both["x"]?.id == "hd-webcam-c270-\(Slug.digits("x", count: 8))")
        let third = [both["y"]?.id, both["x"]?.id].enumerated().map { device("y\($0)", made: $1) }
        #expect(
            DeviceNames.assign([device("x")] + third, configured: [:])["x"]?.id
                == "hd-webcam-c270-\(Slug.digits("x", count: 16))")
    }

    @Test("the configuration's alias goes before a client's, and a name once made before a new one")
    func precedence() {
        let devices = [device("x", alias: "front"), device("y", alias: "side"), device("z", alias: "side")]
        let names = DeviceNames.assign(devices, configured: ["y": "front"])
        #expect(names["y"]?.id == "front" && names["x"]?.id != "front" && names["z"]?.id == "side")
        #expect(Set(names.values.map(\.id)).count == 3)
        #expect(DeviceNames.owner(of: "front", devices, configured: ["y": "front"]) == "y")
        #expect(DeviceNames.owner(of: "side", devices, configured: ["y": "front"]) == "z")
        #expect(DeviceNames.owner(of: "free", devices, configured: ["unseen": "kept"]) == nil)
        #expect(DeviceNames.owner(of: "kept", devices, configured: ["unseen": "kept"]) == "unseen")
        // Its own id stays a named device's own, for when the name is taken away.
        let named = device("x", alias: "front", made: "hd-webcam-1")
        #expect(DeviceNames.owner(of: "hd-webcam-1", [named], configured: [:]) == "x")
    }

    @Test("whoever calls itself what another device is called gets another id, whenever that one comes")
    func guests() {
        func guest(_ name: String) -> DeviceNames.Device {
            DeviceNames.Device(uniqueID: "a-guest", name: name, preferred: name, made: name, origin: .client)
        }
        #expect(DeviceNames.assign([guest("cam0")], configured: [:])["a-guest"]?.id == "cam0")
        let camera = DeviceNames.Device(uniqueID: "virtual-0", name: "Virtual Camera 0", preferred: "cam0")
        let names = DeviceNames.assign([guest("cam0"), camera, device("x", made: "yard")], configured: [:])
        #expect(names["virtual-0"]?.id == "cam0" && names["a-guest"]?.id.hasPrefix("cam0-") == true)
        let others = DeviceNames.assign([guest("yard"), device("x", made: "yard")], configured: [:])
        #expect(others["x"]?.id == "yard" && others["a-guest"]?.id.hasPrefix("yard-") == true)
        #expect(DeviceNames.collisions([guest("cam0"), camera], configured: [:]).isEmpty)
        // What whoever runs the bus plays is no client's to take, either.
        let replay = DeviceNames.Device(
            uniqueID: "replay-street", name: "street", preferred: "street", made: "street", origin: .replay)
        let played = DeviceNames.assign([guest("street"), replay], configured: [:])
        #expect(played["replay-street"]?.id == "street" && played["a-guest"]?.id.hasPrefix("street-") == true)
    }

    @Test("what is or was a device's id is no client's, by whatever way it comes to ask for it")
    func kept() {
        let camera = DeviceNames.Device(
            uniqueID: "virtual-0", name: "Virtual Camera 0", preferred: "cam0", alias: "x", made: "cam0",
            earlier: ["cam0", "cam", "x"])
        let asks = [
            DeviceNames.Device(uniqueID: "client-1", name: "cam", preferred: "cam", origin: .client),
            DeviceNames.Device(uniqueID: "client-2", name: "b", preferred: "b", alias: "x", origin: .client),
            DeviceNames.Device(uniqueID: "client-3", name: "c", alias: "cam", made: "cam0", origin: .client),
        ]
        let names = DeviceNames.assign(asks + [camera], configured: [:])
        #expect(names["virtual-0"]?.id == "x" && names["client-2"]?.id == "b")
        #expect(names["client-1"]?.id.hasPrefix("cam-") == true && names["client-3"]?.id.hasPrefix("c-") == true)
        for id in ["x", "cam", "cam0"] { #expect(DeviceNames.keeper(of: id, asks + [camera])?.uniqueID == "virtual-0") }
        #expect(DeviceNames.keeper(of: "b", asks + [camera]) == nil)
        // Whoever configures the bus may call a client's device so.
        #expect(DeviceNames.assign(asks + [camera], configured: ["client-1": "cam"])["client-1"]?.id == "cam")
        // Another of the machine's own may have it.
        let other = device("y", alias: "cam")
        #expect(DeviceNames.assign([camera, other], configured: [:])["y"]?.id == "cam")
        #expect(DeviceNames.keeper(of: "cam", [camera, other])?.uniqueID == "y")
    }

    @Test("ids stay with their devices whoever comes and goes, as long as the table holds them", arguments: 0..<30)
    func stable(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var made: [String: String] = [:]
        for _ in 0..<40 {
            let present = Set((0..<20).filter { _ in random.chance(40) }.map { "d\($0)" }).union(made.keys)
            let names = DeviceNames.assign(present.map { device($0, made: made[$0]) }, configured: [:])
            #expect(Set(names.values.map(\.id)).count == present.count)
            for (uniqueID, name) in names {
                #expect(made[uniqueID] == nil || made[uniqueID] == name.id)
                made[uniqueID] = name.made
            }
        }
    }

    // MARK: Order

    @Test("devices are offered as configured, then cameras first, by position, then by name, numbers by value")
    func order() {
        func identity(_ name: String, _ position: DevicePosition) -> DeviceIdentity {
            DeviceIdentity(
                uniqueID: "u-\(name)", localizedName: name, type: .external, position: position, driver: "", bus: "")
        }
        let devices = [
            ("c10", identity("Cam 10", .external)), ("c2", identity("Cam 2", .external)),
            ("f", identity("Front", .front)), ("b", identity("Zback", .back)), ("u", identity("A", .unspecified)),
            ("x", identity("X", .unspecified)), ("y", identity("Y", .unspecified)),
        ].map { (id: $0.0, $0.1) }
        var builtIn = identity("Built In", .unspecified)
        builtIn.type = .builtInWideAngleCamera
        var microphone = identity("A Microphone", .back)
        microphone.mediaType = .audio
        let order = DeviceOrder(configured: ["y", "u-X"])
        let all = devices + [(id: "m", microphone), (id: "in", builtIn)]
        #expect(all.sorted { order.precedes($0, $1) }.map(\.id) == ["y", "x", "b", "f", "in", "c2", "c10", "u", "m"])
    }
}

@Suite("When to search for cameras")
struct SearchScheduleTests {
    private var schedule = SearchSchedule()
    private static let ms: Int64 = 1_000_000

    @Test("a burst is one search, a while after its last event")
    mutating func burst() {
        #expect(schedule.event(at: 0) == [.wake(at: 100 * Self.ms)])
        #expect(schedule.event(at: 60 * Self.ms) == [.wake(at: 160 * Self.ms)])
        #expect(schedule.due(at: 100 * Self.ms) == [.wake(at: 160 * Self.ms)])
        #expect(schedule.due(at: 160 * Self.ms) == [.search])
        #expect(schedule.due(at: 170 * Self.ms) == [])
        #expect(schedule.finished(at: 200 * Self.ms) == [])
    }

    @Test("a burst without end does not put it off for ever")
    mutating func endless() {
        var now: Int64 = 0
        var actions: [SearchSchedule.Action] = []
        while actions != [.search], now < 5000 * Self.ms {
            now += 50 * Self.ms
            actions = schedule.event(at: now)
        }
        #expect(now == 1050 * Self.ms)
    }

    @Test("what comes while it searches is followed by another search")
    mutating func meanwhile() {
        #expect(schedule.demand(at: 0) == [.search])
        #expect(schedule.event(at: 10 * Self.ms) == [])
        #expect(schedule.demand(at: 20 * Self.ms) == [])
        #expect(schedule.finished(at: 30 * Self.ms) == [.search])
        #expect(schedule.finished(at: 40 * Self.ms) == [])
        #expect(schedule.event(at: 50 * Self.ms) == [.wake(at: 150 * Self.ms)])
    }
}
