extension CaptureSession {
    /// Why its photo output can make no live photos; nil: it can.
    ///
    /// - Parameter device: what is known of a device.
    public func livePhotoObstacle(_ device: (String) -> SessionDevice?) -> String? {
        guard let output = outputs.first(where: { $0.kind == .photo }) else { return "the session has no photo output" }
        if outputs.contains(where: { $0.kind == .movie }) {
            return "a session with a movie output makes no live photos"
        }
        if preset == .high { return "the preset 'high' is for movies; use the preset 'photo'" }
        let cameras = connections(of: output.id).filter(\.isEnabled)
        guard cameras.count == 1, let camera = cameras.first?.input else {
            return
                "a live photo needs exactly one camera; the photo output has "
                + "\(cameras.isEmpty ? "none" : "\(cameras.count)")"
        }
        guard let formats = device(camera)?.formats else { return nil }
        guard formats.contains(where: { !$0.pixelFormat.photoCodecs.isEmpty }) else {
            return "\(camera) has no format that can be converted to JPEG"
        }
        return nil
    }

    /// Milliseconds for which its photo output wants the device's pictures to be held; 0: not at all.
    public func preRoll(of device: String) -> Int {
        outputs.filter { $0.kind == .photo && $0.preRoll > 0 }.filter { output in
            connections.contains { $0.output == output.id && $0.input == device && $0.isEnabled }
        }.map(\.preRoll).max() ?? 0
    }

    /// Somebody who sees its state wants to know what the scene of that device wants of a photo.
    public func watchesScene(of device: String) -> Bool {
        outputs.contains { output in
            output.kind == .photo && output.sceneMonitoring?.isMonitored == true
                && connections.contains { $0.output == output.id && $0.input == device && $0.isEnabled }
        }
    }
}
