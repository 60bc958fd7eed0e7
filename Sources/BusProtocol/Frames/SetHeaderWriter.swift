import JSON

/// Writes the headers of a rig's matched sets into memory that it keeps: what frames say of themselves goes in as it
/// came.
public struct SetHeaderWriter: Sendable {
    /// What only the matching knows of a frame.
    public struct Place: Hashable, Sendable {
        /// Nanoseconds from the lead's frame to this one.
        public var offset: Int64
        /// Of this device: frames that are in no set so far, and those that went out late.
        public var unmatched: UInt64
        public var late: UInt64

        public init(offset: Int64 = 0, unmatched: UInt64, late: UInt64) {
            self.offset = offset
            self.unmatched = unmatched
            self.late = late
        }
    }

    private var writer: JSONWriter
    private let constantBytes: Int
    private var payloads = 0
    private var isFirst = true

    /// - Parameters:
    ///   - set: the rig's name.
    ///   - rendition: as the subscriber spelled it.
    ///   - stream: a random id, new whenever `sequence` and `number` begin anew.
    public init(set: String, rendition: String, stream: String) {
        writer = JSONWriter(capacity: 4096)
        writer.raw(#"{"v":1,"set":"#)
        writer.string(set)
        writer.raw(#","rendition":"#)
        writer.string(rendition)
        writer.raw(#","stream":"#)
        writer.string(stream)
        writer.raw(#","sequence":"#)
        constantBytes = writer.bytes.count
    }

    /// Begins a header; its frames follow, in the order of the rig's devices, then ``end()``.
    ///
    /// - Parameters:
    ///   - sequence: counts the messages.
    ///   - number: counts the sets; of a late frame that of its set.
    ///   - monotonic: the time of the lead's frame, CLOCK_MONOTONIC, nanoseconds.
    public mutating func begin(
        sequence: UInt64, number: UInt64, isLate: Bool, monotonic: Int64, spread: Int64, tolerance: Int64
    ) {
        writer.truncate(to: constantBytes)
        payloads = 0
        isFirst = true
        writer.unsigned(sequence)
        writer.raw(#","number":"#)
        writer.unsigned(number)
        isLate ? writer.raw(#","late":true,"monotonic":"#) : writer.raw(#","late":false,"monotonic":"#)
        writer.integer(monotonic)
        writer.raw(#","spread":"#)
        writer.integer(spread)
        writer.raw(#","tolerance":"#)
        writer.integer(tolerance)
        writer.raw(#","frames":["#)
    }

    /// A frame, whose payload is the next one.
    ///
    /// - Parameter header: as its device published it: an object that has members.
    public mutating func add(header: UnsafeRawBufferPointer, _ place: Place) {
        separate()
        writer.raw(#"{"payload":"#)
        writer.integer(Int64(payloads))
        payloads += 1
        writer.raw(#","offset":"#)
        writer.integer(place.offset)
        counters(place)
        writer.raw(",")
        writer.raw(header.dropFirst())
    }

    /// A device of which there is no frame.
    public mutating func add(missing device: String, reason: String, message: String, _ place: Place) {
        separate()
        writer.raw(#"{"device":"#)
        writer.string(device)
        counters(place)
        writer.raw(#","missing":{"reason":"#)
        writer.string(reason)
        writer.raw(#","message":"#)
        writer.string(message)
        writer.raw("}}")
    }

    public mutating func end() { writer.raw("]}") }

    /// The header written last.
    public var bytes: [UInt8] { writer.bytes }

    private mutating func separate() {
        if !isFirst { writer.raw(",") }
        isFirst = false
    }

    private mutating func counters(_ place: Place) {
        writer.raw(#","unmatched":"#)
        writer.unsigned(place.unmatched)
        writer.raw(#","lateFrames":"#)
        writer.unsigned(place.late)
    }
}
