/// Counts who uses the buffers of a stream, so that the device never runs dry.
struct SlotLedger {
    private var uses: [Int]
    /// Buffers of the stream that have not been lost.
    private(set) var total: Int
    /// Buffers that the device has.
    private(set) var queued: Int
    /// Buffers that the device keeps, whoever else wants one.
    let reserve: Int

    /// - Parameter slots: buffers of the stream, all queued to the device.
    init(slots: Int) {
        uses = Array(repeating: 0, count: slots)
        total = slots
        queued = slots
        reserve = min(2, max(0, slots - 1))
    }

    /// Nobody but the device has a buffer.
    var isHome: Bool { queued == total }

    /// A filled buffer has come from the device; the caller has it until ``release(_:)``.
    mutating func dequeued(_ slot: Int) {
        queued -= 1
        uses[slot] = 1
    }

    /// Another user for a buffer that is out.
    ///
    /// - Returns: false when the device needs it back at once; then it is not used.
    mutating func retain(_ slot: Int) -> Bool {
        guard queued >= reserve else { return false }
        uses[slot] += 1
        return true
    }

    /// A user is done with the buffer.
    ///
    /// - Returns: true when it was the last one: the buffer is to be queued again, and counts as queued.
    mutating func release(_ slot: Int) -> Bool {
        uses[slot] -= 1
        guard uses[slot] == 0 else { return false }
        queued += 1
        return true
    }

    /// The device did not take back a buffer that ``release(_:)`` counted as queued: the stream goes on without it.
    mutating func lost(_ slot: Int) {
        queued -= 1
        total -= 1
    }
}
