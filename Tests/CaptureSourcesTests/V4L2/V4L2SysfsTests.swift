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
            driver: "test", bus: "test")
    }
}
