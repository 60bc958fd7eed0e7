/// What is missing of the sound that a subscriber gets: lost by the device, or on the way (`Protocol/spec/sound.md`).
public struct SoundContinuity: Hashable, Sendable {
    private var stream: String?
    private var sequence: UInt64 = 0
    private var nextFrame: UInt64 = 0

    public init() {}

    /// Takes the next message that came.
    ///
    /// - Returns: frames of sound that are missing before it; 0 for the first of a stream, of which that can't be
    ///   known. nil: it is not newer than the one before, and is to be left out.
    public mutating func receive(stream: String, sequence: UInt64, firstFrame: UInt64, frames: Int) -> UInt64? {
        let isNew = stream != self.stream
        guard isNew || sequence > self.sequence else { return nil }
        let missing = isNew || firstFrame < nextFrame ? 0 : firstFrame - nextFrame
        (self.stream, self.sequence) = (stream, sequence)
        nextFrame = firstFrame &+ UInt64(clamping: frames)
        return missing
    }
}
