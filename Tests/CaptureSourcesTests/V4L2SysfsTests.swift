import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Testing

/// Cameras as sysfs shows them.
@Suite struct V4L2SysfsTests {
    @Test func sysfs() throws {
        let tree = try Tree()
        let camera = "devices/pci0000:00/usb1/1-2"
        tree.write("devices/pci0000:00/usb1/idVendor", "1d6b\n")
        tree.write("devices/pci0000:00/usb1/idProduct", "0002\n")
        tree.write("devices/pci0000:00/usb1/serial", "0000:00:14.0\n")
        tree.write("\(camera)/idVendor", "046d\n")
        tree.write("\(camera)/idProduct", "0825\n")
        tree.write("\(camera)/serial", "ABC 1\n")
        tree.write("devices/pci0000:00/usb1/speed", "10000\n")
        tree.write("\(camera)/speed", "480\n")
        tree.write("\(camera)/1-2:1.0/bInterfaceNumber", "00\n")
        tree.write("devices/platform/isp/uevent", "")
        for (node, device) in [("video10", "platform/isp"), ("video2", "pci0000:00/usb1/1-2/1-2:1.0")] {
            tree.write("class/video4linux/\(node)/name", "A camera\n")
            tree.write("class/video4linux/\(node)/index", "1\n")
            tree.link("class/video4linux/\(node)/device", "../../../devices/\(device)")
        }
        tree.write("class/video4linux/v4l-subdev0/name", "sensor\n")
        tree.write("class/video4linux/video3/uevent", "")

        let nodes = V4L2SysfsNode.all(sysfs: tree.root)
        #expect(nodes.map(\.path) == ["/dev/video2", "/dev/video3", "/dev/video10"])
        #expect(nodes[0].name == "A camera")
        #expect(nodes[0].index == 1)
        #expect(
            nodes[0].usb
                == .init(vendor: "046d", product: "0825", serial: "ABC 1", interface: "00"))
        #expect(
            nodes[0].link
                == USBLink(
                    controller: "\(tree.root)/devices/pci0000:00", bus: "\(tree.root)/devices/pci0000:00/usb1",
                    speed: 480, busSpeed: 10000))
        #expect(nodes[1].link == nil && nodes[2].link == nil)
        #expect(nodes[1].device == "" && nodes[1].usb == nil && nodes[1].index == 0)
        #expect(nodes[2].device == "\(tree.root)/devices/platform/isp" && nodes[2].usb == nil)
        #expect(V4L2SysfsNode.all(sysfs: "/nowhere") == [])

        let survey = V4L2Discovery.survey(sysfs: tree.root) { node throws(SourceError) in
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

    /// A camera that is unplugged in one place and plugged in in another while it is searched for must not pass for two.
    @Test func nodeThatGoesDuringTheSearch() throws {
        let tree = try Tree()
        for node in ["video0", "video2"] { tree.write("class/video4linux/\(node)/name", "A camera\n") }
        let survey = V4L2Discovery.survey(sysfs: tree.root) { node throws(SourceError) in
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

    /// A directory made for one test.
    private final class Tree {
        private let directory: TemporaryDirectory
        let root: String

        init() throws {
            directory = try TemporaryDirectory()
            let path = try #require(realpath(directory.path, nil))
            defer { free(path) }
            root = String(cString: path)
        }

        func write(_ path: String, _ text: String) {
            directories(path)
            guard let file = fopen("\(root)/\(path)", "w") else { return }
            fputs(text, file)
            fclose(file)
        }

        func link(_ path: String, _ target: String) {
            directories(path)
            symlink(target, "\(root)/\(path)")
        }

        func remove(_ path: String) { directory.remove(path) }

        private func directories(_ path: String) {
            var directory = root
            for part in path.split(separator: "/").dropLast() {
                directory += "/" + part
                mkdir(directory, 0o755)
            }
        }
    }
}
