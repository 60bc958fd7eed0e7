/// The frames before a request's own: a REQ socket sends an empty one, REQ with `ZMQ_REQ_CORRELATE` a number before it,
/// and a DEALER may leave them out. A reply carries back what came in.
///
/// Frames are told apart by their sizes alone, whatever they are kept in.
public enum RequestEnvelope {
    /// Splits what came behind the ROUTER's routing id: everything up to and including the first empty frame is the
    /// envelope.
    ///
    /// - Parameter size: the bytes of a frame.
    @inlinable
    public static func split<Frames: Collection>(
        _ frames: Frames, size: (Frames.Element) -> Int
    ) -> (envelope: Frames.SubSequence, body: Frames.SubSequence) {
        let start = frames.firstIndex { size($0) == 0 }.map { frames.index(after: $0) } ?? frames.startIndex
        return (frames[..<start], frames[start...])
    }

    /// False for an envelope that is not worth mirroring: the message is dropped without a reply.
    @inlinable
    public static func isAcceptable<Frames: Collection>(_ envelope: Frames, size: (Frames.Element) -> Int) -> Bool {
        guard envelope.count <= BusLimits.maxEnvelopeFrames else { return false }
        return envelope.reduce(0) { $0 + size($1) } <= BusLimits.maxEnvelopeBytes
    }
}
