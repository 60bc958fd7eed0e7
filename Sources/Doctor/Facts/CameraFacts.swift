/// A video node.
public struct NodeFact: Hashable, Sendable {
    /// `/dev/video0`
    public var path: String
    /// The driver's name for it.
    public var name: String
    /// The kernel module behind it; nil: unknown.
    public var driver: String?
    /// Its number among the nodes of one device: the first is the camera, others bring metadata.
    public var index: Int
    /// The USB device that it belongs to (`1-2.4`); nil: none.
    public var usb: String?
    /// nil: sysfs knows the node, and there is no file for it.
    public var file: NodeFile?

    public init(
        path: String, name: String = "", driver: String? = nil, index: Int = 0, usb: String? = nil,
        file: NodeFile? = nil
    ) {
        self.path = path
        self.name = name
        self.driver = driver
        self.index = index
        self.usb = usb
        self.file = file
    }
}

/// Who may open a node.
public struct NodeFile: Hashable, Sendable {
    /// The permission bits.
    public var mode: UInt32
    public var uid: UInt32
    public var gid: UInt32
    /// Whether the user who asks may read and write it, access lists considered.
    public var isAccessible: Bool

    public init(mode: UInt32, uid: UInt32, gid: UInt32, isAccessible: Bool) {
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.isAccessible = isAccessible
    }

    /// Whether the mode lets that user read and write it.
    func permits(uid: UInt32?, groups: Set<UInt32>) -> Bool {
        if uid == 0 { return true }
        if uid == self.uid { return mode & 0o600 == 0o600 }
        if groups.contains(gid) { return mode & 0o060 == 0o060 }
        return mode & 0o006 == 0o006
    }

    /// Whether members of its group may read and write it.
    var isForItsGroup: Bool { mode & 0o060 == 0o060 && gid != 0 }
}

/// A sound card that can be recorded from.
public struct SoundCardFact: Hashable, Sendable {
    /// ALSA's id of it: `PCH`.
    public var id: String
    /// What it is recorded from, and its controls: `/dev/snd/pcmC0D0c`, `/dev/snd/controlC0`.
    public var nodes: [NodeFact]

    public init(id: String, nodes: [NodeFact]) {
        self.id = id
        self.nodes = nodes
    }
}

/// A device on USB.
public struct USBDeviceFact: Hashable, Sendable {
    /// An interface of it.
    public struct Interface: Hashable, Sendable {
        /// `1-2:1.0`
        public var name: String
        /// `0e`: video.
        public var interfaceClass: String
        /// The driver that is bound to it.
        public var driver: String?

        public init(name: String, interfaceClass: String, driver: String? = nil) {
            self.name = name
            self.interfaceClass = interfaceClass
            self.driver = driver
        }
    }

    /// By its port: `1-2.4`.
    public var port: String
    /// The bus's number: all of its devices share one bandwidth.
    public var bus: Int
    /// Megabits a second: 12, 480, 5000.
    public var speed: Double
    /// The root hub's speed.
    public var busSpeed: Double
    /// Four hexadecimal digits each.
    public var vendor: String
    public var product: String
    public var name: String?
    public var serial: String?
    public var interfaces: [Interface]
    /// Whether it says that it can do 5 Gb/s; nil: the kernel doesn't tell.
    public var isSuperSpeedCapable: Bool?
    /// The USB version that it speaks at this port, `2.10`; with 2.10 it may know 3.0 too.
    public var version: String
    /// `power/control` is `auto`.
    public var isAutosuspended: Bool
    /// `power/runtime_status`.
    public var powerStatus: String?

    public init(
        port: String, bus: Int = 1, speed: Double = 480, busSpeed: Double = 480, vendor: String = "1d6b",
        product: String = "0102", name: String? = nil, serial: String? = nil, interfaces: [Interface] = [],
        isSuperSpeedCapable: Bool? = nil, version: String = "2.00", isAutosuspended: Bool = false,
        powerStatus: String? = nil
    ) {
        self.port = port
        self.bus = bus
        self.speed = speed
        self.busSpeed = busSpeed
        self.vendor = vendor
        self.product = product
        self.name = name
        self.serial = serial
        self.interfaces = interfaces
        self.isSuperSpeedCapable = isSuperSpeedCapable
        self.version = version
        self.isAutosuspended = isAutosuspended
        self.powerStatus = powerStatus
    }

    /// USB's video class.
    var videoInterfaces: [Interface] { interfaces.filter { $0.interfaceClass.lowercased() == "0e" } }
    var isCamera: Bool { !videoInterfaces.isEmpty }
    var title: String { "\(name ?? "\(vendor):\(product)") (USB \(port))" }
}

/// The kernel's driver for USB cameras, and drivers of cameras that are none.
public struct DriverFacts: Hashable, Sendable {
    public var isUVCLoaded = false
    /// Whether the kernel has the module; nil: its list of modules can't be read.
    public var isUVCAvailable: Bool?
    /// Where it is kept from being loaded: a file, or the kernel's command line; with the line that does it.
    public var blacklists: [Blacklist] = []
    /// Drivers whose cameras are made of software, that are loaded.
    public var virtual: [String] = []

    public init() {}

    public struct Blacklist: Hashable, Sendable {
        public var path: String
        public var line: String

        public init(path: String, line: String) {
            self.path = path
            self.line = line
        }
    }
}

/// What names nodes and gives them to a group.
public struct UdevFacts: Hashable, Sendable {
    public var isRunning = false
    /// Where our rule is installed.
    public var rule: String?

    /// This is a container, whose devices come from outside.
    public var isContainer = false
    /// Whoever sits at the machine gets cameras from the login (the tag `uaccess`).
    public var givesCamerasToLogin = false

    public init(isRunning: Bool = false, rule: String? = nil, isContainer: Bool = false) {
        self.isRunning = isRunning
        self.rule = rule
        self.isContainer = isContainer
    }
}
