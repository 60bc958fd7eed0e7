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
                    + (isCloud ? ": Debian's cloud kernel does not include it." : "."),
                remedy: isCloud
                    ? "sudo apt install linux-image-amd64 && sudo apt remove 'linux-image*cloud*' && sudo reboot"
                    : "sudo apt install linux-image-amd64 && sudo reboot",
                advice: "On another architecture replace amd64 in the package name. A custom kernel needs "
                    + "CONFIG_USB_VIDEO_CLASS=m.")
        }
        if let blacklist = facts.drivers.blacklists.first {
            let isFile = blacklist.path != "/proc/cmdline"
            return Finding(
                "driver-blacklisted", names,
                meaning: "'\(blacklist.line)' in \(blacklist.path) prevents that the driver uvcvideo is loaded.",
                remedy: isFile
                    ? "sudo sed -i '/uvcvideo/s/^/# /' \(blacklist.path.shellWord) && sudo modprobe uvcvideo"
                    : "sudo modprobe uvcvideo",
                advice: isFile
                    ? nil
                    : "To make this permanent, remove it from GRUB_CMDLINE_LINUX in /etc/default/grub, then run 'sudo "
                        + "update-grub'."
            )
        }
        return Finding(
            "driver-not-loaded", names, meaning: "The driver for USB cameras is not loaded.",
            remedy: "sudo modprobe uvcvideo",
            advice: facts.udev.isRunning ? nil : "udev does not run; it would have loaded the driver.")
    }

    private func unbound(_ camera: USBDeviceFact) -> Finding {
        let interface = camera.videoInterfaces.first
        let name = interface?.name ?? "\(camera.port):1.0"
        if let other = interface?.driver {
            return Finding(
                "driver-other", camera.title,
                meaning: "Another driver uses it: \(other)"
                    + (other == "usbfs" ? "; a program or a virtual machine uses the camera directly." : "."),
                remedy: "echo \(name) | sudo tee /sys/bus/usb/drivers/\(other)/unbind && echo \(name) | sudo tee "
                    + "/sys/bus/usb/drivers/uvcvideo/bind")
        }
        return Finding(
            "driver-unbound", camera.title, meaning: "The driver is loaded, but does not use this camera.",
            remedy: "echo \(name) | sudo tee /sys/bus/usb/drivers/uvcvideo/bind",
            advice:
                "'sudo dmesg | grep -i uvc' shows the cause. Often the camera answers wrongly, and unplugging it helps."
        )
    }
}
