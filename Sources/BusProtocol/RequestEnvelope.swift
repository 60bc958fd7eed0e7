/// The frames before a request's own: a REQ socket sends an empty one, REQ with `ZMQ_REQ_CORRELATE` a number before it, and a
/// DEALER may leave them out. A reply carries back what came in.
public enum RequestEnvelope {
    /// Splits what came behind the ROUTER's routing id: everything up to and including the first empty frame is the envelope.
    public static func split(frames: [[UInt8]]) -> (envelope: [[UInt8]], body: [[UInt8]]) {
        let count = length(ofFrameSizes: frames.map(\.count))
        return (Array(frames.prefix(count)), Array(frames.dropFirst(count)))
    }

    /// How many of the frames are the envelope, told from their sizes alone.
    public static func length(ofFrameSizes sizes: some Sequence<Int>) -> Int {
        for (index, size) in sizes.enumerated() where size == 0 { return index + 1 }
        return 0
    }

    /// False for an envelope that is not worth mirroring: the message is dropped without a reply.
    public static func isAcceptable(_ envelope: [[UInt8]]) -> Bool {
        envelope.count <= BusLimits.maxEnvelopeFrames
            && envelope.reduce(0) { $0 + $1.count } <= BusLimits.maxEnvelopeBytes
    }
}
