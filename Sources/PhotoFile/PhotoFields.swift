import CaptureCore
import TIFF

/// The metadata that DNG and TIFF photos have in common.
struct PhotoFields {
    typealias Field = TIFFField

    let facts: PhotoFacts

    // TIFF's numbers.
    enum Compression { static let none = 1, jpeg = 7 }
    enum Photometric {
        static let blackIsZero = 1, rgb = 2, yCbCr = 6, colorFilterArray = 32803, linearRaw = 34892
    }

    /// Of the photo as a whole.
    var photo: [Field] {
        var fields: [Field] = [
            Field(.orientation, .integer(facts.orientation)), Field(.dateTime, .text(facts.exifDateTime)),
        ]
        add(&fields, .imageDescription, facts.comment)
        add(&fields, .make, facts.make)
        add(&fields, .model, facts.model)
        add(&fields, .software, facts.software)
        return fields
    }

    /// Of EXIF's directory.
    var exif: [Field] {
        var fields: [Field] = [Field(.exifVersion, .integers("0232".utf8.map(Int.init)))]
        for tag in [TIFFTag.dateTimeOriginal, .dateTimeDigitized] { add(&fields, tag, facts.exifDateTime) }
        for tag in [TIFFTag.subSecTime, .subSecTimeOriginal, .subSecTimeDigitized] {
            add(&fields, tag, facts.exifSubSeconds)
        }
        for tag in [TIFFTag.offsetTime, .offsetTimeOriginal, .offsetTimeDigitized] {
            add(&fields, tag, facts.exifOffset)
        }
        if let duration = facts.exposureDuration, duration > 0 {
            add(&fields, .exposureTime, PhotoFraction(nanoseconds: duration))
        }
        if let iso = facts.exifISO { fields.append(Field(.isoSpeedRatings, .integer(iso))) }
        add(&fields, .exposureBiasValue, facts.exposureBias.flatMap { PhotoFraction($0) })
        if let program = facts.exifExposureProgram { fields.append(Field(.exposureProgram, .integer(program))) }
        if let isManual = facts.isExposureManual { fields.append(Field(.exposureMode, .integer(isManual ? 1 : 0))) }
        if let isManual = facts.isWhiteBalanceManual { fields.append(Field(.whiteBalance, .integer(isManual ? 1 : 0))) }
        if facts.meteringMode != nil { fields.append(Field(.meteringMode, .integer(facts.exifMeteringMode))) }
        if facts.flashFired != nil || !facts.hasFlash { fields.append(Field(.flash, .integer(facts.exifFlash))) }
        add(&fields, .fNumber, unsigned(facts.fNumber))
        add(&fields, .focalLength, unsigned(facts.focalLength))
        if let length = facts.focalLength35, length >= 0.5, length.isFinite {
            fields.append(Field(.focalLengthIn35mmFilm, .integer(Int(min(length.rounded(), 65535)))))
        }
        add(&fields, .subjectDistance, unsigned(facts.subjectDistance))
        add(&fields, .digitalZoomRatio, unsigned(facts.zoom))
        add(&fields, .bodySerialNumber, facts.serial)
        if facts.uniqueID.utf8.count == 32 { fields.append(Field(.imageUniqueID, .text(facts.uniqueID))) }
        return fields
    }

    /// Of pixels in one strip.
    static func size(_ size: Dimensions, samples: Int, bits: Int) -> [Field] {
        [
            Field(.imageWidth, .integer(size.width)), Field(.imageLength, .integer(size.height)),
            Field(.bitsPerSample, .integer(bits)), Field(.samplesPerPixel, .integer(samples)),
            Field(.rowsPerStrip, .integer(size.height)), Field(.planarConfiguration, .integer(1)),
        ]
    }

    private func add(_ fields: inout [Field], _ tag: TIFFTag, _ text: String?) {
        if let text = Self.plain(text) { fields.append(Field(tag, .text(text))) }
    }

    private func add(_ fields: inout [Field], _ tag: TIFFTag, _ fraction: PhotoFraction?) {
        guard let fraction else { return }
        let numerator = Int(fraction.isNegative ? -fraction.numerator : fraction.numerator)
        fields.append(Field(tag, .fraction(numerator, Int(fraction.denominator))))
    }

    /// nil for less than nothing, and for what is no number.
    private func unsigned(_ number: Double?) -> PhotoFraction? {
        number.flatMap { $0 >= 0 ? PhotoFraction($0) : nil }
    }

    /// A text in a file ends at the first 0.
    static func plain(_ text: String?) -> String? {
        guard let text = text?.prefix(while: { $0 != "\0" }), !text.isEmpty else { return nil }
        return String(text)
    }
}
