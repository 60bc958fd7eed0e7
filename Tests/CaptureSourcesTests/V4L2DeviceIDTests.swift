import CaptureSources
import Glibc
import Testing

/// Ids that stay with the camera.
@Suite struct V4L2DeviceIDTests {
    private func usb(
        _ port: String, serial: String?, index: Int = 0, interface: String = "00", product: String = "0825",
        node: Int = 0
    ) -> V4L2DeviceFacts {
        let device = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-\(port)"
        return V4L2DeviceFacts(
            V4L2SysfsNode(
                path: "/dev/video\(node)", name: "cam", index: index, device: "\(device)/1-\(port):1.0",
                usb: .init(vendor: "046d", product: product, serial: serial, interface: interface, device: device)),
            card: "HD Webcam: C270", busInfo: "usb-0000:00:14.0-\(port)")
    }

    @Test func serialWhereItIsUnique() {
        #expect(V4L2DeviceID.ids([usb("2", serial: "A1B2")]) == ["usb-046d:0825-A1B2-if00-index0"])
        #expect(V4L2DeviceID.ids([usb("2", serial: "A1B2")]) == V4L2DeviceID.ids([usb("3", serial: "A1B2", node: 7)]))
    }

    @Test func placeWhereThereIsNoSerial() {
        #expect(V4L2DeviceID.ids([usb("2", serial: nil)]) == ["usb-0000:00:14.0-2-if00-HD-Webcam:-C270-index0"])
        let two = V4L2DeviceID.ids([usb("2", serial: nil), usb("3", serial: nil)])
        #expect(Set(two).count == 2)
        // The order in which they come up, and with it the nodes' numbers, doesn't matter.
        #expect(V4L2DeviceID.ids([usb("3", serial: nil, node: 0), usb("2", serial: nil, node: 2)]) == two.reversed())
    }

    @Test func sameSerialInAll() {
        let ids = V4L2DeviceID.ids([usb("2", serial: "0001"), usb("3", serial: "0001")])
        #expect(Set(ids).count == 2)
        #expect(ids.allSatisfy { !$0.contains("0001") })
        // Another model's same number is nobody's business.
        let others = V4L2DeviceID.ids([usb("2", serial: "0001"), usb("3", serial: "0001", product: "0999")])
        #expect(others.allSatisfy { $0.contains("0001") })
    }

    @Test func nodesOfOneDevice() {
        let ids = V4L2DeviceID.ids([
            usb("2", serial: "A"), usb("2", serial: "A", index: 2), usb("2", serial: "A", interface: "02"),
        ])
        #expect(ids == ["usb-046d:0825-A-if00-index0", "usb-046d:0825-A-if00-index2", "usb-046d:0825-A-if02-index0"])
    }

    @Test func onlyHarmlessCharacters() {
        let ids = V4L2DeviceID.ids([
            usb("2", serial: "a/../ö b\n*"), usb("3", serial: String(repeating: "x", count: 500)),
        ])
        #expect(ids[0] == "usb-046d:0825-a-..-b--if00-index0")
        #expect(ids[1].utf8.count <= V4L2DeviceID.limit)
    }

    @Test func withoutBus() {
        func platform(_ bus: String, _ device: String) -> V4L2DeviceFacts {
            V4L2DeviceFacts(
                V4L2SysfsNode(path: "/dev/video0", name: "", index: 0, device: device), card: "cam", busInfo: bus)
        }
        #expect(V4L2DeviceID.ids([platform("platform:isp", "")]) == ["platform:isp-cam-index0"])
        #expect(V4L2DeviceID.ids([platform("", "/sys/devices/platform/isp.1")]) == ["platform-isp.1-cam-index0"])
        // The same bus_info in two devices, which V4L2 forbids; and nothing to tell them apart at all.
        let same = V4L2DeviceID.ids([
            platform("platform:isp", "/sys/devices/isp.0"), platform("platform:isp", "/sys/devices/isp.1"),
        ])
        #expect(same == ["platform:isp-cam-index0-sys-devices-isp.0", "platform:isp-cam-index0-sys-devices-isp.1"])
        #expect(Set(V4L2DeviceID.ids([platform("", ""), platform("", "")])).count == 2)
    }

    // MARK: sysfs

    @Test func sysfs() throws {
        let tree = try Tree()
        let camera = "devices/pci0000:00/usb1/1-2"
        tree.write("devices/pci0000:00/usb1/idVendor", "1d6b\n")
        tree.write("devices/pci0000:00/usb1/idProduct", "0002\n")
        tree.write("devices/pci0000:00/usb1/serial", "0000:00:14.0\n")
        tree.write("\(camera)/idVendor", "046d\n")
        tree.write("\(camera)/idProduct", "0825\n")
        tree.write("\(camera)/serial", "ABC 1\n")
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
                == .init(
                    vendor: "046d", product: "0825", serial: "ABC 1", interface: "00", device: "\(tree.root)/\(camera)")
        )
        #expect(nodes[1].device == "" && nodes[1].usb == nil && nodes[1].index == 0)
        #expect(nodes[2].device == "\(tree.root)/devices/platform/isp" && nodes[2].usb == nil)
        #expect(V4L2SysfsNode.all(sysfs: "/nowhere") == [])
    }

    /// A directory made for one test.
    private final class Tree {
        let root: String

        init() throws {
            var name = Array("/tmp/camerabus-sysfs-XXXXXX".utf8CString)
            let made = try #require(mkdtemp(&name))
            let path = try #require(realpath(made, nil))
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

        private func directories(_ path: String) {
            var directory = root
            for part in path.split(separator: "/").dropLast() {
                directory += "/" + part
                mkdir(directory, 0o755)
            }
        }

        deinit { system("rm -rf '\(root)'") }
    }
}
