import Glibc
public import LinuxIO

/// The machine that the doctor looks at: its files, below a root that tests put elsewhere, and what only system calls
/// tell.
///
/// Nothing is changed, no device is opened, and what can't be seen is left out.
public struct Machine: Sendable {
    /// In front of /sys, /proc, /etc, /dev, /run, /lib and the runtime directories.
    public var root: String
    /// Who asks: the effective user and groups.
    public var uid: UInt32
    public var groups: Set<UInt32>
    /// Who has each of some nodes open.
    public var holders: @Sendable (_ nodes: [String]) -> [String: ProcessTable.Holders]

    /// - Parameters default to this machine and this process.
    public init(
        root: String = "", uid: UInt32 = CurrentProcess.uid, groups: Set<UInt32> = CurrentProcess.groups,
        holders: @escaping @Sendable ([String]) -> [String: ProcessTable.Holders] = { ProcessTable.holders(of: $0) }
    ) {
        self.root = root
        self.uid = uid
        self.groups = groups
        self.holders = holders
    }

    var files: FileTree { FileTree(root: root) }

    /// Everything that the checks look at.
    ///
    /// - Parameters:
    ///   - directories: the runtime directories in question.
    ///   - bus: what the bus said.
    ///   - versions: of this program and its libraries; the kernel's is found here.
    public func facts(directories: [String], bus: BusReport, versions: VersionFacts) -> Facts {
        var facts = Facts()
        facts.bus = bus
        facts.groups = groupFacts()
        facts.user = User(uid: uid, name: userName(), groups: groups)
        facts.usb = usbDevices()
        facts.nodes = videoNodes(usb: facts.usb)
        facts.soundCards = soundCards(usb: facts.usb)
        facts.drivers = driverFacts(nodes: facts.nodes)
        facts.udev = udevFacts()
        facts.service = serviceFacts()
        facts.directories = directories.map(directoryFact)
        // Where the service manager has made the socket, it is who listens: then the lock tells whose bus it is.
        if bus.pid == 1 { facts.bus.pid = facts.directories.lazy.compactMap(\.lockHolder).first }
        facts.busProcess = facts.bus.pid.flatMap(process)
        facts.limits = limitFacts(busPID: bus.isAnswering ? facts.busProcess?.pid : nil)
        facts.space = spaceFacts(directories)
        facts.pressure = pressureFacts()
        facts.processHiding = processHiding()
        let seen = holders(facts.nodes.map { files.path($0.path) })
        for node in facts.nodes { facts.holders[node.path] = seen[files.path(node.path)] }
        facts.versions = versions
        facts.versions.kernel = files.text("/proc/sys/kernel/osrelease")
        return facts
    }
}
