import BusProtocol
import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing

extension KernelTests {
    /// Faults that are really planted, on a machine whose cameras are the kernel's own.
    @Suite(.enabled(if: KernelRing.topology == .single)) struct WhoAndDoctor {
        private let scratch: TemporaryDirectory
        /// Somebody without any right.
        private let nobody: UInt32 = 65534

        init() throws { scratch = try TemporaryDirectory() }

        private func run(
            _ program: String, _ arguments: [String], as user: UInt32? = nil, with options: [String] = []
        ) async throws -> ProgramResult {
            let environment = ["PATH": "\(Programs.directory):/usr/sbin:/usr/bin:/sbin:/bin"]
            var command = [Programs.path(program)] + arguments
            if let user {
                let identity = ["--reuid", "\(user)", "--regid", "\(user)", "--clear-groups"]
                command = ["setpriv"] + identity + options + ["--"] + command
            }
            return try await RunningProgram(
                command[0], Array(command.dropFirst()), environment: environment, scratch: scratch
            ).end(by: .after(seconds: 60))
        }

        /// The findings, each as its id and what it is about.
        private func findings(as user: UInt32? = nil) async throws -> [String: [String]] {
            let result = try await run("camerabus", ["doctor", "--json"], as: user)
            let checks = try #require(JSONValue(parsing: result.standardOutput)["checks"]?.array, "\(result)")
            var found: [String: [String]] = [:]
            for check in checks {
                for finding in check["findings"]?.array ?? [] {
                    found[finding["id"]?.string ?? "", default: []].append(finding["subject"]?.string ?? "")
                }
            }
            #expect(result.status == (found.isEmpty ? 0 : 1))
            return found
        }

        private var nodes: [String] { KernelRing.identities.compactMap(\.node) }

        /// A program that streams from a node, as people's programs do.
        private func streamer(_ node: String) async throws -> RunningProgram {
            let program = try RunningProgram(
                "v4l2-ctl", ["-d", node, "--stream-mmap"], environment: ["PATH": "/usr/bin:/bin"], scratch: scratch)
            // It prints a sign for each frame.
            try await eventually(by: .after(seconds: 60)) { program.standardError.contains("<") }
            return program
        }

        @Test func permissions() async throws {
            let all = Set(DeviceNode.videoNodes())
            let before = try await findings(as: nobody)
            #expect(Set(before["node-without-group"] ?? []) == all, "\(before)")
            defer {
                for node in all {
                    chmod(node, 0o600)
                    chown(node, 0, 0)
                }
            }
            let video = try #require(CurrentProcess.groupID(named: "video"))
            for node in all {
                chown(node, 0, video)
                chmod(node, 0o660)
            }
            let grouped = try await findings(as: nobody)
            #expect(grouped["node-without-group"] == nil)
            #expect(Set(grouped["node-not-permitted"] ?? []) == all, "\(grouped)")
            for node in all { chmod(node, 0o666) }
            let open = try await findings(as: nobody)
            #expect(open["node-not-permitted"] == nil && open["node-without-group"] == nil, "\(open)")
            let root = try await findings()
            #expect(root["node-not-permitted"] == nil && root["node-without-group"] == nil, "\(root)")
        }

        @Test func foreignHolder() async throws {
            let node = try #require(nodes.last)
            #expect(try await findings()["camera-held"] == nil)
            let streamer = try await streamer(node)
            defer { streamer.process.send(SIGKILL) }
            #expect(try await findings()["camera-held"] == [node])
            let words = try await run("camerabus", ["doctor"]).standardOutput
            #expect(words.contains("v4l2-ctl (pid \(streamer.process.pid), uid 0) has \(node) open"), "\(words)")
            let who = try await run("camerabus", ["who", node])
            #expect(who.standardOutput.contains("foreign  v4l2-ctl (pid \(streamer.process.pid), uid 0)"), "\(who)")
            // Who may not look into root's processes is told so.
            let blind = try await run("camerabus", ["who", node, "--json"], as: nobody)
            let usage = try JSONValue(parsing: blind.standardOutput)["devices"]?[0]
            #expect(usage?["foreign"] == [] && usage?["complete"] == false, "\(blind)")
            #expect(blind.standardError.contains("sudo camerabus who"))
            // What the service can be given; one of the two alone is not enough, and does not pass for it.
            for (capabilities, expected) in [("+dac_read_search", 0), ("+dac_read_search,+sys_ptrace", 1)] {
                let some = ["--inh-caps", capabilities, "--ambient-caps", capabilities]
                let result = try await run("camerabus", ["who", node, "--json"], as: nobody, with: some)
                let usage = try JSONValue(parsing: result.standardOutput)["devices"]?[0]
                #expect(usage?["foreign"]?.array?.count == expected, "\(capabilities): \(result)")
                #expect(usage?["complete"] == .bool(expected == 1), "\(capabilities): \(result)")
            }
            streamer.process.send(SIGKILL)
            _ = try await streamer.end()
            #expect(try await findings()["camera-held"] == nil)
        }

        @Test func foreignHolderBesideABus() async throws {
            let bus = try await BusHarness(virtual: nil)
            let client = try RawClient(path: bus.directory.commandSocket)
            let node = try #require(nodes.first)
            var device = ""
            try await eventually(by: .after(seconds: 90)) {
                let devices = try client.call("device.list")["devices"]?.array ?? []
                let found = devices.first { $0["node"]?.string == node && $0["worker"]?["state"] == "running" }
                device = found?["id"]?.string ?? ""
                return !device.isEmpty
            }
            // A machine that is emulated beside other work may be too slow for the coordinator's patience; then it says
            // so.
            func usage(_ expected: JSONValue) async throws {
                try await eventually(by: .after(seconds: 180)) {
                    let usage = try client.call("device.who", ["device": .string(device)], within: 30)
                    guard usage["complete"] == true else { return false }
                    #expect(usage["node"]?.string == node && usage["foreign"] == expected, "\(usage)")
                    return true
                }
            }
            try await usage([])
            let streamer = try await streamer(node)
            defer { streamer.process.send(SIGKILL) }
            try await usage([["uid": 0, "pid": JSONValue(streamer.process.pid), "name": "v4l2-ctl"]])
            let who = try await bus.run("camerabus", ["who", node, "--timeout", "60"], by: .after(seconds: 90))
            #expect(who.standardOutput.contains("\(device)  foreign  v4l2-ctl (pid \(streamer.process.pid)"), "\(who)")
            streamer.process.send(SIGKILL)
            _ = try await streamer.end()
            try await bus.stop()
        }

        @Test func cameraWithoutDriver() async throws {
            let loaded = try await run("modprobe", ["vhci-hcd"])
            #expect(loaded.status == 0, "\(loaded)")
            let camera = try USBCameraWithoutDriver(port: 0)
            defer { withExtendedLifetime(camera) {} }
            let usb = "/sys/bus/usb/devices"
            try await eventually(by: .after(seconds: 60)) {
                (Directory.names(usb) ?? []).contains { $0.hasSuffix(":1.0") && !$0.hasSuffix("-0:1.0") }
            }
            let bare = try await findings()
            #expect(bare["driver-not-loaded"]?.first?.hasPrefix("Camera without driver (USB ") == true, "\(bare)")
            let list = "/etc/modprobe.d/camerabus-test.conf"
            try File.replace(list, with: Array("blacklist uvcvideo\n".utf8), mode: 0o644)
            let blacklisted = try await findings()
            #expect(
                blacklisted["driver-blacklisted"] != nil && blacklisted["driver-not-loaded"] == nil, "\(blacklisted)")
            File.remove(list)
            // The command that mends it, as it is printed. What this camera says is too little for the driver.
            let remedy = try await run("modprobe", ["uvcvideo"])
            #expect(remedy.status == 0, "\(remedy)")
            let mended = try await findings()
            #expect(mended["driver-not-loaded"] == nil && mended["driver-unbound"] != nil, "\(mended)")
            _ = try await run("modprobe", ["-r", "uvcvideo"])
        }

        @Test func descriptorLimit() async throws {
            #expect(try await findings()["descriptor-limit-low"] == nil)
            let limited = try await run(
                "sh", ["-c", "ulimit -n 256; exec \(Programs.path("camerabus")) doctor --json"])
            #expect(limited.status == 1 && limited.standardOutput.contains("\"descriptor-limit-low\""), "\(limited)")
        }

        @Test func runtimeDirectoryAndGroup() async throws {
            let directory = "/run/camerabus"
            let groups = try File.read("/etc/group", limit: 1 << 20)
            defer {
                rmdir(directory)
                try? File.replace("/etc/group", with: groups, mode: 0o644)
            }
            try check("mkdir", directory) { mkdir(directory, 0o777) }
            chmod(directory, 0o777)
            let open = try await findings()
            #expect(open["runtime-directory-mode"] == [directory], "\(open)")
            // A group that is missing, one that this user isn't in, and one that this login doesn't know of yet.
            #expect(try await findings(as: nobody)["group-missing"] == ["camerabus"])
            try File.replace("/etc/group", with: groups + Array("camerabus:x:4242:\n".utf8), mode: 0o644)
            chown(directory, 0, 4242)
            chmod(directory, 0o750)
            #expect(try await findings()["runtime-directory-mode"] == nil)
            #expect(try await findings(as: nobody)["not-in-group"] == ["camerabus"])
            try File.replace("/etc/group", with: groups + Array("camerabus:x:4242:nobody\n".utf8), mode: 0o644)
            #expect(try await findings(as: nobody)["group-not-active"] == ["camerabus"])
        }

        @Test func hiddenProcesses() async throws {
            let hidden = try await run("mount", ["-o", "remount,hidepid=2", "/proc"])
            #expect(hidden.status == 0, "\(hidden)")
            let (others, root) = (try await findings(as: nobody), try await findings())
            let who = try await run("camerabus", ["who", try #require(nodes.first), "--json"], as: nobody)
            let usage = try JSONValue(parsing: who.standardOutput)["devices"]?[0]
            _ = try await run("mount", ["-o", "remount,hidepid=0", "/proc"])
            #expect(usage?["complete"] == false, "\(who)")
            #expect(others["processes-hidden"] == ["/proc"] && root["processes-hidden"] == nil, "\(others)")
            #expect(try await findings(as: nobody)["processes-hidden"] == nil)
        }
    }
}
