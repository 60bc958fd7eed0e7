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
