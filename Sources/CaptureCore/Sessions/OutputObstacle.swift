import BusProtocol
public import JSON

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
    /// Why an output can have nothing, as the session has no input of its kind; nil: it has one.
    ///
    /// Half a sentence for people, without its full stop.
    public func missingInput(of output: SessionOutput) -> String? {
        guard connections(of: output.id).isEmpty else { return nil }
        let wanted = output.kind.mediaTypes
        let missing = wanted.count > 1 ? "input" : wanted == [.audio] ? "microphone" : "camera"
        return "the session has no \(missing); add one with addInput"
    }

    /// Refuses an output that was added or changed its format, if no camera of the session can serve it in the format
    /// that the session uses; and one that was added to inputs none of which is of its kind.
    ///
    /// - Parameter before: the session as it was.
    func checkOutputs(since before: CaptureSession, in surroundings: Surroundings) throws(BusError) {
        guard let pixelFormat = surroundings.pixelFormat else { return }
        for output in outputs {
            let old = before.output(output.id)
            // A session may get its outputs before its inputs.
            if old == nil, !inputs.isEmpty, let why = missingInput(of: output) {
                throw Self.cannotAddOutput(output.kind, why)
            }
            guard old?.kind != output.kind || old?.format != output.format else { continue }
            let cameras = connections(of: output.id).filter { $0.isEnabled && input($0.input)?.mediaType == .video }
            let obstacles = cameras.compactMap { connection in
                pixelFormat(self, connection.input).flatMap { output.obstacle($0, of: connection.input) }
            }
            guard let why = obstacles.first, obstacles.count == cameras.count else { continue }
            guard old == nil else {
                throw BusError(.formatUnsupported, "\(output.id) would get nothing: \(why).", ["nearest": .null])
            }
            throw Self.cannotAddOutput(output.kind, why)
        }
    }
}

/// An output of a session that has no input of its kind.
public struct SessionUnservedOutput: Hashable, Sendable {
    public var output: SessionOutput
    /// Half a sentence: what is missing, and what to do.
    public var why: String

    /// As ``SessionDelivery/json(refused:)``, of no device.
    public var json: JSONValue {
        [
            "output": .string(output.id), "type": .string(output.kind.rawValue), "device": .null,
            "mediaType": output.kind.mediaTypes == [.audio] ? "audio" : "video", "topic": .null, "rendition": .null,
            "width": .null, "height": .null, "frameRate": .null, "mirrored": false,
            "activeVideoStabilizationMode": "off", "sampleFormat": .null, "rate": .null, "channels": .null,
            "why": .string("It gets nothing: \(why)."),
        ]
    }

    /// For people.
    public var sentence: String { "\(output.id) gets nothing: \(why)." }
}

extension CaptureSession {
    /// The outputs that have no input of their kind.
    public var unservedOutputs: [SessionUnservedOutput] {
        outputs.compactMap { output in missingInput(of: output).map { SessionUnservedOutput(output: output, why: $0) } }
    }
}
