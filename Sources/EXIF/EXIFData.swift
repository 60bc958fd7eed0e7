import CEXIF

/// What stands beside the pixels of one picture: fields, and a thumbnail. Used by one thread at a time.
///
/// In memory and when written its numbers have the lowest byte first, whatever they were read from.
public final class EXIFData {
    private let memory: OpaquePointer
    private let data: UnsafeMutablePointer<ExifData>

    /// What it begins with in a JPEG's APP1 segment, behind the segment's length.
    public static let header: [UInt8] = [0x45, 0x78, 0x69, 0x66, 0, 0]

    /// The most that fits into a JPEG's segment, with ``header``.
    public static let maximumBytes = 65533

    /// Empty.
    public init() throws(EXIFError) {
        guard let memory = exif_mem_new_default() else { throw .noMemory("exif_mem_new_default") }
        guard let data = exif_data_new_mem(memory) else {
            exif_mem_unref(memory)
            throw .noMemory("exif_data_new_mem")
        }
        self.memory = memory
        self.data = data
        // Else it puts in what it deems missing, and invents what it says.
        exif_data_unset_option(data, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION)
        exif_data_set_option(data, EXIF_DATA_OPTION_IGNORE_UNKNOWN_TAGS)
        exif_data_set_option(data, EXIF_DATA_OPTION_DONT_CHANGE_MAKER_NOTE)
        exif_data_set_byte_order(data, EXIF_BYTE_ORDER_INTEL)
    }

    /// What an APP1 segment holds: ``header`` and what follows. What can't be read of it is left out; that may be all.
    public convenience init(reading segment: UnsafeRawBufferPointer) throws(EXIFError) {
        try self.init()
        guard let base = segment.baseAddress, segment.count <= Self.maximumBytes, segment.starts(with: Self.header)
        else { return }
        exif_data_load_data(data, base.assumingMemoryBound(to: UInt8.self), UInt32(segment.count))
        exif_data_set_byte_order(data, EXIF_BYTE_ORDER_INTEL)
    }

    /// What a JPEG picture has; empty where it has none.
    ///
    /// - Parameter jpeg: as much of it as the segments before the first scan may take.
    public convenience init(of jpeg: UnsafeRawBufferPointer) throws(EXIFError) {
        try self.init()
        guard let base = jpeg.baseAddress else { return }
        exif_data_load_data(data, base.assumingMemoryBound(to: UInt8.self), UInt32(clamping: jpeg.count))
        exif_data_set_byte_order(data, EXIF_BYTE_ORDER_INTEL)
    }

    deinit {
        exif_data_unref(data)
        exif_mem_unref(memory)
    }

    // MARK: Fields

    /// Puts a field in, instead of what it held before.
    public func set(_ tag: EXIFTag, _ value: EXIFValue) throws(EXIFError) {
        try value.encoded.withUnsafeBufferPointer { (bytes) throws(EXIFError) in
            try put(tag, value.format, components: value.components, bytes)
        }
    }

    /// What a field holds; nil: it isn't there.
    public func value(_ tag: EXIFTag) -> EXIFValue? {
        guard let entry = entry(tag), let bytes = Self.bytes(entry) else { return nil }
        return EXIFValue(entry.pointee.format, bytes)
    }

    public func remove(_ tag: EXIFTag) {
        guard let directory = directory(tag.directory), let entry = entry(tag) else { return }
        exif_content_remove_entry(directory, entry)
    }

    /// All fields that are there.
    public var tags: [EXIFTag] {
        EXIFDirectory.allCases.flatMap { name in
            entries(name).map { EXIFTag(name, number: UInt16(truncatingIfNeeded: $0.pointee.tag.rawValue)) }
        }
    }

    /// Takes over the fields of another that aren't here.
    ///
    /// - Parameter isWanted: asked of each, with its bytes.
    public func adopt(
        from other: EXIFData, where isWanted: (_ tag: EXIFTag, _ bytes: Int) -> Bool
    ) throws(EXIFError) {
        for tag in other.tags where entry(tag) == nil {
            guard let entry = other.entry(tag), let bytes = Self.bytes(entry), isWanted(tag, bytes.count) else {
                continue
            }
            try put(tag, entry.pointee.format, components: Int(entry.pointee.components), bytes)
        }
    }

    private func put(
        _ tag: EXIFTag, _ format: ExifFormat, components: Int, _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(EXIFError) {
        let operation = "exif_content_add_entry"
        guard bytes.count <= Self.maximumBytes else {
            throw EXIFError(operation: operation, message: "\(bytes.count) bytes are too many for a field")
        }
        remove(tag)
        guard let entry = exif_entry_new_mem(memory) else { throw .noMemory("exif_entry_new_mem") }
        defer { exif_entry_unref(entry) }
        guard let copy = exif_mem_alloc(memory, UInt32(max(1, bytes.count))) else { throw .noMemory("exif_mem_alloc") }
        if let base = bytes.baseAddress { copy.copyMemory(from: base, byteCount: bytes.count) }
        entry.pointee.tag = tag.code
        entry.pointee.format = format
        entry.pointee.components = UInt(components)
        entry.pointee.data = copy.assumingMemoryBound(to: UInt8.self)
        entry.pointee.size = UInt32(bytes.count)
        exif_content_add_entry(directory(tag.directory), entry)
        guard self.entry(tag) == entry else { throw .noMemory(operation) }
    }

    // MARK: Thumbnail

    /// A JPEG picture. It is written with the fields of ``EXIFDirectory/thumbnail``, which say where it is.
    public func setThumbnail(_ jpeg: [UInt8]) throws(EXIFError) {
        guard !jpeg.isEmpty, jpeg.count <= Self.maximumBytes else {
            throw EXIFError(operation: "exif_mem_alloc", message: "\(jpeg.count) bytes are not a thumbnail")
        }
        guard let copy = exif_mem_alloc(memory, UInt32(jpeg.count)) else { throw .noMemory("exif_mem_alloc") }
        UnsafeMutableRawBufferPointer(start: copy, count: jpeg.count).copyBytes(from: jpeg)
        exif_mem_free(memory, data.pointee.data)
        data.pointee.data = copy.assumingMemoryBound(to: UInt8.self)
        data.pointee.size = UInt32(jpeg.count)
    }

    /// nil: there is none.
    public var thumbnail: [UInt8]? {
        guard let base = data.pointee.data, data.pointee.size > 0 else { return nil }
        return Array(UnsafeBufferPointer(start: base, count: Int(data.pointee.size)))
    }

    // MARK: Writing

    /// All of it as it stands in a JPEG's APP1 segment, from ``header`` on.
    public func serialized() throws(EXIFError) -> [UInt8] {
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt32 = 0
        exif_data_save_data(data, &bytes, &count)
        defer { exif_mem_free(memory, bytes) }
        guard let bytes, count > 0 else { throw .noMemory("exif_data_save_data") }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    // MARK: libexif's structures

    private func directory(_ directory: EXIFDirectory) -> UnsafeMutablePointer<ExifContent>? {
        let all = data.pointee.ifd
        return switch directory.code {
        case EXIF_IFD_0: all.0
        case EXIF_IFD_1: all.1
        case EXIF_IFD_EXIF: all.2
        case EXIF_IFD_GPS: all.3
        default: all.4
        }
    }

    private func entries(_ name: EXIFDirectory) -> [UnsafeMutablePointer<ExifEntry>] {
        guard let directory = directory(name), let entries = directory.pointee.entries else { return [] }
        return (0..<Int(directory.pointee.count)).compactMap { entries[$0] }
    }

    private func entry(_ tag: EXIFTag) -> UnsafeMutablePointer<ExifEntry>? {
        guard let directory = directory(tag.directory) else { return nil }
        return exif_content_get_entry(directory, tag.code)
    }

    /// nil: it has none, or its numbers don't agree.
    private static func bytes(_ entry: UnsafeMutablePointer<ExifEntry>) -> UnsafeBufferPointer<UInt8>? {
        guard let base = entry.pointee.data, entry.pointee.size > 0, entry.pointee.components <= UInt(maximumBytes)
        else { return nil }
        let needed = Int(exif_format_get_size(entry.pointee.format)) * Int(entry.pointee.components)
        guard needed > 0, needed <= Int(entry.pointee.size) else { return nil }
        return UnsafeBufferPointer(start: base, count: needed)
    }
}

extension EXIFError {
    fileprivate static func noMemory(_ operation: String) -> EXIFError {
        EXIFError(operation: operation, message: "no memory")
    }
}
