/// Whether cameras on USB have their driver.
struct DriverCheck: Check {
    let id = "driver"

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.usbCameras
        guard !cameras.isEmpty else { return .skipped("no camera is on USB") }
        let orphans = cameras.filter { camera in !camera.videoInterfaces.contains { $0.driver == "uvcvideo" } }
        guard !orphans.isEmpty else { return .healthy("uvcvideo serves \(cameras.count)") }
        if !facts.drivers.isUVCLoaded { return .faulty([missing(facts, orphans)]) }
        return .faulty(orphans.map(unbound))
    }

    private func missing(_ facts: Facts, _ orphans: [USBDeviceFact]) -> Finding {
        let names = orphans.map(\.title).joined(separator: ", ")
        if facts.drivers.isUVCAvailable == false {
            let kernel = facts.versions.kernel ?? "running"
            let isCloud = kernel.contains("cloud")
            return Finding(
                "driver-missing", names,
                meaning: "The \(kernel) kernel has no driver for USB cameras (uvcvideo)"
                    + (isCloud ? ": Debian's kernel for clouds comes without." : "."),
                remedy: isCloud
                    ? "sudo apt install linux-image-amd64 && sudo apt remove 'linux-image*cloud*' && sudo reboot"
                    : "sudo apt install linux-image-amd64 && sudo reboot",
                advice: "On another architecture than amd64 the package has its name; a kernel of your own needs "
                    + "CONFIG_USB_VIDEO_CLASS=m.")
        }
        if let blacklist = facts.drivers.blacklists.first {
            let isFile = blacklist.path != "/proc/cmdline"
            return Finding(
                "driver-blacklisted", names,
                meaning: "The driver uvcvideo is kept from being loaded by '\(blacklist.line)' in \(blacklist.path).",
                remedy: isFile
                    ? "sudo sed -i '/uvcvideo/s/^/# /' \(blacklist.path.shellWord) && sudo modprobe uvcvideo"
                    : "sudo modprobe uvcvideo",
                advice: isFile
                    ? nil : "For good: take it out of GRUB_CMDLINE_LINUX in /etc/default/grub, then 'sudo update-grub'."
            )
        }
        return Finding(
            "driver-not-loaded", names, meaning: "The driver for USB cameras is not loaded.",
            remedy: "sudo modprobe uvcvideo",
            advice: facts.udev.isRunning ? nil : "udev, which would have loaded it by itself, does not run.")
    }

    private func unbound(_ camera: USBDeviceFact) -> Finding {
        let interface = camera.videoInterfaces.first
        let name = interface?.name ?? "\(camera.port):1.0"
        if let other = interface?.driver {
            return Finding(
                "driver-other", camera.title,
                meaning: "Another driver has it: \(other)"
                    + (other == "usbfs" ? ", so a program uses it directly, or a virtual machine has it." : "."),
                remedy: "echo \(name) | sudo tee /sys/bus/usb/drivers/\(other)/unbind && echo \(name) | sudo tee "
                    + "/sys/bus/usb/drivers/uvcvideo/bind")
        }
        return Finding(
            "driver-unbound", camera.title, meaning: "The driver is loaded and has not taken this camera.",
            remedy: "echo \(name) | sudo tee /sys/bus/usb/drivers/uvcvideo/bind",
            advice:
                "'sudo dmesg | grep -i uvc' tells why it didn't; mostly the camera answers wrong, and unplugging helps."
        )
    }
}
