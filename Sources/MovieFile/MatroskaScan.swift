/// The elements of Matroska files (RFC 8794, RFC 9559).
enum MatroskaScan {
    // Element ids, with their length markers.
    private static let (header, segment, cluster, cues): (UInt64, UInt64, UInt64, UInt64) = (
        0x1A45_DFA3, 0x1853_8067, 0x1F43_B675, 0x1C53_BB6B
    )
    private static let (info, tracks, seekHead, void): (UInt64, UInt64, UInt64, UInt64) = (
        0x1549_A966, 0x1654_AE6B, 0x114D_9B74, 0xEC
    )
    private static let (tags, attachments, chapters, checksum): (UInt64, UInt64, UInt64, UInt64) = (
        0x1254_C367, 0x1941_A469, 0x1043_A770, 0xBF
    )
    private static let (timestamp, simpleBlock, blockGroup, block): (UInt64, UInt64, UInt64, UInt64) = (
        0xE7, 0xA3, 0xA0, 0xA1
    )

    private struct Element {
        var id: UInt64
        var start: Int64
        /// nil: the file doesn't say.
        var end: Int64?
    }

    /// The cluster behind which there is none.
    private struct Last {
        var cluster: Element
        var previous: Element?
        /// What was known before it.
        var before: MovieScan
    }

    static func isMatroska(_ file: FileBytes) -> Bool { file.number(4, at: 0) == header }

    private static func element(_ file: FileBytes, at offset: Int64) -> Element? {
        guard let first = file.bytes(1, at: offset)?[0], first != 0 else { return nil }
        let idLength = first.leadingZeroBitCount + 1
        guard idLength <= 4, let id = file.number(idLength, at: offset) else { return nil }
        let sizeOffset = offset + Int64(idLength)
        guard let head = file.bytes(1, at: sizeOffset)?[0], head != 0 else { return nil }
        let length = head.leadingZeroBitCount + 1
        guard let raw = file.number(length, at: sizeOffset) else { return nil }
        let mask = (UInt64(1) << UInt64(7 * length)) - 1
        let start = sizeOffset + Int64(length)
        // All ones: unknown.
        guard raw & mask != mask else { return Element(id: id, start: start, end: nil) }
        guard let size = Int64(exactly: raw & mask), size <= Int64.max - start else { return nil }
        return Element(id: id, start: start, end: start + size)
    }

    static func scan(_ file: FileBytes) -> MovieScan {
        var scan = MovieScan()
        guard let head = element(file, at: 0), let end = head.end, let segment = element(file, at: end),
            segment.id == Self.segment
        else { return scan }
        var (offset, hasTracks, hasCues) = (segment.start, false, false)
        var last: Last?
        while let element = element(file, at: offset), let end = element.end, end <= file.size {
            switch element.id {
            case tracks: hasTracks = true
            case cues:
                hasCues = true
                scan.wholeSize = end
            case cluster:
                guard hasTracks else { return scan }
                last = Last(cluster: element, previous: last?.cluster, before: scan)
                scan.fragments += 1
                scan.wholeSize = end
            case info, seekHead, void, tags, attachments, chapters, checksum: break
            default: return finish(scan, file, last)
            }
            offset = end
        }
        // The length of the segment is written last.
        scan.isFinished = hasCues && segment.end == file.size
        if scan.isFinished { scan.wholeSize = file.size }
        return finish(scan, file, last)
    }

    // The last cluster counts where it is one: of a head that was half written the file system may have made another
    // length, with zeros.
    private static func finish(_ scan: MovieScan, _ file: FileBytes, _ last: Last?) -> MovieScan {
        var scan = scan
        guard let last else { return scan }
        if let duration = duration(file, last.cluster) {
            scan.duration = duration
        } else if !scan.isFinished {
            scan = last.before
            scan.duration = last.previous.flatMap { duration(file, $0) } ?? 0
        }
        return scan
    }

    // In milliseconds, as libavformat writes them: until the last block begins. nil: it doesn't consist of whole
    // elements with a block among them.
    private static func duration(_ file: FileBytes, _ cluster: Element) -> Int64? {
        guard let end = cluster.end else { return nil }
        var (offset, base, latest) = (cluster.start, Int64?.none, Int64?.none)
        while offset < end {
            guard let element = element(file, at: offset), let next = element.end, next <= end else { return nil }
            switch element.id {
            case timestamp:
                base = file.number(Int(min(8, next - element.start)), at: element.start).map(Int64.init(clamping:))
            case simpleBlock: latest = max(latest ?? 0, relativeTime(file, element.start))
            case blockGroup:
                if let inner = self.element(file, at: element.start), inner.id == block {
                    latest = max(latest ?? 0, relativeTime(file, inner.start))
                }
            default: break
            }
            offset = next
        }
        guard let base, let latest else { return nil }
        // What no movie lasts is no time.
        let (sum, isTooLate) = base.addingReportingOverflow(latest)
        let (duration, isTooLong) = sum.multipliedReportingOverflow(by: 1_000_000)
        return isTooLate || isTooLong ? 0 : max(0, duration)
    }

    // Behind the track's number, which is one byte here.
    private static func relativeTime(_ file: FileBytes, _ start: Int64) -> Int64 {
        file.number(2, at: start + 1).map { Int64(Int16(truncatingIfNeeded: $0)) } ?? 0
    }
}
