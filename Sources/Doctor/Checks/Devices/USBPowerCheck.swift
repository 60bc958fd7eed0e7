/// Whether power saving disables a camera.
struct USBPowerCheck: Check {
    let id = "usb-power"

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.usbCameras
        guard !cameras.isEmpty else { return .skipped("no camera is on USB") }
        let failed = cameras.filter { $0.powerStatus == "error" }.map { camera in
            Finding(
                "usb-power-error", camera.title,
                meaning: "It was suspended to save power, and did not wake up.",
                remedy: "echo on | sudo tee /sys/bus/usb/devices/\(camera.port)/power/control",
                advice:
                    "Unplug it and plug it in again first. A udev rule makes this permanent: "
                    + "ATTR{idVendor}==\"\(camera.vendor)\", "
                    + "ATTR{idProduct}==\"\(camera.product)\", TEST==\"power/control\", ATTR{power/control}=\"on\".")
        }
        let sleepy = cameras.filter(\.isAutosuspended)
        let notes = sleepy.map { camera in
            "\(camera.title) is suspended while it is not used. If it disconnects, or its first pictures are dark: "
                + "echo on | sudo tee /sys/bus/usb/devices/\(camera.port)/power/control"
        }
        return .of(failed, healthy: sleepy.isEmpty ? "cameras stay awake" : "cameras sleep while unused", notes: notes)
    }
}
