import Glibc

extension Machine {
    /// The nodes that the kernel has, whether or not `/dev` does.
    func videoNodes(usb: [USBDeviceFact]) -> [NodeFact] {
        let directory = "/sys/class/video4linux"
        return files.names(directory)
            .compactMap { name in name.hasPrefix("video") ? Int(name.dropFirst(5)).map { ($0, name) } : nil }
            .sorted { $0.0 < $1.0 }
            .map { _, name in
                let entry = "\(directory)/\(name)"
                let device = files.resolved("\(entry)/device") ?? ""
                return NodeFact(
                    path: "/dev/\(name)", name: files.text("\(entry)/name") ?? name,
                    driver: files.linkName("\(entry)/device/driver"),
                    index: files.text("\(entry)/index").flatMap { Int($0) } ?? 0,
                    usb: usb.first { device.contains("/\($0.port)/") }?.port, file: nodeFile("/dev/\(name)"))
            }
    }

    /// The sound cards that the kernel has and that can be recorded from, whether or not `/dev` has their nodes.
    func soundCards(usb: [USBDeviceFact]) -> [SoundCardFact] {
        let directory = "/sys/class/sound"
        let names = files.names(directory)
        return names.compactMap { $0.hasPrefix("card") ? Int($0.dropFirst(4)) : nil }.sorted().compactMap { number in
            let captures = names.filter { $0.hasPrefix("pcmC\(number)D") && $0.hasSuffix("c") }.sorted()
            guard !captures.isEmpty else { return nil }
            let entry = "\(directory)/card\(number)"
            let id = files.text("\(entry)/id") ?? "\(number)"
            let device = files.resolved("\(entry)/device") ?? ""
            return SoundCardFact(
                id: id,
                nodes: (captures + ["controlC\(number)"]).map { name in
                    NodeFact(
                        path: "/dev/snd/\(name)", name: id, driver: files.linkName("\(entry)/device/driver"),
                        usb: usb.first { device.contains("/\($0.port)/") }?.port, file: nodeFile("/dev/snd/\(name)"))
                })
        }
    }

    private func nodeFile(_ path: String) -> NodeFile? {
        guard let status = files.status(path) else { return nil }
        return NodeFile(
            mode: status.st_mode & 0o7777, uid: status.st_uid, gid: status.st_gid,
            isAccessible: faccessat(AT_FDCWD, files.path(path), R_OK | W_OK, AT_EACCESS) == 0)
    }

    /// What is on USB, hubs left out.
    func usbDevices() -> [USBDeviceFact] {
        let directory = "/sys/bus/usb/devices"
        let names = files.names(directory)
        return names.filter { !$0.contains(":") && !$0.hasPrefix("usb") }.compactMap { port in
            let device = "\(directory)/\(port)"
            guard let vendor = files.text("\(device)/idVendor"), let product = files.text("\(device)/idProduct"),
                files.text("\(device)/bDeviceClass") != "09"
            else { return nil }
            let bus = files.text("\(device)/busnum").flatMap { Int($0) } ?? 0
            let speed = files.text("\(device)/speed").flatMap { Double($0) } ?? 480
            let interfaces = names.filter { $0.hasPrefix("\(port):") }.compactMap { name in
                files.text("\(directory)/\(name)/bInterfaceClass").map {
                    USBDeviceFact.Interface(
                        name: name, interfaceClass: $0, driver: files.linkName("\(directory)/\(name)/driver"))
                }
            }
            return USBDeviceFact(
                port: port, bus: bus, speed: speed,
                busSpeed: files.text("\(directory)/usb\(bus)/speed").flatMap { Double($0) } ?? speed, vendor: vendor,
                product: product, name: files.text("\(device)/product"), serial: files.text("\(device)/serial"),
                interfaces: interfaces,
                isSuperSpeedCapable: files.bytes("\(device)/bos_descriptors").map(Self.isSuperSpeedCapable),
                version: files.text("\(device)/version")?.filter { $0 != " " } ?? "",
                isAutosuspended: files.text("\(device)/power/control") == "auto",
                powerStatus: files.text("\(device)/power/runtime_status"))
        }
    }

    /// Looks for a SuperSpeed capability (3) in a binary device object store (USB 3.2, 9.6.2).
    static func isSuperSpeedCapable(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while let length = rest.first, length >= 3, Int(length) <= rest.count {
            let descriptor = Array(rest.prefix(Int(length)))
            if descriptor[1] == 0x10, descriptor[2] == 0x03 { return true }
            rest = rest.dropFirst(Int(length))
        }
        return false
    }

    func driverFacts(nodes: [NodeFact]) -> DriverFacts {
        var facts = DriverFacts()
        facts.isUVCLoaded = files.exists("/sys/module/uvcvideo")
        facts.isUVCAvailable = isUVCAvailable()
        facts.blacklists = blacklists()
        facts.virtual = ["vivid", "v4l2loopback"].filter { driver in
            files.exists("/sys/module/\(driver)") || nodes.contains { $0.driver == driver }
        }
        return facts
    }

    private func isUVCAvailable() -> Bool? {
        if files.exists("/sys/module/uvcvideo") { return true }
        guard let release = files.text("/proc/sys/kernel/osrelease") else { return nil }
        for base in ["/lib/modules", "/usr/lib/modules"] {
            let lists = ["modules.dep", "modules.builtin"].map { "\(base)/\(release)/\($0)" }.filter(files.exists)
            guard !lists.isEmpty else { continue }
            return lists.contains { list in
                files.bytes(list, limit: 64 << 20).map { Self.hasModule("uvcvideo", $0) } ?? false
            }
        }
        return nil
    }

    /// Whether a line is of that module: `kernel/…/uvcvideo.ko.xz: what it needs`.
    private static func hasModule(_ name: String, _ bytes: [UInt8]) -> Bool {
        let file = Array("/\(name).ko".utf8)
        return bytes.split(separator: UInt8(ascii: "\n")).contains { line in
            let path = line.prefix { $0 != UInt8(ascii: ":") }
            guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return false }
            return path[slash...].starts(with: file)
        }
    }

    /// What keeps the module from being loaded (modprobe.d(5), kernel's command line).
    private func blacklists() -> [DriverFacts.Blacklist] {
        var found: [DriverFacts.Blacklist] = []
        for directory in ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"].map({ "\($0)/modprobe.d" }) {
            for name in files.names(directory) where name.hasSuffix(".conf") {
                let path = "\(directory)/\(name)"
                for line in files.lines(path) where Self.keepsAway(line) {
                    found.append(
                        .init(path: path, line: line.split(whereSeparator: \.isWhitespace).joined(separator: " ")))
                }
            }
        }
        for option in (files.text("/proc/cmdline") ?? "").split(separator: " ") {
            let parts = option.split(separator: "=", maxSplits: 1)
            if parts.count == 2, ["module_blacklist", "modprobe.blacklist"].contains(parts[0]),
                parts[1].split(separator: ",").contains("uvcvideo")
            {
                found.append(.init(path: "/proc/cmdline", line: String(option)))
            }
        }
        return found
    }

    private static func keepsAway(_ line: Substring) -> Bool {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard words.count >= 2, words[1] == "uvcvideo" else { return false }
        if words[0] == "blacklist" { return true }
        return words[0] == "install" && words.count > 2
            && ["false", "true"].contains(words[2].split(separator: "/").last)
    }

    func udevFacts() -> UdevFacts {
        let rule = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"]
            .map { "\($0)/udev/rules.d/70-camerabus.rules" }.first(where: files.exists)
        let marks = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"]
        var facts = UdevFacts(
            isRunning: files.exists("/run/udev/control"), rule: rule, isContainer: marks.contains(where: files.exists))
        // Of character devices with the number of video4linux; tags that were taken away again are not among "Q".
        facts.givesCamerasToLogin = files.names("/run/udev/data").contains { name in
            name.hasPrefix("c81:") && files.lines("/run/udev/data/\(name)").contains("Q:uaccess")
        }
        return facts
    }
}
