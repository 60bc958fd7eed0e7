public import BusProtocol
public import JSON

/// What a session's output gets from a microphone, and where.
public struct SessionSoundDelivery: Hashable, Sendable {
    public var connection: SessionConnection
    public var kind: SessionOutput.Kind
    /// What to subscribe to; nil: the output has no topic, or its connection is off.
    public var rendition: SoundRendition?
    /// The sound as it comes.
    public var sampleFormat: SampleFormat
    public var rate: Int
    public var channels: Int

    /// As ``SessionDelivery/json(refused:)``, with what is of pictures only null, and {sampleFormat, rate, channels}.
    public func json(refused: String?) -> JSONValue {
        let topic = rendition.map {
            MediaTopic(.audio, device: connection.input, renditionText: $0.description).text
        }
        return [
            "output": .string(connection.output), "type": .string(kind.rawValue), "device": .string(connection.input),
            "mediaType": "audio", "topic": topic.map(JSONValue.string) ?? .null,
            "rendition": (rendition?.description).map(JSONValue.string) ?? .null, "width": .null, "height": .null,
            "frameRate": .null, "mirrored": false, "activeVideoStabilizationMode": "off",
            "sampleFormat": .string(sampleFormat.rawValue), "rate": JSONValue(rate), "channels": JSONValue(channels),
            "why": refused.map(JSONValue.string) ?? .null,
        ]
    }
}

extension CaptureSession {
    /// The session's demand on one of its microphones.
    ///
    /// - Parameter position: where the session's camera looks; nil: it has none, or several.
    public func soundDemand(
        on device: String, _ microphone: SessionMicrophone, camera position: DevicePosition?
    ) -> SoundDemand? {
        guard let input = input(device), input.mediaType == .audio else { return nil }
        return SoundDemand(
            CaptureParty(.session, id: id, name: name ?? owner.name), priority: priority, since: since,
            format: input.activeFormat,
            dataSource: input.preferredDataSource.source(of: microphone.dataSources, camera: position)?.id)
    }

    /// What each output gets from a microphone with its present configuration.
    ///
    /// - Parameter first: the microphone's format when the session began; nil: the present one.
    public func soundDeliveries(
        of device: String, _ microphone: SessionMicrophone, since first: SoundFormat? = nil
    ) -> [SessionSoundDelivery] {
        guard let input = input(device) else { return [] }
        // Members that the request leaves open keep the values of that time, too.
        var then = microphone
        then.current = first ?? microphone.current
        let own =
            input.activeFormat.flatMap { try? then.format(of: $0, device: device, mode: .nearest) } ?? then.current
        return connections.filter { $0.input == device }.compactMap { connection in
            guard let output = output(connection.output) else { return nil }
            var made = SessionSoundDelivery(
                connection: connection, kind: output.kind, rendition: nil, sampleFormat: own.sampleFormat,
                rate: own.rate, channels: own.channels)
            guard output.kind == .audioData else { return made }
            if output.soundFormat == .native {
                (made.sampleFormat, made.rate, made.channels) = (
                    microphone.current.sampleFormat, microphone.current.rate, microphone.current.channels
                )
                made.rendition = SoundRendition(.native)
            } else {
                // Named in full: the topic is then the same whatever others want of the device.
                let encoding = output.soundFormat ?? (own.sampleFormat == .s16 ? .s16 : .f32)
                made.sampleFormat = encoding == .s16 ? .s16 : .f32
                made.rate = output.rate ?? own.rate
                made.channels = output.channels ?? own.channels
                made.rendition = SoundRendition(encoding, rate: made.rate, channels: made.channels)
            }
            if !connection.isEnabled { made.rendition = nil }
            return made
        }
    }
}
