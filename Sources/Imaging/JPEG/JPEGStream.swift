public import CaptureCore

/// What can be told of a JPEG picture's markers without decoding it (ITU-T T.81, Annex B).
public enum JPEGStream {
    /// True for a picture without Huffman tables (`DHT`), as many UVC cameras and AVI files have them: Motion JPEG
    /// means the standard ones then, which few programs other than video players know.
    public static func lacksHuffmanTables(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        JPEGHead(jpeg).map { $0.scan != nil && !$0.hasTables } ?? false
    }

    /// Writes the picture with what it lacks (``completion(of:orientation:)``).
    ///
    /// - Returns: false for a picture that lacks nothing, or whose markers make no sense; then nothing is written.
    public static func complete(
        _ jpeg: UnsafeRawBufferPointer, into output: PictureBuffer
    ) throws(ConversionError) -> Bool {
        guard let completion = completion(of: jpeg) else { return false }
        try output.reserve(jpeg.count + completion.bytes)
        completion.fill(jpeg, into: output.room)
        output.setCount(jpeg.count + completion.bytes)
        return true
    }

    /// How much longer a picture becomes at most by what it lacks.
    public static var mostMissingBytes: Int { standardTables.count + JPEGOrientationSegment.bytes + end.count }

    private static let end: [2 of UInt8] = [0xFF, 0xD9]

    /// What a picture lacks that other programs need: its Huffman tables (the standard ones are meant then: T.81 Annex
    /// K.3, as RFC 2435 gives them), its end (`EOI`), or the word on how it has to be turned.
    public struct Completion: Hashable, Sendable {
        /// Where the tables belong; nil: it has some.
        fileprivate var tables: Int?
        /// What stands behind its beginning; nil: it needs none.
        fileprivate var orientation: JPEGOrientationSegment?
        fileprivate var lacksEnd = false

        /// How much longer the picture is with it.
        public var bytes: Int {
            (tables == nil ? 0 : standardTables.count) + (orientation == nil ? 0 : JPEGOrientationSegment.bytes)
                + (lacksEnd ? end.count : 0)
        }

        /// Writes the whole picture: its own bytes and ``bytes`` more.
        ///
        /// - Parameters:
        ///   - jpeg: the picture that this was found in.
        ///   - room: of that many bytes, at least.
        public func fill(_ jpeg: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
            precondition((tables ?? 2) <= jpeg.count && jpeg.count >= 2 && room.count >= jpeg.count + bytes)
            var (read, written) = (0, 0)
            func copy(to end: Int) {
                UnsafeMutableRawBufferPointer(rebasing: room[written...])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: jpeg[read..<end]))
                (read, written) = (end, written + end - read)
            }
            if let orientation {
                copy(to: 2)
                orientation.write(to: UnsafeMutableRawBufferPointer(rebasing: room[written...]))
                written += JPEGOrientationSegment.bytes
            }
            if let tables {
                copy(to: tables)
                standardTables.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: room[written...]).copyMemory(from: $0)
                }
                written += standardTables.count
            }
            copy(to: jpeg.count)
            if lacksEnd { for index in end.indices { room[written + index] = end[index] } }
        }
    }

    /// Decodes nothing; nil for a picture that lacks nothing, or whose markers make no sense.
    ///
    /// - Parameter orientation: how its pixels have to be turned, unless its own EXIF data say that.
    public static func completion(
        of jpeg: UnsafeRawBufferPointer, orientation: PictureOrientation = .upright
    ) -> Completion? {
        guard let head = JPEGHead(jpeg), let scan = head.scan else { return nil }
        var completion = Completion(tables: head.hasTables ? nil : scan)
        // In front of other EXIF data: readers take the first.
        if orientation != .upright, head.orientation == nil {
            completion.orientation = JPEGOrientationSegment(orientation)
        }
        completion.lacksEnd = !hasEnd(jpeg, behind: scan)
        return completion.bytes == 0 ? nil : completion
    }

    /// True if the picture begins as a JPEG does (`SOI`).
    public static func hasStart(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        jpeg.count > 2 && jpeg[0] == 0xFF && jpeg[1] == 0xD8
    }

    /// True if the end of the picture (`EOI`) is there, whatever its camera has put behind it.
    public static func hasEnd(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        endsInFilling(jpeg) || JPEGHead(jpeg)?.scan.map { hasEnd(jpeg, behind: $0) } ?? false
    }

    private static func hasEnd(_ jpeg: UnsafeRawBufferPointer, behind scan: Int) -> Bool {
        endsInFilling(jpeg) || JPEGHead.end(of: jpeg, from: scan) != nil
    }

    /// What a picture lacks at its end (`EOI`); nil: nothing.
    public static func missingEnd(of jpeg: UnsafeRawBufferPointer) -> [2 of UInt8]? { hasEnd(jpeg) ? nil : end }

    // At once for nearly every camera: its last bytes are the end, but for zeros up to a block of its own.
    private static func endsInFilling(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        var count = jpeg.count
        while count > 4, jpeg[count - 1] == 0 { count -= 1 }
        return count > 4 && jpeg[count - 2] == end[0] && jpeg[count - 1] == end[1]
    }
}
