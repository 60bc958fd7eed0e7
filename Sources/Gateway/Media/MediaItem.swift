import BusProtocol
import ZeroMQ

/// A message of a media socket, kept for remote clients.
struct MediaItem {
    /// Behind the topic: the header, and what it is of.
    var frames: [Message]
    /// Of all of them.
    var bytes: Int
    /// Monotonic nanoseconds.
    var arrived: Int64
    /// Of a format whose frames build on one another: whether others can begin here; nil: each stands for itself.
    var isKey: Bool?
    /// Its pixels, or those of one of its pictures, are not compressed.
    var isRaw: Bool

    init(frames: [Message], bytes: Int, arrived: Int64, isKey: Bool? = nil, isRaw: Bool = false) {
        self.frames = frames
        self.bytes = bytes
        self.arrived = arrived
        self.isKey = isKey
        self.isRaw = isRaw
    }

    /// What stands behind a topic in a message that has come; nil: nothing.
    init?(_ message: ArraySlice<Message>, isPicture: Bool, at now: Int64) {
        guard let header = message.first else { return nil }
        frames = Array(message)
        bytes = message.reduce(0) { $0 + $1.count }
        arrived = now
        (isKey, isRaw) = header.withUnsafeBytes { bytes in
            (FrameHeaderScan.isKeyframe(bytes), isPicture && FrameHeaderScan.isUncompressed(bytes))
        }
    }
}
