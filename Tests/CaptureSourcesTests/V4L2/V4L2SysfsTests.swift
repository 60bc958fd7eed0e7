import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Testing

/// Cameras as sysfs shows them.
@Suite struct V4L2SysfsTests {
    @Test func sysfs() throws {
        let tree = try TemporaryDirectory()
        let camera = "devices/pci0000:00/usb1/1-2"
        try tree.write("devices/pci0000:00/usb1/idVendor", "1d6b\n")
        try tree.write("devices/pci0000:00/usb1/idProduct", "0002\n")
        try tree.write("devices/pci0000:00/usb1/serial", "0000:00:14.0\n")
        try tree.write("\(camera)/idVendor", "046d\n")
        try tree.write("\(camera)/idProduct", "0825\n")
        try tree.write("\(camera)/serial", "ABC 1\n")
        try tree.write("devices/pci0000:00/usb1/speed", "10000\n")
        try tree.write("\(camera)/speed", "480\n")
        try tree.write("\(camera)/1-2:1.0/bInterfaceNumber", "00\n")
        try tree.write("devices/platform/isp/uevent", "")
        for (node, device) in [("video10", "platform/isp"), ("video2", "pci0000:00/usb1/1-2/1-2:1.0")] {
            try tree.write("class/video4linux/\(node)/name", "A camera\n")
            try tree.write("class/video4linux/\(node)/index", "1\n")
            try tree.link("class/video4linux/\(node)/device", to: "../../../devices/\(device)")
        }
        try tree.write("class/video4linux/v4l-subdev0/name", "sensor\n")
        try tree.write("class/video4linux/video3/uevent", "")

        let nodes = V4L2SysfsNode.all(sysfs: tree.path)
        #expect(nodes.map(\.path) == ["/dev/video2", "/dev/video3", "/dev/video10"])
        #expect(nodes[0].name == "A camera")
        #expect(nodes[0].index == 1)
        #expect(
            nodes[0].usb
                == .init(vendor: "046d", product: "0825", serial: "ABC 1", interface: "00"))
        #expect(
            nodes[0].link
                == USBLink(
                    controller: "\(tree.path)/devices/pci0000:00", bus: "\(tree.path)/devices/pci0000:00/usb1",
                    speed: 480, busSpeed: 10000))
        #expect(nodes[1].link == nil && nodes[2].link == nil)
        #expect(nodes[1].device == "" && nodes[1].usb == nil && nodes[1].index == 0)
        #expect(nodes[2].device == "\(tree.path)/devices/platform/isp" && nodes[2].usb == nil)
        #expect(V4L2SysfsNode.all(sysfs: "/nowhere") == [])

        let survey = V4L2Discovery.survey(sysfs: tree.path) { node throws(SourceError) in
            switch node.path {
            case "/dev/video2": return facts(node)
            case "/dev/video3": throw SourceError(.notPermitted, operation: "open", message: "not yet")
            default: throw SourceError(.disconnected, operation: "open", message: "gone")
            }
        }
        #expect(survey.cameras == [facts(nodes[0])])
        #expect(survey.unreadable.map(\.node) == ["/dev/video3"])
        #expect(CameraSurvey(json: survey.json) == survey)
    }

    /// What can't be unplugged is built in: by USB's word for the port, or since the firmware describes it.
    @Test(
        arguments: [
            (
                "a laptop's webcam", ["usb1/1-2/idVendor": "0408", "usb1/1-2/removable": "fixed"],
                "usb1/1-2/1-2:1.0", true
            ),
            (
                "a laptop's webcam behind a hub on its board",
                [
                    "usb1/1-2/idVendor": "05e3", "usb1/1-2/removable": "fixed", "usb1/1-2/1-2.1/idVendor": "0408",
                    "usb1/1-2/1-2.1/removable": "fixed",
                ], "usb1/1-2/1-2.1/1-2.1:1.0", true
            ),
            (
                "a monitor's webcam",
                [
                    "usb1/1-2/idVendor": "05e3", "usb1/1-2/removable": "removable", "usb1/1-2/1-2.1/idVendor": "0408",
                    "usb1/1-2/1-2.1/removable": "fixed",
                ], "usb1/1-2/1-2.1/1-2.1:1.0", false
            ),
            (
                "a webcam on the desk", ["usb1/1-3/idVendor": "046d", "usb1/1-3/removable": "removable"],
                "usb1/1-3/1-3:1.0", false
            ),
            (
                "a port of which nothing is known", ["usb1/1-4/idVendor": "046d", "usb1/1-4/removable": "unknown"],
                "usb1/1-4/1-4:1.0", false
            ),
            ("a sensor in a devicetree", ["platform/fe801000.csi/of_node/name": "csi"], "platform/fe801000.csi", true),
            ("a driver without hardware", ["platform/vivid.0/uevent": ""], "platform/vivid.0", false),
            (
                "a chip set's image processor",
                ["0000:00:05.0/firmware_node/path": "IPU0", "0000:00:05.0/subsystem/pci": "@pci"], "0000:00:05.0", true
            ),
            (
                "a card in a slot",
                ["0000:03:00.0/firmware_node/path": "PXSX", "0000:03:00.0/subsystem/pci": "@pci"], "0000:03:00.0", false
            ),
        ] as [(String, [String: String], String, Bool)])
    func builtIn(_ name: String, _ files: [String: String], _ device: String, _ isBuiltIn: Bool) throws {
        let tree = try TemporaryDirectory()
        try tree.write("bus/pci/uevent", "")
        try tree.write("devices/usb1/idVendor", "1d6b")
        try tree.write("devices/usb1/removable", "removable")
        try tree.write("devices/\(device)/uevent", "")
        for (file, text) in files {
            if text == "@pci" {
                try tree.link("devices/\(device)/subsystem", to: "../../bus/pci")
            } else {
                try tree.write("devices/\(file)", "\(text)\n")
                if file.hasSuffix("idVendor") { try tree.write("devices/\(file.dropLast(8))idProduct", "0001\n") }
            }
        }
        try tree.link("class/video4linux/video0/device", to: "../../../devices/\(device)")
        let node = try #require(V4L2SysfsNode.all(sysfs: tree.path).first)
        #expect(node.isBuiltIn == isBuiltIn)
        #expect(node.position == (isBuiltIn || node.usb == nil ? .unspecified : .external))
        let identity = facts(node).identity(uniqueID: "u")
        #expect(identity.type == (isBuiltIn ? .builtInWideAngleCamera : .external))
        guard isBuiltIn, node.usb != nil else { return }
        let place = device.split(separator: "/").dropLast().joined(separator: "/")
        try tree.write("devices/\(place)/physical_location/panel", "front\n")
        #expect(V4L2SysfsNode.all(sysfs: tree.path).first?.position == .front)
    }

    /// A camera that is unplugged in one place and plugged in in another while it is searched for must not pass for
    /// two.
    @Test func nodeThatGoesDuringTheSearch() throws {
        let tree = try TemporaryDirectory()
        for node in ["video0", "video2"] { try tree.write("class/video4linux/\(node)/name", "A camera\n") }
        let survey = V4L2Discovery.survey(sysfs: tree.path) { node throws(SourceError) in
            tree.remove("class/video4linux/video0")
            return facts(node)
        }
        #expect(survey.cameras.map(\.node) == ["/dev/video2"])
    }

    private func facts(_ node: V4L2SysfsNode) -> CameraFacts {
        CameraFacts(
            node: node.path, index: node.index, device: node.device, usb: node.usb, link: node.link, card: node.name,
            driver: "test", bus: "test", position: node.position, isBuiltIn: node.isBuiltIn)
    }
}
