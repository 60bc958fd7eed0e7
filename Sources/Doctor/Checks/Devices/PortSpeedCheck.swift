/// Whether cameras run as fast as they can.
struct PortSpeedCheck: Check {
    let id = "usb-speed"

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.usbCameras
        guard !cameras.isEmpty else { return .skipped("no camera is on USB") }
        var findings: [Finding] = []
        var notes: [String] = []
        for camera in cameras where camera.speed < 5000 {
            if camera.speed < 480 {
                findings.append(
                    Finding(
                        "usb-slow-port", camera.title,
                        meaning:
                            "It runs at \(Int(camera.speed)) Mb/s, which is too slow for pictures. The cause is a bad "
                            + "cable or a USB 1 hub.",
                        remedy: "lsusb -t", advice: "Try another cable and a port of the machine itself."))
            } else if camera.isSuperSpeedCapable == true {
                findings.append(
                    Finding(
                        "usb-slow-port", camera.title,
                        meaning:
                            "It is a USB 3 camera at USB 2 speed (480 Mb/s). Its large formats are slow or missing.",
                        remedy: "lsusb -t",
                        advice: "Use a USB 3 port (blue, or marked SS) and a USB 3 cable. Push the plug in quickly."
                    ))
            } else if camera.isSuperSpeedCapable == nil, camera.version.hasPrefix("2.1") {
                notes.append("\(camera.title) runs at 480 Mb/s. If it is a USB 3 camera, its port is USB 2.")
            }
        }
        let speeds = Set(cameras.map { "\(Int($0.speed))" }).sorted().joined(separator: ", ")
        return .of(findings, healthy: "\(speeds) Mb/s", notes: notes)
    }
}
