import CameraBusTesting
import Glibc
import LinuxIO

/// A machine's files, made up below a folder that is removed with it.
final class FakeTree {
    private let folder: TemporaryDirectory
    var path: String { folder.path }

    init() {
        do { folder = try TemporaryDirectory() } catch { preconditionFailure("\(error)") }
    }

    func write(_ file: String, _ text: String) {
        do { try folder.write(file, text) } catch { preconditionFailure("\(error)") }
    }

    func makeDirectory(_ directory: String, mode: UInt32) {
        folder.makeDirectory(directory)
        chmod(path + directory, mode)
    }

    /// - Parameter target: as the link says it.
    func link(_ file: String, to target: String) {
        do { try folder.link(file, to: target) } catch { preconditionFailure("\(error)") }
    }

    // MARK: sysfs

    private func directory(of port: String) -> String {
        "/sys/devices/pci0000:00/0000:00:14.0/usb\(port.prefix { $0 != "-" })/\(port)"
    }

    func addRootHub(bus: Int, speed: Int) {
        let directory = "/sys/devices/pci0000:00/0000:00:14.0/usb\(bus)"
        write("\(directory)/idVendor", "1d6b\n")
        write("\(directory)/bDeviceClass", "09\n")
        write("\(directory)/speed", "\(speed)\n")
        link("/sys/bus/usb/devices/usb\(bus)", to: "../../../devices/pci0000:00/0000:00:14.0/usb\(bus)")
    }

    func addCamera(
        _ port: String, vendor: String, product: String, name: String, serial: String? = nil, driver: String? = nil,
        speed: Int = 480
    ) {
        let directory = directory(of: port)
        let values = [
            "idVendor": vendor, "idProduct": product, "product": name, "busnum": String(port.prefix { $0 != "-" }),
            "speed": "\(speed)", "version": " 2.00", "bDeviceClass": "ef", "power/control": "auto",
            "power/runtime_status": "active",
        ]
        for (attribute, value) in values { write("\(directory)/\(attribute)", "\(value)\n") }
        if let serial { write("\(directory)/serial", "\(serial)\n") }
        write("\(directory)/\(port):1.0/bInterfaceClass", "0e\n")
        if let driver { link("\(directory)/\(port):1.0/driver", to: "../../../../../../bus/usb/drivers/\(driver)") }
        link("/sys/bus/usb/devices/\(port)", to: "../../..\(directory.dropFirst(4))")
        link("/sys/bus/usb/devices/\(port):1.0", to: "../../..\(directory.dropFirst(4))/\(port):1.0")
    }

    func addNode(_ number: Int, of port: String, name: String, index: Int = 0, mode: UInt32 = 0o660) {
        let entry = "/sys/class/video4linux/video\(number)"
        write("\(entry)/name", "\(name)\n")
        write("\(entry)/index", "\(index)\n")
        link("\(entry)/device", to: "../../..\(directory(of: port).dropFirst(4))/\(port):1.0")
        write("/dev/video\(number)", "")
        chmod("\(path)/dev/video\(number)", mode)
    }
}
