package import CaptureCore
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
    /// It is part of the machine.
    package var isBuiltIn: Bool
    /// Where it looks as far as sysfs says; `external` for one on USB that can be unplugged.
    package var position: DevicePosition

    package init(
        path: String, name: String, index: Int, device: String, usb: CameraFacts.USB? = nil, link: USBLink? = nil,
        isBuiltIn: Bool = false, position: DevicePosition = .unspecified
    ) {
        self.path = path
        self.name = name
        self.index = index
        self.device = device
        self.usb = usb
        self.link = link
        self.isBuiltIn = isBuiltIn
        self.position = position
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
                let device = Sysfs.resolve(node + "/device") ?? ""
                let usb = Sysfs.usb(above: device)
                let isBuiltIn = Sysfs.isBuiltIn(device)
                return V4L2SysfsNode(
                    path: "/dev/" + entry, name: Sysfs.attribute(node + "/name") ?? "",
                    index: Sysfs.attribute(node + "/index").flatMap { Int($0) } ?? 0, device: device,
                    usb: usb, link: Sysfs.link(above: device), isBuiltIn: isBuiltIn,
                    position: usb == nil || isBuiltIn ? Sysfs.panel(above: device) ?? .unspecified : .external)
            }
    }
}
