import JSON

/// Whether the cameras of one USB bus have room on it together.
struct BandwidthCheck: Check {
    let id = "usb-bandwidth"

    /// Bytes a second that a high-speed bus has for cameras: 80 % of its microframes, less what the packets themselves
    /// cost.
    private static let highSpeedRoom = 40_000_000.0

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.usbCameras
        guard !cameras.isEmpty else { return .skipped("no camera is on USB") }
        let crowded = Dictionary(grouping: cameras.filter { $0.busSpeed <= 480 }) { $0.bus }.filter {
            $0.value.count > 1
        }
        guard !crowded.isEmpty else { return .healthy("no two cameras share a USB 2 bus") }
        var findings: [Finding] = []
        var notes: [String] = []
        for (bus, cameras) in crowded.sorted(by: { $0.key < $1.key }) {
            let names = cameras.map(\.title).joined(separator: ", ")
            let needs = cameras.map { Self.need($0, facts) }
            let known = needs.compactMap(\.self)
            let sum = known.reduce(0) { $0 + $1.bytes }
            if sum > Self.highSpeedRoom, let largest = known.max(by: { $0.bytes < $1.bytes }) {
                findings.append(
                    Finding(
                        "usb-bandwidth", "USB bus \(bus)",
                        meaning:
                            "\(names) share one USB 2 bus. Their formats need \(megabytes(sum)) MB/s; the bus has "
                            + "about "
                            + "\(megabytes(Self.highSpeedRoom)) MB/s. The last one to start is refused ('No space left "
                            + "on device').",
                        remedy: "camerabus format \(largest.device.shellWord) \(largest.size) --pixel MJPG",
                        advice:
                            "Without MJPG (see 'camerabus formats') use a smaller size, a lower rate (--fps), or a "
                            + "port of another controller "
                            + "(see 'lsusb -t')."
                    ))
            } else {
                notes.append(
                    "\(names) share USB bus \(bus) (480 Mb/s), which can carry one uncompressed 720p30 stream. Use "
                        + "MJPG for more."
                )
            }
        }
        return .of(findings, healthy: "the bandwidth is enough for the current formats", notes: notes)
    }

    private struct Need {
        let device: String
        let size: String
        let bytes: Double
    }

    /// What a camera will need as it is set; nil: the bus doesn't have it, or it compresses.
    private static func need(_ camera: USBDeviceFact, _ facts: Facts) -> Need? {
        let nodes = facts.nodes.filter { $0.usb == camera.port }.map(\.path)
        guard let device = facts.bus.devices.first(where: { nodes.contains($0["node"]?.string ?? "") }),
            let id = device["id"]?.string, let format = device["activeFormat"],
            let width = format["width"]?.integer, let height = format["height"]?.integer, width > 0, height > 0,
            let bits = bitsPerPixel[format["pixelFormat"]?.string ?? ""], let rate = device["frameRate"]?.double,
            rate > 0
        else { return nil }
        return Need(
            device: id, size: "\(width)x\(height)", bytes: Double(width) * Double(height) * Double(bits) / 8 * rate)
    }

    private static let bitsPerPixel = [
        "YUYV": 16, "UYVY": 16, "YVYU": 16, "VYUY": 16, "NV12": 12, "NV21": 12, "YU12": 12, "YV12": 12, "M420": 12,
        "GREY": 8, "BA81": 8, "GBRG": 8, "GRBG": 8, "RGGB": 8, "Y16": 16, "Y10": 16, "Z16": 16, "BGR3": 24, "RGB3": 24,
    ]

    private func megabytes(_ bytes: Double) -> String { "\(Int((min(bytes, 1e15) / 1_000_000).rounded()))" }
}
