import CaptureCore

/// The boxes of MP4 and QuickTime files (ISO/IEC 14496-12).
enum BoxScan {
    private struct Box {
        var type: [UInt8]
        var end: Int64

        func isOne(of names: String...) -> Bool { names.contains { type.elementsEqual($0.utf8) } }
    }

    private static func box(_ file: FileBytes, at offset: Int64) -> Box? {
        guard let head = file.bytes(8, at: offset) else { return nil }
        var size = head[..<4].reduce(0) { $0 << 8 | UInt64($1) }
        var least: UInt64 = 8
        if size == 1 {
            guard let large = file.number(8, at: offset + 8) else { return nil }
            (size, least) = (large, 16)
        }
        guard size >= least, let length = Int64(exactly: size), length <= file.size - offset else { return nil }
        return Box(type: Array(head[4...]), end: offset + length)
    }

    /// nil: it is none of these.
    static func fileType(_ file: FileBytes) -> MovieFileType? {
        guard let first = box(file, at: 0), first.isOne(of: "ftyp"), let brand = file.bytes(4, at: 8) else {
            return nil
        }
        return brand.elementsEqual("qt  ".utf8) ? .mov : .mp4
    }

    static func scan(_ file: FileBytes) -> MovieScan {
        var scan = MovieScan()
        var (offset, hasIndex, hasBody, fragmentIsOpen) = (Int64(0), false, false, false)
        while let box = box(file, at: offset) {
            if box.isOne(of: "moov") {
                hasIndex = true
                // An index behind the body is written last.
                if hasBody, scan.fragments == 0 {
                    scan.isFinished = true
                    scan.wholeSize = box.end
                }
            } else if box.isOne(of: "moof") {
                fragmentIsOpen = hasIndex
            } else if box.isOne(of: "mdat") {
                if fragmentIsOpen {
                    scan.fragments += 1
                    scan.wholeSize = box.end
                }
                (hasBody, fragmentIsOpen) = (true, false)
            } else if box.isOne(of: "mfra") {
                if scan.fragments > 0 {
                    scan.isFinished = true
                    scan.wholeSize = box.end
                }
            } else if !box.isOne(of: "ftyp", "free", "wide", "skip", "uuid", "sidx", "styp", "udta", "meta") {
                break
            }
            offset = box.end
        }
        // Behind the last end there is nothing.
        if offset < file.size { scan.isFinished = false }
        return scan
    }
}
