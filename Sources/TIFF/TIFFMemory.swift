import CTIFF
import Glibc

/// The file that the library writes, in memory. It reads, too: what it has written, to set the links between
/// directories.
final class TIFFMemory {
    private(set) var bytes: [UInt8] = []
    private var position = 0

    /// As far as the offsets in a file of this kind reach.
    private static let limit = Int(UInt32.max)

    init(reserving bytes: Int) { self.bytes.reserveCapacity(min(max(0, bytes), Self.limit)) }

    /// Hands over what was written; empty afterwards.
    func take() -> [UInt8] {
        position = 0
        let taken = bytes
        bytes = []
        return taken
    }

    private func write(_ source: UnsafeRawBufferPointer) -> Bool {
        guard source.count <= Self.limit - position else { return false }
        // A place beyond the end: directories lie at even offsets.
        if position > bytes.count { bytes.append(contentsOf: repeatElement(0, count: position - bytes.count)) }
        let overlap = min(source.count, bytes.count - position)
        bytes.withUnsafeMutableBytes { target in
            UnsafeMutableRawBufferPointer(rebasing: target[position..<position + overlap])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<overlap]))
        }
        bytes.append(contentsOf: source[overlap...])
        position += source.count
        return true
    }

    private func read(_ target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, max(0, bytes.count - position))
        guard count > 0 else { return 0 }
        bytes.withUnsafeBytes { source in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[position..<position + count]))
        }
        position += count
        return count
    }

    private func seek(_ offset: UInt64, _ origin: Int32) -> UInt64 {
        let start = origin == SEEK_CUR ? position : origin == SEEK_END ? bytes.count : 0
        // From the end or from here it may be negative.
        let (wanted, overflow) = start.addingReportingOverflow(Int(Int64(bitPattern: offset)))
        guard !overflow, (0...Self.limit).contains(wanted) else { return UInt64.max }
        position = wanted
        return UInt64(wanted)
    }

    // MARK: Fractions

    /// Puts fractions in the place of the library's, which is near them only: it takes them as numbers of 32 bits.
    func correct(_ fields: [TIFFField], inDirectoryAt directory: Int) {
        for field in fields {
            guard case .fraction(let numerator, let denominator) = field.value,
                let numerator = UInt32(exactly: numerator) ?? Int32(exactly: numerator).map(UInt32.init(bitPattern:)),
                let denominator = UInt32(exactly: denominator), let place = value(of: field.tag, directory),
                place <= bytes.count - 8
            else { continue }
            for index in 0..<4 {
                bytes[place + index] = UInt8(truncatingIfNeeded: numerator >> UInt32(8 * index))
                bytes[place + 4 + index] = UInt8(truncatingIfNeeded: denominator >> UInt32(8 * index))
            }
        }
    }

    /// Where a field's fraction is: an entry has its tag, its type, how many there are, and where (TIFF 6.0, section
    /// 2).
    private func value(of tag: TIFFTag, _ directory: Int) -> Int? {
        guard let count = integer(at: directory, bytes: 2) else { return nil }
        for entry in stride(from: directory + 2, to: directory + 2 + 12 * count, by: 12)
        where integer(at: entry, bytes: 2) == Int(tag.code) {
            let isFraction = [TIFF_RATIONAL, TIFF_SRATIONAL].contains {
                integer(at: entry + 2, bytes: 2) == Int($0.rawValue)
            }
            return isFraction ? integer(at: entry + 8, bytes: 4) : nil
        }
        return nil
    }

    private func integer(at index: Int, bytes count: Int) -> Int? {
        guard index >= 0, index <= bytes.count - count else { return nil }
        return (0..<count).reduce(0) { $0 | Int(bytes[index + $1]) << (8 * $1) }
    }

    // MARK: The library's calls

    /// - Parameter words: where the library's words go; as long as the file is open.
    /// - Returns: nil without memory. This object has to outlive it.
    func create(_ words: UnsafeMutablePointer<ctiff_words>) -> OpaquePointer? {
        ctiff_create(
            Unmanaged.passUnretained(self).toOpaque(),
            { client, bytes, count in
                guard let client, let bytes, count >= 0 else { return -1 }
                return tmsize_t(
                    TIFFMemory.of(client).read(UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))))
            },
            { client, bytes, count in
                guard let client, let bytes, count >= 0 else { return -1 }
                let source = UnsafeRawBufferPointer(start: bytes, count: Int(count))
                return TIFFMemory.of(client).write(source) ? count : -1
            },
            { client, offset, origin in
                guard let client else { return UInt64.max }
                return TIFFMemory.of(client).seek(offset, origin)
            },
            { _ in 0 },
            { client in
                guard let client else { return 0 }
                return UInt64(TIFFMemory.of(client).bytes.count)
            },
            words)
    }

    private static func of(_ client: UnsafeMutableRawPointer) -> TIFFMemory {
        Unmanaged<TIFFMemory>.fromOpaque(client).takeUnretainedValue()
    }
}
