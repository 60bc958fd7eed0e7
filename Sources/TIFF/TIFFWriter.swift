import CTIFF

/// Writes a TIFF file into memory, least byte first, directory after directory. Used by one thread at a time.
///
/// The fields of a directory are set, its picture is written, then the directory; those that follow one with
/// ``TIFFTag/subDirectories`` are its.
public final class TIFFWriter {
    private let memory: TIFFMemory
    private let words: UnsafeMutablePointer<ctiff_words>
    private let file: OpaquePointer

    /// - Parameter bytes: about as many as the file will have.
    public init(reserving bytes: Int = 0) throws(TIFFError) {
        memory = TIFFMemory(reserving: bytes)
        words = .allocate(capacity: 1)
        words.initialize(to: ctiff_words())
        guard let file = memory.create(words) else {
            let error = TIFFError("TIFFClientOpen", words)
            words.deallocate()
            throw error
        }
        self.file = file
    }

    deinit {
        TIFFClose(file)
        words.deallocate()
    }

    /// Sets fields of the present directory.
    ///
    /// - Throws: for a field that the library doesn't know in such a directory, and for a value that it can't have.
    public func set(_ fields: [TIFFField]) throws(TIFFError) {
        for each in fields {
            guard let form = TIFFFindField(file, each.tag.code, TIFF_NOTYPE) else {
                throw TIFFError(operation: "TIFFFindField", message: "the library doesn't know \(each.tag)")
            }
            words.pointee.text.0 = 0
            guard try FieldForm(form).set(each, in: file) else { throw TIFFError("TIFFSetField", words) }
        }
    }

    /// Writes the present directory's picture as it is, in one strip; its size and what it is have to be set before.
    public func write(_ picture: UnsafeRawBufferPointer) throws(TIFFError) {
        let operation = "TIFFWriteRawStrip"
        guard let base = picture.baseAddress, !picture.isEmpty else {
            throw TIFFError(operation: operation, message: "the picture is empty")
        }
        words.pointee.text.0 = 0
        let written = TIFFWriteRawStrip(file, 0, UnsafeMutableRawPointer(mutating: base), tmsize_t(picture.count))
        guard written == tmsize_t(picture.count) else { throw TIFFError(operation, words) }
    }

    public func write(_ picture: [UInt8]) throws(TIFFError) {
        try picture.withUnsafeBytes { bytes in Result { () throws(TIFFError) in try write(bytes) } }.get()
    }

    /// Writes the present directory and begins the next one.
    public func writeDirectory() throws(TIFFError) {
        words.pointee.text.0 = 0
        guard TIFFWriteDirectory(file) == 1 else { throw TIFFError("TIFFWriteDirectory", words) }
    }

    /// Writes a directory of EXIF's, and begins a picture's anew: to be called before that has anything.
    ///
    /// - Returns: where it lies, for ``TIFFTag/exifDirectory``.
    public func writeEXIFDirectory(_ fields: [TIFFField]) throws(TIFFError) -> Int {
        words.pointee.text.0 = 0
        guard TIFFCreateEXIFDirectory(file) == 0 else { throw TIFFError("TIFFCreateEXIFDirectory", words) }
        try set(fields)
        words.pointee.text.0 = 0
        var offset: UInt64 = 0
        guard TIFFWriteCustomDirectory(file, &offset) == 1 else { throw TIFFError("TIFFWriteCustomDirectory", words) }
        guard TIFFCreateDirectory(file) == 0 else { throw TIFFError("TIFFCreateDirectory", words) }
        memory.correct(fields, inDirectoryAt: Int(clamping: offset))
        return Int(clamping: offset)
    }

    /// The file, once all its directories are written. Nothing can be written afterwards.
    public func finish() -> [UInt8] { memory.take() }
}

extension TIFFError {
    init(_ operation: String, _ words: UnsafeMutablePointer<ctiff_words>) {
        let text = withUnsafeBytes(of: &words.pointee.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        self.init(operation: operation, message: text.isEmpty ? "it failed" : text)
    }
}
