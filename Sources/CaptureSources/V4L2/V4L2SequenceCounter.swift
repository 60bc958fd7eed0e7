/// Makes a count that never wraps of a driver's 32-bit `v4l2_buffer.sequence`, from 0 at the stream's first frame.
package struct V4L2SequenceCounter {
    private var last: (driver: UInt32, extended: UInt64)?

    package init() {}

    /// The count of the frame with that driver's number. Always higher than the one before.
    package mutating func extended(_ sequence: UInt32) -> UInt64 {
        guard let last else {
            // Not all drivers start at 0 with each stream, so that what came before the first frame can't be told from
            // its number.
            self.last = (sequence, 0)
            return 0
        }
        let step = Int32(bitPattern: sequence &- last.driver)
        // A driver that counts nothing, or that starts again within a stream, has told nothing about lost frames.
        let extended = last.extended + (step > 0 ? UInt64(step) : 1)
        self.last = (sequence, extended)
        return extended
    }
}
