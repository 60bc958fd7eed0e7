public import BusProtocol
public import JSON

/// What a session's output gets from one of its inputs, and where.
public struct SessionDelivery: Hashable, Sendable {
    public var connection: SessionConnection
    public var kind: SessionOutput.Kind
    /// What to subscribe to; nil: the output has no topic, or its connection is off.
    public var rendition: Rendition?
    /// Of the pictures that a topic delivers, or that a photo or movie shows.
    public var dimensions: Dimensions
    /// nil: the driver doesn't tell.
    public var frameRate: Double?
    public var isMirrored: Bool
    /// What of the output's wish could not be had; nil: all of it is.
    public var why: String?
    /// Why it gets nothing as the device is set, half a sentence; nil: it gets something.
    public var obstacle: String?
    /// What is on at the device: off or standard.
    public var activeVideoStabilizationMode = VideoStabilizationMode.off

    /// {output, type, device, mediaType, topic, rendition, width, height, frameRate, mirrored,
    /// activeVideoStabilizationMode, sampleFormat, rate, channels, why}; what is of sound only is null.
    ///
    /// - Parameter refused: why the device refuses the rendition; nil: it does not.
    public func json(refused: String?) -> JSONValue {
        let why = [obstacle.map { "It gets nothing: \($0)." } ?? refused, why].compactMap(\.self).joined(separator: " ")
        let topic = rendition.map { Topic.frame(connection.input, $0.description).text }
        return [
            "output": .string(connection.output), "type": .string(kind.rawValue), "device": .string(connection.input),
            "mediaType": "video", "topic": topic.map(JSONValue.string) ?? .null,
            "rendition": (rendition?.description).map(JSONValue.string) ?? .null,
            "width": JSONValue(dimensions.width), "height": JSONValue(dimensions.height),
            "frameRate": frameRate.map(JSONValue.plain) ?? .null, "mirrored": .bool(isMirrored),
            "activeVideoStabilizationMode": .string(activeVideoStabilizationMode.rawValue),
            "sampleFormat": .null, "rate": .null, "channels": .null, "why": why.isEmpty ? .null : .string(why),
        ]
    }
}

extension CaptureSession {
    /// What the session wants of one of its inputs.
    ///
    /// - Parameter formats: the device's format table.
    public func demand(on device: String, formats: [CaptureFormat]) -> CaptureDemand? {
        guard let input = input(device) else { return nil }
        let party = CaptureParty(.session, id: id, name: name ?? owner.name)
        return CaptureDemand(party, priority: priority, since: since, wish: wish(input, formats))
    }

    private func wish(_ input: SessionInput, _ formats: [CaptureFormat]) -> CaptureDemand.Wish {
        let rate = input.frameRate?.shortest
        if let format = input.activeFormat {
            switch format {
            case .id(let id):
                guard let row = formats.first(where: { $0.id == id }) else { return .nothing }
                let selection = FormatSelection(pixelFormat: row.pixelFormat, dimensions: row.dimensions)
                return .format(selection, id: id, frameDurations: input.frameRate?.bounds)
            case .size(let pixelFormat?, let size):
                let selection = FormatSelection(pixelFormat: pixelFormat, dimensions: size)
                return .format(selection, frameDurations: input.frameRate?.bounds)
            case .size(nil, let size): return .size(size, rate: rate)
            case .sound: return .nothing
            }
        }
        if preset == .inputPriority { return .nothing }
        guard let rate, let resolution = preset.resolve(for: formats) else { return .preset(preset) }
        return .size(resolution.dimensions, rate: rate)
    }

    /// What each output gets from a device that serves the session.
    ///
    /// - Parameters:
    ///   - delivery: what the arbiter gives the session.
    ///   - position: where the device looks, for connections that mirror by themselves.
    ///   - orientation: how the device's pictures have to be turned to be upright.
    ///   - stabilization: what is on at the device.
    public func deliveries(
        of device: String, _ delivery: DemandDelivery, position: DevicePosition,
        orientation: PictureOrientation = .upright, stabilization: VideoStabilizationMode = .off
    ) -> [SessionDelivery] {
        connections.filter { $0.input == device }.compactMap { connection in
            guard var resolved = output(connection.output)?.delivery(connection, delivery, position, orientation)
            else { return nil }
            resolved.activeVideoStabilizationMode = stabilization
            if connection.isEnabled, let pixelFormat = delivery.pixelFormat {
                let obstacle = output(connection.output)?.obstacle(pixelFormat, of: device)
                resolved.obstacle = obstacle ?? resolved.obstacle
            }
            return resolved
        }
    }
}

extension SessionOutput {
    fileprivate func delivery(
        _ connection: SessionConnection, _ delivery: DemandDelivery, _ position: DevicePosition,
        _ orientation: PictureOrientation
    ) -> SessionDelivery {
        let isMirrored = connection.videoMirrored.isOn(position: position)
        var resolved = SessionDelivery(
            connection: connection, kind: kind, dimensions: delivery.dimensions,
            frameRate: delivery.frameDuration?.framesPerSecond, isMirrored: isMirrored)
        if !kind.isTopic {
            let turn = PictureOrientation(
                quarters: connection.videoOrientation.rotationAngle / 90, isMirrored: isMirrored)
            resolved.dimensions = orientation.followed(by: turn).turned(delivery.dimensions)
        }
        guard kind.isTopic, connection.isEnabled else { return resolved }
        var rendition = Rendition(format ?? kind.encoding)
        // Named also where the device has no other: its topic is then the same when it has, for somebody else.
        let own =
            delivery.frameDuration.flatMap { FrameRate($0.denominator, $0.numerator) }.map(\.millionths)
            ?? delivery.rendition.rateMillionths
        rendition.rateMillionths = [own, frameRate.flatMap { FrameRate($0) }.map(\.millionths)].compactMap { $0 }.min()
        if let rate = frameRate, let own = resolved.frameRate { resolved.frameRate = min(rate, own) }
        guard rendition.encoding != .native else {
            if connection.videoOrientation != .landscapeRight || isMirrored {
                resolved.why = "A native picture is neither turned nor mirrored."
            }
            // A native rate below the device's would leave out of H.264 all but the key frames.
            if frameRate == nil { rendition.rateMillionths = delivery.rendition.rateMillionths }
            resolved.isMirrored = false
            resolved.rendition = rendition
            return resolved
        }
        rendition.quality = quality
        rendition.videoRotationAngle = connection.videoOrientation.rotationAngle
        rendition.isVideoMirrored = isMirrored
        let turned = orientation.followed(by: PictureOrientation(rendition)).turned(delivery.dimensions)
        var size = dimensions.map { $0.completed(by: turned) } ?? turned
        if size.width > turned.width || size.height > turned.height {
            resolved.why = "\(size) would be larger than the device's picture: \(turned)."
            size = size.fitted(into: turned)
        }
        let isExact = [.bgr, .rgb, .gray, .gray16, .rgb48].contains(rendition.encoding)
        if !isExact, rendition.encoding != .jpeg || size != turned {
            size = size.even
            if size.width > turned.width || size.height > turned.height {
                resolved.obstacle =
                    "\(connection.input) delivers \(turned), and \(rendition.encoding.rawValue) needs two pixels on "
                    + "each side; take rgb"
            }
        }
        (rendition.width, rendition.height) = (size.width, size.height)
        resolved.dimensions = size
        resolved.rendition = rendition
        return resolved
    }
}

extension FrameRateRequest {
    /// The frame durations that do.
    fileprivate var bounds: FrameDurationBounds {
        switch self {
        case .rate(let rate): FrameDurationBounds(constant: FrameDuration(rate))
        case .range(let min, let max): FrameDurationBounds(min: min, max: max)
        }
    }

    /// The highest rate that is asked for.
    fileprivate var shortest: FrameDuration? {
        switch self {
        case .rate(let rate): FrameDuration(rate)
        case .range(let min, let max): min ?? max
        }
    }
}

extension Dimensions {
    /// What takes the place of a size that was chosen for pictures of that format, where they have this one.
    public func replacing(_ format: Dimensions, in chosen: Dimensions) -> Dimensions {
        if chosen == format || width <= chosen.width && height <= chosen.height { return self }
        return fitted(into: chosen)
    }

    /// A side of 0 follows the other, at the aspect of that picture.
    fileprivate func completed(by picture: Dimensions) -> Dimensions {
        func side(_ given: Int, _ other: Int, _ along: Int, _ across: Int) -> Int {
            given > 0 || across <= 0 ? given : max(1, (other * along + across / 2) / across)
        }
        return Dimensions(
            width: side(width, height, picture.width, picture.height),
            height: side(height, width, picture.height, picture.width))
    }

    /// As large as it can be within that one, at its own aspect.
    fileprivate func fitted(into room: Dimensions) -> Dimensions {
        guard width > 0, height > 0 else { return room }
        let isWide = width * room.height >= height * room.width
        return isWide
            ? Dimensions(width: room.width, height: max(1, height * room.width / width))
            : Dimensions(width: max(1, width * room.height / height), height: room.height)
    }

    fileprivate var even: Dimensions { Dimensions(width: max(2, width / 2 * 2), height: max(2, height / 2 * 2)) }
}
