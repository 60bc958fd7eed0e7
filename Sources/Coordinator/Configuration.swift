import BusProtocol
public import CaptureCore
public import JSON
public import Settings

/// What `deploy/camerabus.toml` says, every key of which is documented there.
public struct Configuration: Hashable, Sendable {
    /// `bus.runtime_dir`; nil: by the rules of the protocol.
    public var runtimeDirectory: String?
    /// `bus.state_dir`: where aliases and settings are kept; nil: by the rules of ``StateDirectory``.
    public var stateDirectory: String?
    /// `bus.group`: who beside us may connect to the system service, where that group exists.
    public var group = "camerabus"
    /// `bus.log_level`.
    public var logLevel = "info"
    /// `bus.connections_per_user` and `bus.connections`: what exceeds is shut down.
    public var connectionsPerUser = BusLimits.connectionsPerUser
    public var connections = 1024
    /// `devices.hardware`: look for cameras.
    public var usesHardware = true
    /// `devices.virtual`: virtual cameras; nil: two when there is no hardware and no configuration, else none.
    public var virtualCameras: Int?
    /// `devices.virtual_microphones`; nil: one where there are virtual cameras, else none.
    public var virtualMicrophones: Int?
    /// `devices.virtual_profiles`: what each virtual camera is like, in their order; those beyond are plain.
    public var virtualProfiles: [VirtualProfile] = []
    /// `devices.order`: device ids or `uniqueID`s, the first the default device.
    public var order: [String] = []
    /// `[positions]`: where devices look, by device id or `uniqueID`.
    public var positions: [String: DevicePosition] = [:]
    /// `[aliases]`: device id by `uniqueID`.
    public var aliases: [String: String] = [:]
    /// `[[rig]]`: named groups of devices, by name.
    public var rigs: [String: Rig] = [:]
    /// `[usb.<bus>]`: which devices share a bus, by device id or `uniqueID`, where the kernel doesn't tell.
    public var usbLinks: [String: USBLink] = [:]
    /// `permission.default`: the role of who is not named.
    public var standardRole = AuthorizationRole.ask
    /// `[permission.users]` and `[permission.groups]`: roles by name or number.
    public var userRoles: [String: AuthorizationRole] = [:]
    public var groupRoles: [String: AuthorizationRole] = [:]
    /// `permission.gateway`: the user, by name or number, that may ask for those on other machines; nil: the one of the
    /// gateway's service, where there is such a user.
    public var gateway: String?
    /// `permission.remote_role`: what clients on other machines may at most, whatever their keys say.
    public var remoteRole = AuthorizationRole.admin
    /// `permission.view_sound`: whether the role `view` includes sound.
    public var viewHasSound = true
    /// `limits.renditions`: distinct ones of a device at the same time.
    public var renditions = BusLimits.maxRenditions
    /// `limits.ring_memory`: bytes of the rings that one user may have of a device; nil: depends on the memory.
    public var ringMemory: Int?
    /// `limits.photo_reply`: bytes of all photos in one reply.
    public var photoReply = BusLimits.maxPhotoReplyBytes
    /// `worker.idle_close_ms`: how long a device stays open when nobody wants it any more.
    public var idleCloseMilliseconds = 2000
    /// `worker.max_zoom`: the zoom factor that `zoomValue` 1 stands for, where a camera zooms so far; and how far one
    /// is zoomed that can't zoom by itself.
    public var maxZoom = CameraControlMap.defaultMaxZoom
    /// `worker.silence_limit_ms`: how long a stream may go without a frame; 0: for ever.
    public var silenceLimitMilliseconds = 5000

    /// `library.directory`: where movies are kept; nil: `library` in the state directory.
    public var libraryDirectory: String?
    /// `library.shared`: the bus's group may read what is in it.
    public var sharesLibrary = false
    /// `library.roots`: further folders in which clients may have movies written.
    public var libraryRoots: [String] = []
    /// `library.destinations`: media servers to which clients may have movies sent.
    public var libraryDestinations: [StreamURL] = []
    /// `library.min_free`: bytes that movies leave free on their disk at least, whatever the client says.
    public var libraryMinFree: Int64 = 256 << 20
    /// `library.quota`: bytes that the recordings of one user may have; 0: as many as there are.
    public var libraryQuota: Int64 = 0

    /// `pressure.watch`: the machine's pressure.
    public var watchesPressure = true
    /// `pressure.root`: where /proc and /sys are looked for.
    public var pressureRoot = ""
    /// `[[replay]]`: movies and pictures that are cameras.
    public var replays: [ReplayDescription] = []
    /// `[faults]`: scripts of faults, by the id or `uniqueID` of a virtual camera.
    public var faults: [String: JSONValue] = [:]

    public init() {}

    /// What is wrong with a configuration file, and where.
    public typealias ParseError = SettingsError

    /// Reads a file's text. Unknown keys are errors: a misspelled one would else be silently without effect.
    public init(toml text: String) throws(ParseError) {
        var reader = try TableReader(toml: text)
        try reader.section("bus") { bus throws(ParseError) in
            runtimeDirectory = try bus.string("runtime_dir")
            stateDirectory = try bus.string("state_dir")
            group = try bus.string("group") ?? group
            logLevel = try bus.string("log_level", oneOf: Self.logLevels) ?? logLevel
            connectionsPerUser = try bus.integer("connections_per_user", 1...65536) ?? connectionsPerUser
            connections = try bus.integer("connections", 1...65536) ?? connections
        }
        try reader.section("devices") { devices throws(ParseError) in
            usesHardware = try devices.boolean("hardware") ?? usesHardware
            virtualCameras = try devices.integer("virtual", 0...64)
            virtualMicrophones = try devices.integer("virtual_microphones", 0...64)
            for word in try devices.strings("virtual_profiles") ?? [] {
                guard let profile = VirtualProfile(rawValue: word), virtualProfiles.count < 64 else {
                    let words = VirtualProfile.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ParseError(description: "devices.virtual_profiles must be a list of \(words), 64 at most")
                }
                virtualProfiles.append(profile)
            }
            order = try devices.strings("order") ?? order
        }
        try reader.section("positions") { positions throws(ParseError) in
            let words = DevicePosition.allCases.map(\.rawValue)
            for device in positions.names {
                let word = try positions.string(device, oneOf: words)
                self.positions[device] = word.flatMap(DevicePosition.init)
            }
        }
        try reader.section("aliases") { aliases throws(ParseError) in
            for alias in aliases.names {
                guard DeviceID.isValid(alias) else {
                    throw ParseError(
                        description: "aliases.\(alias): an alias is \(DeviceID.form)")
                }
                guard let uniqueID = try aliases.string(alias) else { continue }
                if let other = self.aliases[uniqueID] {
                    throw ParseError(description: "aliases.\(alias): \(uniqueID) has the alias \(other) already")
                }
                self.aliases[uniqueID] = alias
            }
        }
        try reader.tables("rig") { rig throws(ParseError) in
            let (name, rig) = try Self.rig(&rig)
            guard rigs.updateValue(rig, forKey: name) == nil else {
                throw ParseError(description: "rig: two rigs are called '\(name)'")
            }
        }
        try reader.section("usb") { buses throws(ParseError) in
            for name in buses.names {
                try buses.section(name) { bus throws(ParseError) in
                    let speed = try bus.integer("speed", 1...100_000) ?? 480
                    let link = USBLink(controller: name, bus: name, speed: speed, busSpeed: speed)
                    for device in try bus.strings("devices") ?? [] { usbLinks[device] = link }
                }
            }
        }
        try reader.section("permission") { permission throws(ParseError) in
            let words = AuthorizationRole.allCases.map(\.rawValue)
            let standard = try permission.string("default", oneOf: words.filter { $0 != "admin" })
            standardRole = standard.flatMap(AuthorizationRole.init) ?? standardRole
            gateway = try permission.string("gateway")
            let remote = try permission.string("remote_role", oneOf: ["none", "view", "control", "admin"])
            remoteRole = remote.flatMap(AuthorizationRole.init) ?? remoteRole
            viewHasSound = try permission.boolean("view_sound") ?? viewHasSound
            try permission.section("users") { users throws(ParseError) in
                for name in users.names {
                    userRoles[name] = try users.string(name, oneOf: words).flatMap(AuthorizationRole.init)
                }
            }
            try permission.section("groups") { groups throws(ParseError) in
                for name in groups.names {
                    groupRoles[name] = try groups.string(name, oneOf: words).flatMap(AuthorizationRole.init)
                }
            }
        }
        try reader.section("limits") { limits throws(ParseError) in
            renditions = try limits.integer("renditions", 1...64) ?? renditions
            ringMemory = try limits.integer("ring_memory", 1 << 20...Int.max)
            photoReply = try limits.integer("photo_reply", 1...BusLimits.maxPhotoReplyBytes) ?? photoReply
        }
        try reader.section("worker") { worker throws(ParseError) in
            idleCloseMilliseconds = try worker.integer("idle_close_ms", 0...3_600_000) ?? idleCloseMilliseconds
            maxZoom = try worker.number("max_zoom", 1...1000) ?? maxZoom
            silenceLimitMilliseconds =
                try worker.integer("silence_limit_ms", 0...3_600_000) ?? silenceLimitMilliseconds
        }
        try reader.section("library") { library throws(ParseError) in
            if let path = try library.string("directory") {
                libraryDirectory = try Self.folder(path, "library.directory")
            }
            sharesLibrary = try library.boolean("shared") ?? sharesLibrary
            for root in try library.strings("roots") ?? [] {
                libraryRoots.append(try Self.folder(root, "library.roots"))
            }
            for destination in try library.strings("destinations") ?? [] {
                libraryDestinations.append(try Self.destination(destination))
            }
            libraryMinFree = try library.integer("min_free", 0...Int.max).map { Int64($0) } ?? libraryMinFree
            libraryQuota = try library.integer("quota", 0...Int.max).map { Int64($0) } ?? libraryQuota
        }
        try reader.section("pressure") { pressure throws(ParseError) in
            watchesPressure = try pressure.boolean("watch") ?? watchesPressure
            pressureRoot = try pressure.string("root") ?? pressureRoot
        }
        try reader.tables("replay") { entry throws(ParseError) in
            replays.append(try Self.replay(&entry, after: replays))
        }
        try reader.section("faults") { faults throws(ParseError) in
            for device in faults.names {
                if let script = faults.json(device) { self.faults[device] = try Self.faultScript(device, script) }
            }
        }
        try reader.finish()
    }

    private static func rig(_ reader: inout TableReader) throws(ParseError) -> (name: String, Rig) {
        guard let name = try reader.string("name"), DeviceID.isValid(name) else {
            throw ParseError(description: "rig.name is required: \(DeviceID.form)")
        }
        let devices = try reader.strings("devices") ?? []
        guard (1...RigTable.maximumDevices).contains(devices.count), Set(devices).count == devices.count else {
            throw ParseError(
                description:
                    "rig.devices of '\(name)' must be 1 to \(RigTable.maximumDevices) device ids or uniqueIDs, each "
                    + "once"
            )
        }
        let tolerance = try reader.integer("tolerance_ms", 0...Int(RigTable.maximumTolerance / 1_000_000))
        return (name, Rig(devices: devices, tolerance: tolerance.map { Int64($0) * 1_000_000 }))
    }

    private static func folder(_ path: String, _ key: String) throws(ParseError) -> String {
        guard path.hasPrefix("/"), !path.utf8.contains(0), !path.split(separator: "/").contains("..") else {
            throw ParseError(description: "\(key) must be absolute, without '..'")
        }
        return path
    }

    private static func destination(_ text: String) throws(ParseError) -> StreamURL {
        guard let url = StreamURL(text), url.user == nil, url.query == nil else {
            throw ParseError(
                description:
                    "library.destinations must be rtsp://, srt:// or rtmp:// URLs, without user, password and query")
        }
        return url
    }

    static let logLevels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
}
