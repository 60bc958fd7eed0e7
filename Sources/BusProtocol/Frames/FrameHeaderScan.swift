/// Finds single members in the bytes of a frame's header without reading all of it.
///
/// As names of members only: within a text a quotation mark has a backslash in front of it, so that what is looked for
/// can stand there only as a member.
public enum FrameHeaderScan {
    private static let monotonicMember: StaticString = "\"monotonic\":"
    private static let sequenceMember: StaticString = "\"sequence\":"
    private static let firstFrameMember: StaticString = "\"firstFrame\":"
    private static let streamMember: StaticString = "\"stream\":\""
    private static let keyframeMember: StaticString = "\"keyframe\":"
    private static let formatMember: StaticString = "\"format\":\""
    private static let compressed = ["JPEG", "MJPG", "H264", "HEVC"].map { Array($0.utf8) }

    /// `timestamp.monotonic`; nil where there is none.
    public static func monotonic(_ header: UnsafeRawBufferPointer) -> Int64? { number(monotonicMember, in: header) }

    /// `sequence`; nil where there is none.
    public static func sequence(_ header: UnsafeRawBufferPointer) -> Int64? { number(sequenceMember, in: header) }

    /// Of sound: `firstFrame`; nil where there is none.
    public static func firstFrame(_ header: UnsafeRawBufferPointer) -> Int64? { number(firstFrameMember, in: header) }

    /// `keyframe`; nil where there is none, as each frame stands for itself.
    public static func isKeyframe(_ header: UnsafeRawBufferPointer) -> Bool? {
        guard let start = end(of: keyframeMember, in: header), start < header.count else { return nil }
        return header[start] == UInt8(ascii: "t")
    }

    /// Whether the `format` of the picture, or any of those of a set, is one of pixels; false where there is none.
    public static func isUncompressed(_ header: UnsafeRawBufferPointer) -> Bool {
        var searched = 0
        while let start = end(of: formatMember, in: header, from: searched) {
            if !isCompressed(header[start...]) { return true }
            searched = start
        }
        return false
    }

    /// Whether the pixels of a format with a name like this are compressed.
    public static func isCompressed(_ format: some Sequence<UInt8>) -> Bool {
        compressed.contains { format.starts(with: $0) }
    }

    private static func number(_ member: StaticString, in header: UnsafeRawBufferPointer) -> Int64? {
        guard let start = end(of: member, in: header) else { return nil }
        var value: Int64 = 0
        var isEmpty = true
        for byte in header[start...] {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { break }
            let (tenfold, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, excess) = tenfold.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            if overflow || excess { return nil }
            value = sum
            isEmpty = false
        }
        return isEmpty ? nil : value
    }

    /// Where the value of `stream` stands; nil where there is none.
    public static func stream(_ header: UnsafeRawBufferPointer) -> Range<Int>? {
        guard let start = end(of: streamMember, in: header) else { return nil }
        guard let end = header[start...].firstIndex(of: UInt8(ascii: "\"")) else { return nil }
        return start..<end
    }

    private static func end(of member: StaticString, in header: UnsafeRawBufferPointer, from first: Int = 0) -> Int? {
        let count = member.utf8CodeUnitCount
        guard header.count - first > count else { return nil }
        let name = UnsafeRawBufferPointer(start: member.utf8Start, count: count)
        for start in first...(header.count - count) where header[start] == name[0] {
            if header[start..<(start + count)].elementsEqual(name) { return start + count }
        }
        return nil
    }
}
