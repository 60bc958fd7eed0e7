public import LinuxIO

/// The facts about the machine: values only, so that tests can make up any fault.
public struct Facts: Hashable, Sendable {
    /// Who asks.
    public var user = User()
    /// In the order of their numbers.
    public var nodes: [NodeFact] = []
    /// Those that can be recorded from, in the order of their numbers.
    public var soundCards: [SoundCardFact] = []
    public var usb: [USBDeviceFact] = []
    public var drivers = DriverFacts()
    public var udev = UdevFacts()
    public var service = ServiceFacts()
    /// Groups of `/etc/group` by name.
    public var groups: [String: GroupFact] = [:]
    /// Where the bus is, or where one is looked for.
    public var directories: [DirectoryFact] = []
    public var limits = LimitFacts()
    public var space: [SpaceFact] = []
    public var pressure = PressureFacts()
    /// How `/proc` hides processes of others.
    public var processHiding: ProcessHiding?
    /// Who has a node open, by its path; a node that wasn't looked at is absent.
    public var holders: [String: ProcessTable.Holders] = [:]
    public var bus = BusReport()
    /// The way to the bus where that is on another machine; nil: it is to be here.
    public var remote: RemoteFacts?
    /// The process behind the bus's command socket, as `/proc` tells of it.
    public var busProcess: ProcessFact?
    public var versions = VersionFacts()

    public init() {}

    /// Who opens the cameras: the bus; where none answers, the service that is installed, which may be out of the
    /// user's reach; or the user, who would start one.
    var opener: Opener {
        if bus.isAnswering, let busProcess {
            guard busProcess.uid != user.uid else { return asking }
            return Opener(
                uid: busProcess.uid, groups: busProcess.groups, name: "the bus", account: "$(id -nu \(busProcess.uid))")
        }
        if service.unit != nil, service.hasSystemd, user.uid != 0 {
            // Those that its unit names, and those that its user was put into.
            let its = groups.filter { name, group in
                ["camerabus", "video", "audio"].contains(name) || group.members.contains("camerabus")
            }
            return Opener(
                uid: service.uid, groups: Set(its.values.map(\.gid)), name: "the service", account: "camerabus")
        }
        return asking
    }

    private var asking: Opener {
        Opener(uid: user.uid, groups: user.groups, name: "you", account: user.account, isUser: true)
    }

    /// The cameras on USB.
    var usbCameras: [USBDeviceFact] { usb.filter(\.isCamera) }

    func groupName(_ gid: UInt32) -> String { groups.first { $0.value.gid == gid }?.key ?? "gid \(gid)" }
}

/// The user that opens cameras.
struct Opener {
    /// nil: not known, and no owner of devices.
    var uid: UInt32?
    var groups: Set<UInt32>
    /// As a sentence has it: `you`, `the bus`.
    var name: String
    /// For commands.
    var account: String
    var isUser = false
}

/// The user that runs the doctor.
public struct User: Hashable, Sendable {
    public var uid: UInt32 = 0
    /// nil: not in `/etc/passwd`.
    public var name: String?
    /// The groups of this login, the primary one too.
    public var groups: Set<UInt32> = []

    public init(uid: UInt32 = 0, name: String? = nil, groups: Set<UInt32> = []) {
        self.uid = uid
        self.name = name
        self.groups = groups
    }

    /// For commands.
    var account: String { name ?? "\"$(id -un)\"" }
}

/// A group of `/etc/group`.
public struct GroupFact: Hashable, Sendable {
    public var gid: UInt32
    public var members: Set<String>

    public init(gid: UInt32, members: Set<String> = []) {
        self.gid = gid
        self.members = members
    }
}

/// A process, from `/proc`.
public struct ProcessFact: Hashable, Sendable {
    public var pid: Int32
    public var uid: UInt32
    public var groups: Set<UInt32>

    public init(pid: Int32, uid: UInt32, groups: Set<UInt32>) {
        self.pid = pid
        self.uid = uid
        self.groups = groups
    }
}

/// How `/proc` is mounted (`hidepid=`): 1 or more hides other users' processes.
public struct ProcessHiding: Hashable, Sendable {
    /// As it stands in the mount's options: `2`, `invisible`.
    public var option: String
    /// Who sees all nevertheless.
    public var gid: UInt32?

    public init(option: String, gid: UInt32? = nil) {
        self.option = option
        self.gid = gid
    }
}

/// The versions to report.
public struct VersionFacts: Hashable, Sendable {
    /// This program's.
    public var program = ""
    /// Of libraries, by name.
    public var libraries: [String: String] = [:]
    public var kernel: String?

    public init(program: String = "", libraries: [String: String] = [:], kernel: String? = nil) {
        self.program = program
        self.libraries = libraries
        self.kernel = kernel
    }
}
