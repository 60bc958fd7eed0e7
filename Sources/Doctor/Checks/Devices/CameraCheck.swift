import JSON

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
        let others = facts.bus.devices.filter { $0["mediaType"]?.string != "audio" }.count
        if facts.bus.isAnswering, others > 0 {
            return .skipped(
                "this machine has no camera; the bus has \(others) virtual camera\(others == 1 ? "" : "s")")
        }
        return .faulty([
            Finding(
                "no-camera", meaning: "The kernel knows no camera, and USB has none.",
                remedy: "camerabusd --virtual 2",
                advice:
                    "Plug one in, then check 'sudo dmesg | tail'. Virtual cameras work without one. In a virtual "
                    + "machine or "
                    + "container, pass the camera through.")
        ])
    }
}
