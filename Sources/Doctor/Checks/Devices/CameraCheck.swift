/// Whether there is a camera at all.
struct CameraCheck: Check {
    let id = "camera"

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.nodes.filter { $0.index == 0 }
        if !cameras.isEmpty {
            return .healthy(cameras.map { "\($0.path) (\($0.name))" }.joined(separator: ", "))
        }
        let onUSB = facts.usbCameras
        if !onUSB.isEmpty { return .healthy("\(onUSB.map(\.title).joined(separator: ", ")), without a node") }
        if facts.bus.isAnswering, !facts.bus.devices.isEmpty {
            return .skipped("the machine has none; the bus has \(facts.bus.devices.count) virtual ones")
        }
        return .faulty([
            Finding(
                "no-camera", meaning: "The kernel knows no camera, and none is on USB.",
                remedy: "camerabusd --virtual 2",
                advice:
                    "Plug one in and see what 'sudo dmesg | tail' says of it; virtual cameras work meanwhile. In a virtual machine or "
                    + "container the camera has to be passed through.")
        ])
    }
}
