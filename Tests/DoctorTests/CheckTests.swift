import JSON
import LinuxIO
import Testing

@testable import Doctor

/// Each check by itself, over a machine that is made up.
@Suite struct CheckTests {
    /// A machine of which nothing can be said against: one camera, a bus that serves it, an ordinary user.
    static var sound: Facts {
        var facts = Facts()
        facts.user = User(uid: 1000, name: "ann", groups: [1000, 44, 990])
        facts.groups = [
            "video": GroupFact(gid: 44, members: ["ann", "camerabus"]),
            "camerabus": GroupFact(gid: 990, members: ["ann"]),
            "audio": GroupFact(gid: 29, members: ["camerabus"]),
        ]
        facts.nodes = [
            NodeFact(
                path: "/dev/video0", name: "C920", driver: "uvcvideo", usb: "1-2",
                file: NodeFile(mode: 0o660, uid: 0, gid: 44, isAccessible: true))
        ]
        facts.soundCards = [
            SoundCardFact(
                id: "C920",
                nodes: ["pcmC0D0c", "controlC0"].map { name in
                    NodeFact(
                        path: "/dev/snd/\(name)", name: "C920", driver: "snd-usb-audio", usb: "1-2",
                        file: NodeFile(mode: 0o660, uid: 0, gid: 29, isAccessible: true))
                })
        ]
        facts.usb = [camera("1-2", serial: "A")]
        facts.drivers.isUVCLoaded = true
        facts.drivers.isUVCAvailable = true
        facts.udev = UdevFacts(isRunning: true, rule: "/lib/udev/rules.d/70-camerabus.rules")
        facts.service = ServiceFacts(unit: "/lib/systemd/system/camerabusd.service", hasSystemd: true)
        facts.directories = [
            DirectoryFact(path: "/run/camerabus", mode: 0o750, uid: 991, gid: 990, socket: .live)
        ]
        facts.holders = ["/dev/video0": .init(processes: [], isComplete: true)]
        facts.bus = BusReport(state: .answered)
        facts.bus.directory = "/run/camerabus"
        facts.bus.version = "0.1.0"
        facts.bus.pid = 77
        facts.bus.devices = [device("c920-1")]
        facts.bus.videoPermission = "authorized"
        facts.busProcess = ProcessFact(pid: 77, uid: 991, groups: [990, 44, 29])
        facts.limits.descriptors = 524_288
        facts.limits.memoryAvailable = 4 << 30
        facts.space = [SpaceFact(path: "/run/camerabus", free: 1 << 30, freeFiles: 10_000)]
        facts.versions = VersionFacts(program: "0.1.0", libraries: ["libzmq": "4.3.4"], kernel: "6.1.0-30-amd64")
        return facts
    }

    private static func notes(_ facts: Facts) -> [String] {
        guard case .healthy(_, let notes) = NodePermissionCheck().examine(facts) else { return ["a fault"] }
        return notes
    }

    @Test func `who opens cameras without the bus is noted`() {
        var facts = Self.sound
        #expect(Self.notes(facts).count == 1 && Self.notes(facts)[0].contains("the group video (ann)"))
        facts.groups["video"]?.members = ["camerabus"]
        #expect(Self.notes(facts) == [])
        facts.udev.givesCamerasToLogin = true
        #expect(Self.notes(facts).first?.contains("uaccess") == true)
        facts.udev.givesCamerasToLogin = false
        facts.nodes[0].file = NodeFile(mode: 0o666, uid: 0, gid: 0, isAccessible: true)
        #expect(Self.notes(facts).first?.contains("everybody") == true)
        // As deploy/71-camerabus-only.rules leaves them, also where no bus answers.
        facts.nodes[0].file = NodeFile(mode: 0o600, uid: 991, gid: 44, isAccessible: false)
        #expect(Self.notes(facts) == [])
        facts.bus = BusReport()
        facts.service.uid = 991
        #expect(Self.notes(facts) == [])
        // A bus of one's own takes nothing from anybody.
        facts = Self.sound
        facts.busProcess?.uid = 1000
        #expect(Self.notes(facts) == [])
    }

    @Test(arguments: [(1, "1 virtual camera"), (2, "2 virtual cameras")])
    func `virtual cameras are counted without microphones`(_ count: Int, _ text: String) {
        var facts = Self.sound
        (facts.nodes, facts.usb) = ([], [])
        facts.bus.devices = (0..<count).map { Self.device("cam\($0)", ["mediaType": "video"]) }
        facts.bus.devices.append(Self.device("mic0", ["mediaType": "audio"]))
        #expect(CameraCheck().examine(facts) == .skipped("this machine has no camera; the bus has \(text)"))
        facts.bus.devices.removeFirst(count)
        guard case .faulty = CameraCheck().examine(facts) else {
            Issue.record("a microphone is no camera")
            return
        }
    }

    private static func camera(_ port: String, serial: String? = nil, driver: String? = "uvcvideo") -> USBDeviceFact {
        USBDeviceFact(
            port: port, vendor: "046d", product: "082d", name: "C920", serial: serial,
            interfaces: [.init(name: "\(port):1.0", interfaceClass: "0e", driver: driver)])
    }

    static func device(_ id: String, _ members: [String: JSONValue] = [:]) -> JSONValue {
        let usual: [String: JSONValue] = [
            "id": .string(id), "type": "external", "node": "/dev/video0", "connected": true, "error": .null,
            "worker": ["pid": 88, "state": "running", "restarts": 0, "busySince": .null],
            "activeFormat": ["pixelFormat": "MJPG", "width": 1280, "height": 720], "frameRate": 30,
        ]
        return .object(usual.merging(members) { $1 })
    }

    private static func without(_ change: (inout Facts) -> Void) -> Facts {
        var facts = sound
        facts.bus = BusReport()
        facts.busProcess = nil
        facts.directories = [DirectoryFact(path: "/run/camerabus", kind: .missing)]
        change(&facts)
        return facts
    }

    private static func changed(_ change: (inout Facts) -> Void) -> Facts {
        var facts = sound
        change(&facts)
        return facts
    }

    private func findings(_ facts: Facts) -> [Finding] { Checkup.results(facts).flatMap(\.findings) }

    @Test func `a sound machine has no finding`() {
        #expect(findings(Self.sound).isEmpty, "\(findings(Self.sound))")
        let outcomes = Checkup.results(Self.sound).map(\.json["outcome"])
        #expect(outcomes.allSatisfy { $0 == "healthy" })
    }

    struct Fault: CustomTestStringConvertible, Sendable {
        let id: String
        /// What the finding has to name.
        let words: [String]
        let facts: @Sendable () -> Facts

        var testDescription: String { "\(id): \(words)" }

        init(_ id: String, _ words: String..., facts: @escaping @Sendable () -> Facts) {
            self.id = id
            self.words = words
            self.facts = facts
        }
    }

    /// Each leads to its own finding, and to no other.
    static let faults: [Fault] = [
        Fault("no-bus", "systemctl enable") { without { _ in } },
        Fault("no-bus", "camerabusd") { without { $0.service = ServiceFacts() } },
        Fault("bus-not-reachable", "usermod -aG camerabus ann") {
            without {
                $0.directories = [DirectoryFact(path: "/run/camerabus", mode: 0o750, gid: 990, socket: .forbidden)]
            }
        },
        Fault("bus-silent", "/run/camerabus", "no answer") {
            changed {
                $0.bus.state = .unusable("no answer")
                $0.bus.devices = []
            }
        },
        Fault("runtime-directory-mode", "0777") { changed { $0.directories[0].mode = 0o777 } },
        Fault("runtime-directory-mode", "chmod 0750") { changed { $0.directories[0].mode = 0o700 } },
        Fault("runtime-directory-owner", "uid 5") { changed { $0.directories[0].uid = 5 } },
        Fault("runtime-directory-kind", "symbolic link") { changed { $0.directories[0].kind = .link } },
        Fault("runtime-directory-hidden", "namei") { changed { $0.directories[0].kind = .hidden } },
        Fault("group-missing", "systemd-sysusers") { changed { $0.groups["camerabus"] = nil } },
        Fault("group-not-active", "newgrp video") {
            changed { $0.user.groups = [1000, 990] }
        },
        Fault("no-camera", "--virtual 2") {
            changed {
                ($0.nodes, $0.usb, $0.bus.devices) = ([], [], [])
            }
        },
        Fault("driver-not-loaded", "sudo modprobe uvcvideo", "C920") {
            changed {
                $0.usb = [camera("1-2", serial: "A", driver: nil)]
                $0.drivers.isUVCLoaded = false
            }
        },
        Fault("driver-blacklisted", "/etc/modprobe.d/x.conf", "blacklist uvcvideo") {
            changed {
                $0.usb = [camera("1-2", serial: "A", driver: nil)]
                $0.drivers.isUVCLoaded = false
                $0.drivers.blacklists = [.init(path: "/etc/modprobe.d/x.conf", line: "blacklist uvcvideo")]
            }
        },
        Fault("driver-missing", "cloud", "linux-image-amd64") {
            changed {
                $0.usb = [camera("1-2", serial: "A", driver: nil)]
                $0.drivers.isUVCLoaded = false
                $0.drivers.isUVCAvailable = false
                $0.versions.kernel = "6.1.0-9-cloud-amd64"
            }
        },
        Fault("driver-unbound", "echo 1-2:1.0") { changed { $0.usb = [camera("1-2", serial: "A", driver: nil)] } },
        Fault("driver-other", "usbfs") { changed { $0.usb = [camera("1-2", serial: "A", driver: "usbfs")] } },
        Fault("node-missing", "/dev/video0") { changed { $0.nodes[0].file = nil } },
        Fault("node-not-permitted", "the bus", "usermod -aG video") { changed { $0.busProcess?.groups = [990, 29] } },
        Fault("sound-missing", "/dev/snd/pcmC0D0c", "match=sound") {
            changed { $0.soundCards[0].nodes[0].file = nil }
        },
        Fault("sound-not-permitted", "/dev/snd/pcmC0D0c", "the bus", "usermod -aG audio") {
            changed { $0.busProcess?.groups = [990, 44] }
        },
        Fault("sound-without-group", "/dev/snd/controlC0", "group audio", "rules.d") {
            changed { $0.soundCards[0].nodes[1].file?.mode = 0o600 }
        },
        Fault("group-not-active", "newgrp audio") { changed { $0.groups["audio"]?.members = ["ann"] } },
        Fault("udev-not-running", "systemd-udevd") { changed { $0.udev.isRunning = false } },
        Fault("camera-held", "ffmpeg", "pid 4242", "kill 4242") {
            changed { $0.holders["/dev/video0"]?.processes = [DeviceHolder(pid: 4242, uid: 1000, name: "ffmpeg")] }
        },
        Fault("camera-held", "motion", "systemctl stop motion") {
            changed {
                let foreign: JSONValue = ["uid": 110, "pid": 99, "name": "motion"]
                $0.bus.usages = [["node": "/dev/video0", "foreign": [foreign], "complete": true]]
            }
        },
        Fault("worker-down", "c920-1", "restarting") {
            changed { $0.bus.devices = [device("c920-1", ["worker": ["state": "restarting", "restarts": 3]])] }
        },
        Fault("driver-hangs", "c920-1") {
            changed {
                $0.bus.devices = [
                    device("c920-1", ["worker": ["state": "running", "restarts": 0, "busySince": 5]])
                ]
            }
        },
        Fault("device-disconnected", "c920-1") {
            changed { $0.bus.devices = [device("c920-1", ["connected": false])] }
        },
        Fault("replay-ended", "played to its end") {
            changed {
                $0.bus.devices = [
                    device(
                        "street",
                        [
                            "connected": false, "driver": "replay",
                            "error": ["reason": "deviceDisconnected", "message": "it has been played to its end"],
                        ])
                ]
            }
        },
        Fault("device-in-use", "camerabus who c920-1") {
            changed { $0.bus.devices = [device("c920-1", ["error": ["reason": "deviceInUse", "message": "busy"]])] }
        },
        Fault("device-error", "internalError: oh") {
            changed { $0.bus.devices = [device("c920-1", ["error": ["reason": "internalError", "message": "oh"]])] }
        },
        Fault("settings-not-restored", "brightness, gain") {
            changed { $0.bus.devices = [device("c920-1", ["notRestored": ["brightness", ["name": "gain"]]])] }
        },
        Fault("rig-incomplete", "stereo", "usb-x") {
            changed {
                $0.bus.rigs = [
                    [
                        "name": "stereo", "configured": true,
                        "devices": [
                            ["id": "c920-1", "uniqueID": "a", "connected": true],
                            ["id": .null, "uniqueID": "usb-x", "connected": false],
                        ],
                    ]
                ]
            }
        },
        Fault("usb-bandwidth", "C920", "--pixel MJPG") {
            changed {
                $0.usb = [camera("1-2", serial: "A"), camera("1-3", serial: "B")]
                $0.bus.devices = [
                    device(
                        "c920-1",
                        ["activeFormat": ["pixelFormat": "YUYV", "width": 1280, "height": 720], "frameRate": 30])
                ]
            }
        },
        Fault("usb-slow-port", "12 Mb/s") { changed { $0.usb[0].speed = 12 } },
        Fault("usb-slow-port", "USB 3") { changed { $0.usb[0].isSuperSpeedCapable = true } },
        Fault("usb-power-error", "power/control") { changed { $0.usb[0].powerStatus = "error" } },
        Fault("descriptor-limit-low", "256") { changed { $0.limits.descriptors = 256 } },
        Fault("memory-low", "100 MiB") { changed { $0.limits.memoryAvailable = 100 << 20 } },
        Fault("memory-limit-low", "/x.slice") {
            changed { ($0.limits.memoryLimit, $0.limits.memoryLimitGroup) = (64 << 20, "/x.slice") }
        },
        Fault("address-space-limited", "ulimit -v") { changed { $0.limits.addressSpace = 1 << 30 } },
        Fault("disk-full", "/run/camerabus") { changed { $0.space[0].free = 4096 } },
        Fault("disk-full", "df -i") { changed { $0.space[0].freeFiles = 3 } },
        Fault("processes-hidden", "hidepid=2") { changed { $0.processHiding = ProcessHiding(option: "2") } },
        Fault("processes-hidden", "usermod -aG video $(id -nu 991)") {
            changed {
                $0.processHiding = ProcessHiding(option: "2", gid: 44)
                $0.busProcess?.groups = [990, 29]
                $0.nodes[0].file?.gid = 990
            }
        },
        Fault("pressure-serious", "cpu", "pcpu") {
            changed { $0.bus.pressure = ["level": "serious", "factors": ["cpu"]] }
        },
        Fault("pressure-shutdown", "memory", "stopped", "rss") {
            changed { $0.bus.pressure = ["level": "shutdown", "factors": ["memory"]] }
        },
        Fault("version-mismatch", "0.0.9") { changed { $0.bus.version = "0.0.9" } },
    ]

    @Test(arguments: faults) func `a fault is named, alone, with what mends it`(_ fault: Fault) {
        let found = findings(fault.facts())
        #expect(found.map(\.id) == [fault.id], "\(found)")
        let text = found.map { "\($0.subject ?? "") \($0.meaning) \($0.remedy)" }.joined()
        for word in fault.words { #expect(text.contains(word), "\(text)") }
        #expect(found.allSatisfy { !$0.remedy.isEmpty && !$0.meaning.isEmpty })
    }

    @Test func `what of the machine's pressure nobody tells is noted, and is no fault`() {
        func outcome(_ change: (inout Facts) -> Void) -> Outcome { PressureCheck().examine(Self.changed(change)) }
        let known = PressureFacts(stalls: ["cpu", "memory", "io"], zones: 1)
        #expect(outcome { $0.pressure = known } == .healthy("the bus does not watch it"))
        #expect(
            outcome {
                $0.bus.pressure = ["level": "fair", "factors": ["cpu"]]
                $0.bus.pressureSources = [
                    "cpu": "trigger", "memory": "trigger", "io": "trigger", "systemTemperature": "reading",
                ]
            } == .healthy("fair"))
        let poor = outcome {
            $0.bus.pressure = ["level": "nominal", "factors": []]
            $0.bus.pressureSources = ["cpu": "reading", "memory": "none", "io": "none", "systemTemperature": "none"]
        }
        guard case .healthy("nominal", let notes) = poor else { return #expect(Bool(false), "\(poor)") }
        #expect(notes.count == 3 && notes[0].contains("memory and disks") && notes[1].contains("processors"))
        #expect(notes[2].contains("temperature"))
    }

    @Test func `ids are words that scripts can rely on`() {
        let checks = Checkup.checks.map(\.id)
        #expect(Set(checks).count == checks.count)
        for id in checks + Self.faults.map(\.id) { #expect(id.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil, "\(id)") }
    }

    @Test func `what is put into commands is one word of them`() {
        #expect("/run/camerabus".shellWord == "/run/camerabus")
        #expect("".shellWord == "''" && "/a b".shellWord == "'/a b'" && "x'; rm *".shellWord == #"'x'\''; rm *'"#)
        let facts = Self.without {
            $0.directories = [DirectoryFact(path: "/tmp/$(reboot)", mode: 0o777, uid: 1000)]
        }
        #expect(findings(facts).contains { $0.remedy == "chmod 0700 '/tmp/$(reboot)'" })
    }

    @Test func `a killed bus leaves its socket, and one that hangs is named`() {
        let left = Self.without {
            $0.directories = [DirectoryFact(path: "/tmp/camerabus-1000", uid: 1000, socket: .dead)]
        }
        #expect(findings(left).map(\.id) == ["bus-left-over"])
        let hung = Self.without {
            $0.directories = [DirectoryFact(path: "/tmp/camerabus-1000", uid: 1000, socket: .dead, lockHolder: 4711)]
            $0.service = ServiceFacts()
        }
        #expect(findings(hung).map(\.id) == ["bus-hung"])
        #expect(findings(hung)[0].remedy == "kill 4711")
    }

    @Test func `a directory in which somebody else's bus may run is left alone`() {
        let theirs = Self.without {
            $0.directories = [DirectoryFact(path: "/tmp/theirs", mode: 0o700, uid: 0, socket: .forbidden)]
            $0.user = User(uid: 1001, name: "bob", groups: [1001])
            $0.groups["camerabus"] = nil
        }
        let found = findings(theirs).filter { $0.subject == "/tmp/theirs" }
        #expect(found.map(\.id).sorted() == ["bus-not-reachable", "runtime-directory-owner"])
        #expect(found.allSatisfy { $0.remedy == "ls -ld /tmp/theirs" }, "\(found)")
    }

    @Test func `a node that only root may open is told with the rule that is missing`() {
        let facts = Self.without {
            $0.nodes[0].file = NodeFile(mode: 0o600, uid: 0, gid: 0, isAccessible: false)
            $0.udev.rule = nil
        }
        let found = findings(facts).filter { $0.id != "no-bus" }
        #expect(found.map(\.id) == ["node-without-group", "udev-rule-missing"])
        #expect(found[0].remedy.contains("/etc/udev/rules.d/70-camerabus.rules"))
        let root = Self.without {
            $0.user = User(uid: 0, name: "root", groups: [0])
            $0.nodes[0].file = NodeFile(mode: 0o660, uid: 0, gid: 44, isAccessible: true)
        }
        #expect(findings(root).map(\.id) == ["no-bus"])
    }

    @Test func `who is not in the group is told so, and how`() {
        let facts = Self.without {
            $0.user = User(uid: 1001, name: "bob", groups: [1001])
            $0.nodes[0].file?.isAccessible = false
        }
        let found = findings(facts)
        // It is the service that opens cameras: who joined the group video would go around its locks.
        #expect(found.map(\.id) == ["no-bus", "not-in-group"])
        #expect(found.last?.remedy == "sudo usermod -aG camerabus bob")
        let own = Self.without {
            $0.user = User(uid: 1001, name: "bob", groups: [1001])
            $0.nodes[0].file?.isAccessible = false
            $0.service = ServiceFacts()
        }
        let other = findings(own).first { $0.id == "node-not-permitted" }
        #expect(other?.remedy == "sudo usermod -aG video bob")
        let shut = Self.without { $0.groups["video"]?.gid = 7 }
        let service = findings(shut).first { $0.id == "node-not-permitted" }
        #expect(service?.remedy.hasSuffix(" camerabus") == true && service?.meaning.contains("the service") == true)
    }

    @Test func `the group of the bus's directory is the one that its configuration names`() {
        let left = Self.without {
            $0.directories = [DirectoryFact(path: "/run/camerabus", mode: 0o750, uid: 991, gid: 7, socket: .missing)]
        }
        let found = findings(left).first { $0.id == "runtime-directory-group" }
        #expect(found?.meaning.contains("gid 7") == true)
        #expect(findings(Self.changed { $0.directories[0].gid = 7 }).isEmpty)
    }

    @Test func `what can't be seen is said, and is no finding`() {
        let facts = Self.changed { $0.holders = ["/dev/video0": .init(processes: [], isComplete: false)] }
        #expect(findings(facts).isEmpty)
        let result = HolderCheck().examine(facts)
        guard case .healthy(_, let notes) = result else { return #expect(Bool(false), "\(result)") }
        #expect(notes.first?.contains("sudo camerabus doctor") == true)
    }

    @Test func `the bus's own worker is no foreign holder`() {
        let facts = Self.changed {
            $0.holders["/dev/video0"]?.processes = [DeviceHolder(pid: 88, uid: 991, name: "camerabus-worke")]
        }
        #expect(findings(facts).isEmpty)
    }

    @Test(arguments: [
        ("notDetermined", "permission-not-asked", "camerabus ask video"),
        ("denied", "permission-denied", "camerabus allow 1000 video"),
        ("restricted", "permission-restricted", "camerabus.toml"),
    ])
    func `who may not see cameras is told how to come to it`(_ status: String, _ id: String, _ remedy: String) throws {
        let facts = Self.changed { $0.bus.videoPermission = status }
        guard case .faulty(let findings, _) = PermissionCheck().examine(facts) else {
            Issue.record("\(status) is no fault")
            return
        }
        #expect(findings.map(\.id) == [id])
        #expect(findings.first?.remedy.contains(remedy) == true)
    }

    @Test func `what is worth knowing and no fault is a note`() {
        func notes(_ check: any Check, _ change: (inout Facts) -> Void) -> String {
            guard case .healthy(_, let notes) = check.examine(Self.changed(change)) else { return "no health" }
            return notes.joined(separator: "\n")
        }
        #expect(
            notes(IdentityCheck()) { $0.usb = [Self.camera("1-2"), Self.camera("1-3")] }.contains("no serial number"))
        #expect(
            notes(IdentityCheck()) { $0.usb = [Self.camera("1-2", serial: "1"), Self.camera("1-3", serial: "1")] }
                .contains("the same serial number"))
        #expect(notes(PermissionCheck()) { $0.bus.waitingRequests = 2 }.contains("camerabus permissions"))
        #expect(notes(VirtualDriverCheck()) { $0.drivers.virtual = ["v4l2loopback"] }.contains("v4l2loopback"))
        #expect(notes(USBPowerCheck()) { $0.usb[0].isAutosuspended = true }.contains("/1-2/power/control"))
        #expect(
            notes(BandwidthCheck()) { $0.usb.append(Self.camera("1-3")) }.contains("C920 (USB 1-2), C920 (USB 1-3)"))
        #expect(notes(PortSpeedCheck()) { $0.usb[0].version = "2.10" }.contains("USB 3"))
        #expect(
            notes(WorkerCheck()) {
                $0.bus.devices = [Self.device("a", ["worker": ["state": "running", "restarts": 2]])]
            }.contains("2 restarts"))
    }

    @Test func `answers of a strange bus break nothing`() {
        let strange: [JSONValue] = [
            .null, 5, "x", [], [:], ["worker": 5, "error": 7, "notRestored": 3, "connected": "no"],
            ["node": "/dev/video0", "activeFormat": ["pixelFormat": "YUYV", "width": -5, "height": .integer(.max)]],
            [
                "node": "/dev/video0", "frameRate": .number(1e300),
                "activeFormat": ["pixelFormat": "YUYV", "width": .integer(.max), "height": .integer(.max)],
            ],
            ["worker": ["pid": .integer(.max), "restarts": .integer(.min)]],
        ]
        for value in strange {
            let facts = Self.changed {
                $0.usb.append(Self.camera("1-3", serial: "B"))
                $0.bus.devices = [value, value]
                $0.bus.rigs = [value, ["devices": [value]]]
                $0.bus.usages = [value, ["node": "/dev/video0", "foreign": [value, ["pid": .integer(.max)]]]]
            }
            _ = Checkup.results(facts).map(\.json)
        }
    }
}
