import BusProtocol
import JSON

// What an output can have of a device's pictures.

extension SessionOutput {
    /// Why it can have nothing of a device whose pictures have that pixel format; nil: it can.
    ///
    /// Half a sentence for people, without its full stop.
    public func obstacle(_ pixelFormat: PixelFormat, of device: String) -> String? {
        let isConvertible = pixelFormat.nearestEncoding != nil
        let (wanted, way): (String, String)
        switch kind {
        case .videoData, .preview:
            let encoding = format ?? kind.encoding
            guard !isConvertible, encoding != .native else { return nil }
            (wanted, way) = ("\(encoding.rawValue) picture", "take native, or choose")
        case .photo:
            guard pixelFormat.photoCodecs.isEmpty, pixelFormat.rawPhotoFormats.isEmpty else { return nil }
            (wanted, way) = ("photo", "choose")
        case .movie:
            guard !isConvertible, pixelFormat != .h264 else { return nil }
            (wanted, way) = ("movie", "choose")
        case .audioData, .metadata: return nil
        }
        return
            "no \(wanted) can be made of \(pixelFormat.name), which \(device) delivers; \(way) an activeFormat with "
            + "another pixelFormat"
    }
}

extension CaptureSession {
    /// Refuses an output that was added or changed its format, if no camera of the session can serve it in the format
    /// that the session uses.
    ///
    /// - Parameter before: the session as it was.
    func checkOutputs(since before: CaptureSession, in surroundings: Surroundings) throws(BusError) {
        for output in outputs {
            let old = before.output(output.id)
            guard old?.kind != output.kind || old?.format != output.format else { continue }
            let cameras = connections(of: output.id).filter { $0.isEnabled && input($0.input)?.mediaType == .video }
            let obstacles = cameras.compactMap { connection in
                surroundings.pixelFormat(self, connection.input).flatMap { output.obstacle($0, of: connection.input) }
            }
            guard let why = obstacles.first, obstacles.count == cameras.count else { continue }
            guard old == nil else {
                throw BusError(.formatUnsupported, "\(output.id) would get nothing: \(why).", ["nearest": .null])
            }
            throw Self.cannotAddOutput(output.kind, why)
        }
    }
}
