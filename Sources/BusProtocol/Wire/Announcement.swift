public import JSON

/// Makes the second frame of what the bus publishes beside frames: small, and at most some a second.
public enum Announcement {
    /// `state/…/`: a value that lasts; null: it is gone.
    ///
    /// - Parameter previous: the sequence of the message before this one on the same topic, 0 for the first of the
    ///   epoch.
    public static func state(epoch: String, sequence: UInt64, previous: UInt64, value: JSONValue) -> [UInt8] {
        var writer = JSONWriter(capacity: 512)
        head(&writer, epoch, sequence, previous)
        writer.raw(#","value":"#)
        writer.value(value)
        writer.raw("}")
        return writer.bytes
    }

    /// `event/…/`: something that happened.
    ///
    /// - Parameter members: what belongs to this event; none of them is called epoch, sequence, previous or event.
    public static func event(
        epoch: String, sequence: UInt64, previous: UInt64, event: String, members: [String: JSONValue] = [:]
    ) -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        head(&writer, epoch, sequence, previous)
        writer.raw(#","event":"#)
        writer.string(event)
        for name in members.keys.sorted() where !["epoch", "sequence", "previous", "event"].contains(name) {
            writer.raw(",")
            writer.string(name)
            writer.raw(":")
            writer.value(members[name] ?? .null)
        }
        writer.raw("}")
        return writer.bytes
    }

    /// `heartbeat/` on the events socket.
    ///
    /// - Parameter latest: the newest sequence under each prefix; see `Protocol/SPEC.md`, STA-5, on its prefixes.
    public static func heartbeat(epoch: String, latest: [String: UInt64], monotonic: Int64) -> [UInt8] {
        let latest = JSONValue.object(latest.mapValues { JSONValue($0) })
        return JSONValue.object(["epoch": .string(epoch), "latest": latest, "monotonic": .integer(monotonic)])
            .serialized
    }

    /// `heartbeat/` on a device's media socket.
    ///
    /// - Parameters:
    ///   - stream: nil while the device does not stream.
    ///   - lastFrame: CLOCK_MONOTONIC of the last frame that the device gave, nanoseconds; nil: none yet.
    ///   - monotonic: CLOCK_MONOTONIC now, nanoseconds.
    public static func heartbeat(
        device: String, stream: String?, streaming: Bool, lastFrame: Int64?, monotonic: Int64
    ) -> [UInt8] {
        JSONValue.object([
            "device": .string(device), "stream": stream.map(JSONValue.string) ?? .null, "streaming": .bool(streaming),
            "lastFrame": lastFrame.map(JSONValue.integer) ?? .null, "monotonic": .integer(monotonic),
        ]).serialized
    }

    /// `ack/<nonce>/`: there is nothing to say but that it came, unless subscriptions of the connection are refused.
    public static func ack(refused error: BusError?) -> [UInt8] {
        guard let error else { return Array("{}".utf8) }
        return JSONValue.object(["error": error.headerJSON]).serialized
    }

    /// In place of frames, on the topic that was subscribed to: why it can't be made.
    public static func failure(device: String, rendition: String, error: BusError) -> [UInt8] {
        JSONValue.object([
            "v": JSONValue(FrameHeader.version), "device": .string(device), "rendition": .string(rendition),
            "error": error.headerJSON,
        ]).serialized
    }

    private static func head(_ writer: inout JSONWriter, _ epoch: String, _ sequence: UInt64, _ previous: UInt64) {
        writer.raw(#"{"epoch":"#)
        writer.string(epoch)
        writer.raw(#","sequence":"#)
        writer.unsigned(sequence)
        writer.raw(#","previous":"#)
        writer.unsigned(previous)
    }
}
