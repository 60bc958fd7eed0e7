import Glibc
public import LinuxIO

/// The side-car of a movie: a line of JSON for each frame that came or was missed, in order.
///
///     {"timestamp":1234567890,"realtime":1796000000000000000,"sequence":42,"dropped":0}
///
/// Lines are written whole, and are kept in memory until that is full or ``sync()`` is called. Used by one thread at a
/// time.
public final class FrameLog {
    public let path: String
    /// Lines so far.
    public private(set) var lines: UInt64 = 0

    private let file: NewFile
    private let room: UnsafeMutableRawBufferPointer
    private var used = 0

    // Four numbers of at most twenty digits, and what is around them.
    private static let longestLine = 160

    /// Makes the file, which has no name yet.
    ///
    /// - Parameters:
    ///   - name: what it is called, if the path is but a way to it.
    ///   - mode: as of ``NewFile``.
    ///   - temporary: likewise.
    /// - Throws: `EEXIST`; nothing is overwritten.
    public init(
        _ path: String, as name: String? = nil, mode: UInt32? = nil, temporary: String? = nil,
        bufferBytes: Int = 1 << 16
    ) throws(SystemError) {
        self.path = name ?? path
        file = try NewFile(path, mode: mode, temporary: temporary)
        room = .allocate(byteCount: max(bufferBytes, Self.longestLine), alignment: 16)
    }

    deinit { room.deallocate() }

    /// Which file it is.
    public func identity() throws(SystemError) -> FileIdentity { try file.identity() }

    /// Gives it its name, for good.
    ///
    /// - Throws: `EEXIST`; nothing is overwritten.
    public func publish() throws(SystemError) { try file.publish() }

    /// Takes its name from it again, if it has one.
    public func withdraw() { file.withdraw() }

    /// Adds a line.
    ///
    /// - Parameters:
    ///   - timestamp: of the frame, nanoseconds of CLOCK_MONOTONIC.
    ///   - realtime: the same of CLOCK_REALTIME.
    ///   - sequence: its number, as the camera counts.
    ///   - dropped: how many frames are missing in front of it.
    public func append(
        timestamp: Int64, realtime: Int64, sequence: UInt64, dropped: UInt64
    ) throws(SystemError) {
        if room.count - used < Self.longestLine { try flush() }
        add("{\"timestamp\":")
        add(timestamp)
        add(",\"realtime\":")
        add(realtime)
        add(",\"sequence\":")
        add(sequence)
        add(",\"dropped\":")
        add(dropped)
        add("}\n")
        lines += 1
    }

    /// Adds a line that says something of all frames.
    ///
    /// - Throws: `EFBIG` for one longer than the memory for lines.
    public func append(line: String) throws(SystemError) {
        let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
        guard bytes.count <= room.count else { throw SystemError(code: EFBIG, operation: "write", subject: path) }
        if room.count - used < bytes.count { try flush() }
        guard let base = room.baseAddress else { return }
        bytes.withUnsafeBytes {
            (base + used).copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(base), byteCount: $0.count)
        }
        used += bytes.count
    }

    /// Waits until all lines are on the disk.
    public func sync() throws(SystemError) {
        try flush()
        try file.sync()
    }

    private func flush() throws(SystemError) {
        var done = 0
        // What could not be written is kept for another try; lines stay whole in the end.
        defer {
            if done > 0, done < used, let base = room.baseAddress { memmove(base, base + done, used - done) }
            used -= done
        }
        while done < used {
            guard let base = room.baseAddress else { return }
            done += try check("write", path) { write(file.rawValue, base + done, used - done) }
        }
    }

    private func add(_ text: StaticString) {
        guard let base = room.baseAddress else { return }
        (base + used).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        used += text.utf8CodeUnitCount
    }

    private func add(_ number: Int64) {
        if number < 0 { add("-") }
        add(number.magnitude)
    }

    private func add(_ number: UInt64) {
        var (rest, digits) = (number, 1)
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        rest = number
        for place in stride(from: used + digits - 1, through: used, by: -1) {
            room[place] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
        used += digits
    }
}
