import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

@testable import Doctor

/// What is read of a machine whose files are made up.
@Suite struct MachineTests {
    private let tree = FakeTree()

    private func facts(
        uid: UInt32 = 1000, groups: Set<UInt32> = [1000], directories: [String] = [], bus: BusReport = BusReport()
    ) -> Facts {
        Machine(root: tree.path, uid: uid, groups: groups) { nodes in
            Dictionary(uniqueKeysWithValues: nodes.map { ($0, .init(processes: [], isComplete: true)) })
        }
        .facts(directories: directories, bus: bus, versions: VersionFacts(program: "1"))
    }

    @Test func `an empty machine has nothing and breaks nothing`() {
        let facts = facts(directories: ["/run/camerabus"])
        #expect(facts.nodes.isEmpty && facts.usb.isEmpty && facts.groups.isEmpty && facts.user.name == nil)
        #expect(facts.directories == [DirectoryFact(path: "/run/camerabus", kind: .missing)])
        #expect(facts.drivers.isUVCAvailable == nil && facts.limits == LimitFacts() && facts.space.isEmpty)
        for result in Checkup.results(facts) { #expect(result.json["outcome"] != nil) }
    }

    @Test func `a camera on USB is found with its node, port and driver`() {
        tree.addRootHub(bus: 1, speed: 480)
        tree.addCamera("1-2", vendor: "046d", product: "082d", name: "C920", serial: "A1B2", driver: "uvcvideo")
        tree.addNode(0, of: "1-2", name: "C920")
        tree.addNode(1, of: "1-2", name: "C920", index: 1)
        let facts = facts()
        let camera = facts.usb.first
        #expect(facts.usb.count == 1 && camera?.port == "1-2" && camera?.serial == "A1B2" && camera?.bus == 1)
        #expect(camera?.isCamera == true && camera?.speed == 480 && camera?.busSpeed == 480)
        #expect(camera?.interfaces.first == .init(name: "1-2:1.0", interfaceClass: "0e", driver: "uvcvideo"))
        #expect(camera?.isAutosuspended == true && camera?.powerStatus == "active" && camera?.version == "2.00")
        #expect(facts.nodes.map(\.path) == ["/dev/video0", "/dev/video1"])
        #expect(facts.nodes.allSatisfy { $0.usb == "1-2" && $0.driver == "uvcvideo" && $0.name == "C920" })
        #expect(facts.nodes.map(\.index) == [0, 1] && facts.nodes[0].file?.mode == 0o660)
        #expect(facts.holders.keys.sorted() == ["/dev/video0", "/dev/video1"])
    }

    @Test func `what the login gives away, and the service's user, are found`() {
        tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nbroken\ncamerabus:x:991:990::/:/bin/false\n")
        tree.write("/run/udev/data/c81:0", "I:1\nG:uaccess\nG:seat\nV:1\n")
        tree.write("/run/udev/data/c116:2", "G:uaccess\nQ:uaccess\n")
        #expect(facts().udev.givesCamerasToLogin == false && facts().service.uid == 991)
        tree.write("/run/udev/data/c81:1", "I:1\nG:uaccess\nQ:uaccess\nV:1\n")
        #expect(facts().udev.givesCamerasToLogin == true)
    }

    @Test func `a sound card that can be recorded from is found with its nodes`() {
        for card in ["card0", "card1"] { tree.write("/sys/class/sound/\(card)/id", "Id\(card.last ?? "?")\n") }
        for name in ["pcmC0D0p", "pcmC1D0c", "pcmC1D2c", "pcmC1D0p", "controlC0", "controlC1", "timer"] {
            tree.write("/sys/class/sound/\(name)/dev", "116:1\n")
        }
        tree.write("/dev/snd/pcmC1D0c", "")
        chmod("\(tree.path)/dev/snd/pcmC1D0c", 0o640)
        let cards = facts().soundCards
        #expect(cards.map(\.id) == ["Id1"])
        let paths = cards.flatMap(\.nodes).map(\.path)
        #expect(paths == ["/dev/snd/pcmC1D0c", "/dev/snd/pcmC1D2c", "/dev/snd/controlC1"])
        #expect(cards.first?.nodes.map { $0.file?.mode } == [0o640, nil, nil])
    }

    @Test func `a device says by itself whether it could be faster`() {
        #expect(
            Machine.isSuperSpeedCapable([5, 0x0F, 22, 0, 2, 7, 0x10, 2, 2, 0, 0, 0, 10, 0x10, 3, 0, 0, 0, 0, 0, 0, 0]))
        #expect(!Machine.isSuperSpeedCapable([5, 0x0F, 12, 0, 1, 7, 0x10, 2, 2, 0, 0, 0]))
        // Cut off, or with lengths that lead nowhere.
        for bytes: [UInt8] in [[], [5], [10, 0x10, 3], [0, 0x10, 3], [255, 0x10, 3], [3, 0x10]] {
            #expect(!Machine.isSuperSpeedCapable(bytes))
        }
    }

    @Test func `users and groups are those of the files`() {
        tree.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1000:Ann:/home/ann:/bin/sh\nbroken\n")
        tree.write("/etc/group", "video:x:44:ann,bob\ncamerabus:x:990:\nbroken:line\n")
        let facts = facts()
        #expect(facts.user == User(uid: 1000, name: "ann", groups: [1000]))
        #expect(
            facts.groups == ["video": GroupFact(gid: 44, members: ["ann", "bob"]), "camerabus": GroupFact(gid: 990)])
    }

    @Test func `the module is looked for where the kernel's lists are`() {
        tree.write("/proc/sys/kernel/osrelease", "6.1.0-9-cloud-amd64\n")
        #expect(facts().drivers.isUVCAvailable == nil)
        let list = "/lib/modules/6.1.0-9-cloud-amd64/modules.dep"
        tree.write(list, "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko\nkernel/a/other.ko: kernel/b/uvcvideo.ko\n")
        #expect(facts().drivers.isUVCAvailable == false)
        tree.write(list, "kernel/drivers/media/usb/uvc/uvcvideo.ko.xz: kernel/x.ko\n")
        #expect(facts().drivers.isUVCAvailable == true)
        #expect(facts().versions.kernel == "6.1.0-9-cloud-amd64")
    }

    @Test func `what keeps the module away is found wherever it stands`() {
        tree.write("/etc/modprobe.d/a.conf", "# blacklist uvcvideo\nblacklist   uvcvideo\nblacklist uvcvideo2\n")
        tree.write(
            "/lib/modprobe.d/b.conf", "install uvcvideo /bin/false\ninstall uvcvideo /sbin/modprobe -i uvcvideo\n")
        tree.write("/etc/modprobe.d/not-read", "blacklist uvcvideo\n")
        tree.write("/proc/cmdline", "quiet module_blacklist=nouveau,uvcvideo\n")
        #expect(
            facts().drivers.blacklists == [
                .init(path: "/etc/modprobe.d/a.conf", line: "blacklist uvcvideo"),
                .init(path: "/lib/modprobe.d/b.conf", line: "install uvcvideo /bin/false"),
                .init(path: "/proc/cmdline", line: "module_blacklist=nouveau,uvcvideo"),
            ])
    }

    @Test func `limits are the hard ones, of the bus where there is one`() {
        func limits(_ files: String) -> String {
            """
            Limit                     Soft Limit           Hard Limit           Units
            Max open files            512                  \(files)                 files
            Max address space         1073741824           unlimited            bytes
            """
        }
        tree.write("/proc/self/limits", limits("1024"))
        tree.write("/proc/77/limits", limits("unlimited"))
        tree.write(
            "/proc/77/status", "Name:\tcamerabusd\nUid:\t990\t991\t990\t990\nGid:\t990\t990\t990\t990\nGroups:\t29 44\n"
        )
        tree.write("/proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   2048 kB\n")
        tree.write("/proc/self/cgroup", "0::/user.slice/a.service\n")
        tree.write("/sys/fs/cgroup/user.slice/memory.max", "65536\n")
        tree.write("/sys/fs/cgroup/user.slice/a.service/memory.max", "max\n")
        let own = facts().limits
        #expect(
            own.descriptors == 1024 && own.addressSpace == 1 << 30 && own.memoryAvailable == 2 << 20 && !own.areOfBus)
        #expect(own.memoryLimit == 65536 && own.memoryLimitGroup == "/user.slice")
        var bus = BusReport(state: .answered)
        bus.pid = 77
        let facts = facts(bus: bus)
        #expect(facts.limits.descriptors == nil && facts.limits.areOfBus)
        #expect(facts.busProcess == ProcessFact(pid: 77, uid: 991, groups: [990, 29, 44]))
    }

    @Test func `what the machine tells of its pressure is seen`() {
        #expect(facts().pressure == PressureFacts())
        tree.write("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        tree.write("/proc/pressure/cpu", "")
        tree.write("/sys/class/thermal/thermal_zone0/trip_point_0_temp", "90000\n")
        tree.write("/sys/class/thermal/thermal_zone1/temp", "40000\n")
        tree.write("/sys/class/thermal/cooling_device0/type", "Fan\n")
        #expect(facts().pressure == PressureFacts(stalls: ["memory"], zones: 1))
    }

    @Test func `a hidden /proc is seen by its options`() {
        tree.write("/proc/self/mounts", "proc /proc proc rw,nosuid,hidepid=invisible,gid=33 0 0\n")
        #expect(facts().processHiding == ProcessHiding(option: "invisible", gid: 33))
        for options in ["rw,relatime", "rw,hidepid=0", "rw,hidepid=off"] {
            tree.write("/proc/self/mounts", "tmpfs /x tmpfs rw,hidepid=2 0 0\nproc /proc proc \(options) 0 0\n")
            #expect(facts().processHiding == nil)
        }
    }

    @Test func `a runtime directory is told with what lives in it`() async throws {
        tree.makeDirectory("/run/a", mode: 0o750)
        tree.makeDirectory("/run/b", mode: 0o777)
        tree.link("/run/c", to: "a")
        tree.write("/run/d", "")
        let socket = "\(tree.path)/run/a/command.sock"
        do {
            let listener = try UnixSocket.listen(at: socket, mode: 0o600)
            #expect(facts(directories: ["/run/a"]).directories[0].socket == .live)
            #expect(UnixSocket.listener(at: socket)?.pid == CurrentProcess.pid)
            withExtendedLifetime(listener.rawValue) {}
        }
        // A child that another test has forked has it, too, until its program begins.
        try await eventually { UnixSocket.listener(at: socket) == nil }
        let directories = facts(directories: ["/run/a", "/run/b", "/run/c", "/run/d"]).directories
        #expect(directories.map(\.kind) == [.directory, .directory, .link, .other])
        #expect(directories[0].mode == 0o750 && directories[0].socket == .dead && directories[1].mode == 0o777)
        #expect(directories[1].socket == .missing && directories[0].uid == CurrentProcess.uid)
    }

    @Test func `who holds the coordinator's lock file is found`() throws {
        tree.makeDirectory("/run/a", mode: 0o700)
        tree.write("/run/a/camerabusd.lock", "")
        var status = stat()
        try check("stat") { stat("\(tree.path)/run/a/camerabusd.lock", &status) }
        let device = UInt64(status.st_dev)
        let major = String((device >> 8) & 0xFFF, radix: 16)
        let minor = String(device & 0xFF | (device >> 12) & 0xFFF00, radix: 16)
        tree.write(
            "/proc/locks",
            "1: POSIX  ADVISORY  WRITE 5 \(major):\(minor):\(status.st_ino) 0 EOF\nbroken\n"
                + "2: FLOCK  ADVISORY  WRITE 4711 \(major):\(minor):\(status.st_ino) 0 EOF\n")
        #expect(facts(directories: ["/run/a"]).directories[0].lockHolder == 4711)
        // Who listens is the service manager, where that has made the socket: then it is the lock's holder that is told
        // of.
        var report = BusReport(state: .unusable("silent"))
        report.pid = 1
        #expect(facts(directories: ["/run/a"], bus: report).bus.pid == 4711)
        tree.write("/proc/locks", "2: FLOCK  ADVISORY  WRITE 4711 \(major):\(minor):1 0 EOF\n")
        #expect(facts(directories: ["/run/a"]).directories[0].lockHolder == nil)
    }

    @Test func `a FIFO in place of a file holds nobody up`() {
        tree.makeDirectory("/etc", mode: 0o755)
        mkfifo("\(tree.path)/etc/group", 0o600)
        #expect(facts().groups.isEmpty)
    }
}
