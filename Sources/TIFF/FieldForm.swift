import CTIFF

/// The library's own description of a field: how many values it has, of which kind, and how it wants them.
struct FieldForm {
    private let isText: Bool
    private let isReal: Bool
    /// Bytes of a value in memory.
    private let size: Int
    /// Values come with their number.
    private let isCounted: Bool
    /// Values of a field that always has as many; less than two where one is passed by itself.
    private let count: Int

    init(_ field: OpaquePointer) {
        let type = TIFFFieldDataType(field)
        isText = type == TIFF_ASCII
        isReal = [TIFF_RATIONAL, TIFF_SRATIONAL, TIFF_FLOAT, TIFF_DOUBLE].contains(type)
        size = Int(TIFFFieldSetGetSize(field))
        isCounted = TIFFFieldPassCount(field) != 0
        count = Int(TIFFFieldWriteCount(field))
    }

    /// - Returns: false if the library refuses.
    /// - Throws: for a value of another kind or number.
    func set(_ field: TIFFField, in file: OpaquePointer) throws(TIFFError) -> Bool {
        let tag = field.tag.code
        switch field.value {
        case .text(let text):
            guard isText, !isCounted, !text.utf8.contains(0), count < 1 || text.utf8.count == count - 1 else {
                throw unfit(field)
            }
            return text.withCString { ctiff_set_array(file, tag, $0) } == 1
        case .integers(let values):
            guard !isText, !isReal, let bytes = memory(of: values) else { throw unfit(field) }
            guard isSingle else { return try set(bytes, values.count, field, file) }
            guard values.count == 1, let only = values.first else { throw unfit(field) }
            return size == 8
                ? ctiff_set_long(file, tag, UInt64(only)) == 1 : ctiff_set_integer(file, tag, UInt32(only)) == 1
        case .fraction(let numerator, let denominator):
            guard isReal, isSingle, denominator > 0 else { throw unfit(field) }
            return ctiff_set_number(file, tag, Double(numerator) / Double(denominator)) == 1
        case .numbers(let values):
            guard isReal, values.allSatisfy(\.isFinite) else { throw unfit(field) }
            guard isSingle else { return try set(memory(of: values), values.count, field, file) }
            guard values.count == 1, let only = values.first else { throw unfit(field) }
            return ctiff_set_number(file, tag, only) == 1
        }
    }

    private var isSingle: Bool { !isCounted && count < 2 }

    private func set(
        _ bytes: [UInt8], _ number: Int, _ field: TIFFField, _ file: OpaquePointer
    ) throws(TIFFError) -> Bool {
        guard number > 0, count < 2 || number == count, number <= UInt16.max else { throw unfit(field) }
        return bytes.withUnsafeBytes { bytes in
            isCounted
                ? ctiff_set_counted(file, field.tag.code, UInt32(number), bytes.baseAddress) == 1
                : ctiff_set_array(file, field.tag.code, bytes.baseAddress) == 1
        }
    }

    /// One after the other, as long as the field's are; nil if one doesn't fit.
    private func memory(of values: [Int]) -> [UInt8]? {
        switch size {
        case 1: memory(of: values, UInt8.self)
        case 2: memory(of: values, UInt16.self)
        case 4: memory(of: values, UInt32.self)
        default: memory(of: values, UInt64.self)
        }
    }

    private func memory<Value: UnsignedInteger>(of values: [Int], _: Value.Type) -> [UInt8]? {
        var bytes: [UInt8] = []
        for value in values {
            guard let value = Value(exactly: value) else { return nil }
            withUnsafeBytes(of: value) { bytes += $0 }
        }
        return bytes
    }

    private func memory(of values: [Double]) -> [UInt8] {
        values.flatMap { number -> [UInt8] in
            size == 8 ? withUnsafeBytes(of: number) { Array($0) } : withUnsafeBytes(of: Float(number)) { Array($0) }
        }
    }

    private func unfit(_ field: TIFFField) -> TIFFError {
        TIFFError(operation: "TIFFSetField", message: "\(field.tag) has no such value: \(field.value)")
    }
}
