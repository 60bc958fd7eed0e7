import BusProtocol
import JSON

extension SessionDevice {
    /// The modes that a connection of a session may prefer for it; nil: it isn't known yet.
    ///
    /// Where the format doesn't tell (V4L2 has no word for it) it is the device's control that counts, and `auto` means
    /// what that makes of it.
    public func stabilizationModes(formatID: String?) -> [String]? {
        guard let formats else { return nil }
        let format = formats.first { $0.id == formatID }
        if let modes = format?.traits.supportedVideoStabilizationModes { return modes }
        let order = VideoStabilizationMode.allCases.map(\.rawValue)
        let words = Set(stabilizationWords).union(["off", "auto"])
        return order.filter(words.contains)
    }
}

extension CaptureSession {
    /// - Throws: `controlUnsupported` {control, supported}: the format that the session wants of the device hasn't got
    ///   the mode.
    func check(_ mode: VideoStabilizationMode, of device: String, in surroundings: Surroundings) throws(BusError) {
        guard mode != .off, let known = surroundings.device(device), let formats = known.formats,
            let supported = known.stabilizationModes(formatID: wantedFormat(of: device, formats)),
            !supported.contains(mode.rawValue)
        else { return }
        throw BusError(
            .controlUnsupported,
            "\(device)'s pictures can't be stabilized as \(mode.rawValue) in this format; it has "
                + "\(supported.joined(separator: ", ")).",
            [
                "device": .string(device), "control": "preferredVideoStabilizationMode",
                "supported": JSONValue(supported),
            ])
    }

    /// The row of the table that the session would have the device set to, alone; nil: none in particular.
    private func wantedFormat(of device: String, _ formats: [CaptureFormat]) -> String? {
        switch input(device)?.activeFormat {
        case .id(let id)?: id
        case .size(let pixelFormat, let size)?:
            formats.first { $0.has(size) && (pixelFormat ?? $0.pixelFormat) == $0.pixelFormat }?.id
        case .sound?: nil
        case nil: preset.resolve(for: formats)?.formatID
        }
    }

    /// Whether it wants the pictures of one of its devices stabilized. That it doesn't is no wish that it be off.
    public func prefersStabilization(of device: String) -> Bool {
        connections.contains {
            $0.input == device && $0.isEnabled && $0.preferredVideoStabilizationMode != .off
        }
    }
}
