import CaptureCore
import Glibc
import LinuxIO

/// What the kernel shows of devices in sysfs.
enum Sysfs {
    /// The USB device whose interface, or part of an interface, `directory` is.
    static func usb(above directory: String) -> CameraFacts.USB? {
        var path = Substring(directory)
        var interface = ""
        // Not beyond the first USB device: above it stand hubs, and the root hub, which has a serial number too.
        while let slash = path.lastIndex(of: "/"), path.startIndex < slash {
            let here = String(path)
            if let vendor = attribute(here + "/idVendor"), let product = attribute(here + "/idProduct") {
                let serial = attribute(here + "/serial") ?? ""
                return CameraFacts.USB(
                    vendor: vendor, product: product, serial: serial.isEmpty ? nil : serial, interface: interface)
            }
            if interface.isEmpty { interface = attribute(here + "/bInterfaceNumber") ?? "" }
            path = path[..<slash]
        }
        return nil
    }

    /// How the USB device hangs on its controller: its own speed, and the root hub that is the last above it.
    static func link(above directory: String) -> USBLink? {
        var path = Substring(directory)
        var speed: Int?
        var root: (path: String, speed: Int)?
        while let slash = path.lastIndex(of: "/"), path.startIndex < slash {
            let here = String(path)
            // "480", "5000"; the slowest is "1.5".
            if attribute(here + "/idVendor") != nil, let megabits = attribute(here + "/speed").flatMap({ Double($0) }),
                megabits >= 1, megabits < 1_000_000
            {
                speed = speed ?? Int(megabits)
                root = (here, Int(megabits))
            }
            path = path[..<slash]
        }
        guard let speed, let root, let slash = root.path.lastIndex(of: "/") else { return nil }
        return USBLink(controller: String(root.path[..<slash]), bus: root.path, speed: speed, busSpeed: root.speed)
    }

    /// Whether a camera is part of the machine: on a USB port that nobody can unplug, or described by the firmware
    /// (devicetree, ACPI).
    static func isBuiltIn(_ directory: String) -> Bool {
        guard !directory.isEmpty else { return false }
        let ports = usbDevices(above: directory).map { attribute($0 + "/removable") }
        if let own = ports.first {
            // A camera that is fixed in a monitor, or in a hub, goes with it.
            return own == "fixed" && !ports.dropFirst().contains("removable")
        }
        let name = directory.split(separator: "/").last ?? ""
        let isPCI = resolve(directory + "/subsystem")?.hasSuffix("/pci") == true
        // The firmware describes slots too. Bus 0 has no slots: its devices are part of the chip set.
        if isPCI, !name.hasPrefix("0000:00:") || attribute(directory + "/removable") == "removable" { return false }
        return ["of_node", "firmware_node"].contains { resolve("\(directory)/\($0)") != nil }
    }

    /// Where the firmware says that a USB device looks (ACPI's `_PLD`).
    static func panel(above directory: String) -> DevicePosition? {
        switch usbDevices(above: directory).first.flatMap({ attribute($0 + "/physical_location/panel") }) {
        case "front": .front
        case "back": .back
        default: nil
        }
    }

    // A device, then the hubs that it hangs on, without the root hub.
    private static func usbDevices(above directory: String) -> [String] {
        var path = Substring(directory)
        var devices: [String] = []
        while let slash = path.lastIndex(of: "/"), path.startIndex < slash {
            let isRoot = path[slash...].hasPrefix("/usb")
            if !isRoot, attribute(path + "/idVendor") != nil { devices.append(String(path)) }
            path = path[..<slash]
        }
        return devices
    }

    /// Where a device is plugged in, in the words that V4L2's drivers use for `bus_info`: `usb-0000:00:14.0-3`,
    /// `platform:snd_aloop.0`, `PCI:0000:00:1f.3`; empty where there is nothing to be said.
    static func bus(of directory: String) -> String {
        if let port = usbPort(above: directory) { return port }
        guard let name = directory.split(separator: "/").last,
            let subsystem = resolve(directory + "/subsystem")?.split(separator: "/").last
        else { return "" }
        return "\(subsystem == "pci" ? "PCI" : subsystem):\(name)"
    }

    // As the kernel's usb_make_path() does it: the controller, and the way from its root hub.
    private static func usbPort(above directory: String) -> String? {
        var path = Substring(directory)
        var port: String?
        while let slash = path.lastIndex(of: "/"), path.startIndex < slash {
            let here = String(path)
            path = path[..<slash]
            guard attribute(here + "/idVendor") != nil else { continue }
            port = port ?? attribute(here + "/devpath")
            // A root hub's name is its bus; above it stands the controller.
            if here.split(separator: "/").last?.hasPrefix("usb") == true,
                let controller = path.split(separator: "/").last, let port
            {
                return "usb-\(controller)-\(port)"
            }
        }
        return nil
    }

    static func resolve(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// A sysfs attribute without the line's end: at most a page, as the kernel writes them. nil if there is none.
    static func attribute(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { page in
            let count = read(descriptor, page.baseAddress, page.count)
            guard count >= 0 else { return nil }
            var text = String(decoding: UnsafeRawBufferPointer(rebasing: page[..<count]), as: UTF8.self)
            while let last = text.last, last.isWhitespace || last == "\0" { text.removeLast() }
            return text
        }
    }
}
