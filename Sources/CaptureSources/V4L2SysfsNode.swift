package import CaptureCore
import Glibc
import LinuxIO

/// A video node as the kernel shows it in sysfs, without opening it.
package struct V4L2SysfsNode: Hashable, Sendable {
    /// `/dev/video0`
    package var path: String
    /// The driver's name for the node.
    package var name: String
    /// Its number among the nodes of one device.
    package var index: Int
    /// The directory of the device that it belongs to, with all links resolved; empty where there is none.
    package var device: String
    /// What USB says, for a camera on USB.
    package var usb: CameraFacts.USB?
    /// With whom it shares USB's bandwidth; nil: not on USB, or the kernel doesn't tell.
    package var link: USBLink?

    package init(
        path: String, name: String, index: Int, device: String, usb: CameraFacts.USB? = nil, link: USBLink? = nil
    ) {
        self.path = path
        self.name = name
        self.index = index
        self.device = device
        self.usb = usb
        self.link = link
    }

    /// All nodes, `video2` before `video10`. Empty without V4L2.
    package static func all(sysfs: String) -> [V4L2SysfsNode] {
        let directory = sysfs + "/class/video4linux"
        return (Directory.names(directory) ?? [])
            .compactMap { entry -> (Int, String)? in
                guard entry.hasPrefix("video"), let number = Int(entry.dropFirst(5)) else { return nil }
                return (number, entry)
            }
            .sorted { $0 < $1 }
            .map { _, entry in
                let node = directory + "/" + entry
                let device = resolve(node + "/device") ?? ""
                return V4L2SysfsNode(
                    path: "/dev/" + entry, name: attribute(node + "/name") ?? "",
                    index: attribute(node + "/index").flatMap { Int($0) } ?? 0, device: device, usb: usb(above: device),
                    link: link(above: device))
            }
    }

    /// The USB device whose interface, or part of an interface, `directory` is.
    private static func usb(above directory: String) -> CameraFacts.USB? {
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
    private static func link(above directory: String) -> USBLink? {
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

    private static func resolve(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// A sysfs attribute without the line's end: at most a page, as the kernel writes them. nil if there is none.
    private static func attribute(_ path: String) -> String? {
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
