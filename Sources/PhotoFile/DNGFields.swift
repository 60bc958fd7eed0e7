import CaptureCore
import TIFF

/// What stands in the directories of a digital negative. The chapters are those of Adobe's DNG 1.4.
struct DNGFields {
    typealias Field = TIFFField

    let raw: RawPicture
    let facts: PhotoFacts

    // TIFF's numbers.
    private enum Compression { static let none = 1, jpeg = 7 }
    private enum Photometric { static let blackIsZero = 1, yCbCr = 6, colorFilterArray = 32803, linearRaw = 34892 }
    private static let daylight = 21

    /// From CIE XYZ to what red, green and blue of sRGB are (IEC 61966-2-1). Nobody has measured the sensor: this says
    /// that its colours are a screen's, and its white daylight.
    private static let colorMatrix = [
        3.2404542, -1.5371385, -0.4985314, -0.9692660, 1.8760108, 0.0415560, 0.0556434, -0.2040259, 1.0572252,
    ]

    /// Of the small picture.
    func preview(_ preview: RawPreview) -> [Field] {
        [
            Field(.subfileType, .integer(1)),
            Field(.photometricInterpretation, .integer(preview.isGrey ? Photometric.blackIsZero : Photometric.yCbCr)),
            Field(.compression, .integer(Compression.jpeg)),
        ] + size(preview.dimensions, samples: preview.isGrey ? 1 : 3, bits: 8)
    }

    /// Of the photo as a whole: they stand beside the small picture.
    var photo: [Field] {
        var fields: [Field] = [
            Field(.orientation, .integer(facts.orientation)),
            Field(.dateTime, .text(facts.exifDateTime)),
            Field(.subDirectories, .integer(0)),
            Field(.dngVersion, .integers([1, 4, 0, 0])),
            Field(.dngBackwardVersion, .integers([1, 1, 0, 0])),
            Field(.uniqueCameraModel, .text(uniqueCameraModel)),
            Field(.baselineExposure, .number(0)),
        ]
        add(&fields, .imageDescription, facts.comment)
        add(&fields, .make, facts.make)
        add(&fields, .model, facts.model)
        add(&fields, .software, facts.software)
        add(&fields, .cameraSerialNumber, facts.serial)
        if let id = Self.bytes(facts.uniqueID) { fields.append(Field(.rawDataUniqueID, .integers(id))) }
        if raw.samples.pattern != .grey {
            fields += [
                Field(.colorMatrix1, .numbers(Self.colorMatrix)),
                Field(.calibrationIlluminant1, .integer(Self.daylight)),
                Field(.asShotNeutral, .numbers([1, 1, 1])),
            ]
        }
        return fields
    }

    /// Of the sensor's samples.
    var samples: [Field] {
        let isGrey = raw.samples.pattern == .grey
        var fields: [Field] = [
            Field(.subfileType, .integer(0)), Field(.compression, .integer(Compression.none)),
            Field(
                .photometricInterpretation,
                .integer(isGrey ? Photometric.linearRaw : Photometric.colorFilterArray)),
            Field(.blackLevelRepeatDim, .integers([1, 1])), Field(.blackLevel, .number(0)),
            Field(.whiteLevel, .integer(raw.samples.largest)),
            Field(.defaultCropOrigin, .numbers([Double(raw.middle.left), Double(raw.middle.top)])),
            Field(.defaultCropSize, .numbers([Double(raw.middle.size.width), Double(raw.middle.size.height)])),
        ]
        if !isGrey {
            fields += [
                Field(.cfaRepeatPatternDim, .integers([2, 2])), Field(.cfaPattern, .integers(raw.samples.planes)),
                Field(.cfaPlaneColor, .integers([0, 1, 2])), Field(.cfaLayout, .integer(1)),
            ]
        }
        return fields + size(raw.dimensions, samples: 1, bits: 8 * raw.bytesPerSample)
    }

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

    private func size(_ size: Dimensions, samples: Int, bits: Int) -> [Field] {
        [
            Field(.imageWidth, .integer(size.width)), Field(.imageLength, .integer(size.height)),
            Field(.bitsPerSample, .integer(bits)), Field(.samplesPerPixel, .integer(samples)),
            Field(.rowsPerStrip, .integer(size.height)), Field(.planarConfiguration, .integer(1)),
        ]
    }

    /// Make and model: what developers know a camera by (chapter 4, UniqueCameraModel). It has to stand there.
    private var uniqueCameraModel: String {
        let (make, model) = (Self.plain(facts.make), Self.plain(facts.model))
        guard let model else { return make ?? "Camera" }
        guard let make, !model.hasPrefix(make) else { return model }
        return make + " " + model
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
    private static func plain(_ text: String?) -> String? {
        guard let text = text?.prefix(while: { $0 != "\0" }), !text.isEmpty else { return nil }
        return String(text)
    }

    /// 32 hexadecimal digits as 16 bytes.
    private static func bytes(_ digits: String) -> [Int]? {
        let numbers = digits.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard numbers.count == 32, digits.utf8.count == 32 else { return nil }
        return stride(from: 0, to: 32, by: 2).map { numbers[$0] << 4 | numbers[$0 + 1] }
    }
}
