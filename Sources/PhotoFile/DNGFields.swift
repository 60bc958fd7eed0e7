import CaptureCore
import TIFF

/// What stands in the directories of a digital negative. The chapters are those of Adobe's DNG 1.4.
struct DNGFields {
    typealias Field = TIFFField

    let raw: RawPicture
    let facts: PhotoFacts

    private typealias Compression = PhotoFields.Compression
    private typealias Photometric = PhotoFields.Photometric
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
        ] + PhotoFields.size(preview.dimensions, samples: preview.isGrey ? 1 : 3, bits: 8)
    }

    /// Of the photo as a whole: they stand beside the small picture.
    var photo: [Field] {
        var fields: [Field] = [
            Field(.subDirectories, .integer(0)),
            Field(.dngVersion, .integers([1, 4, 0, 0])),
            Field(.dngBackwardVersion, .integers([1, 1, 0, 0])),
            Field(.uniqueCameraModel, .text(uniqueCameraModel)),
            Field(.baselineExposure, .number(0)),
        ]
        if let serial = PhotoFields.plain(facts.serial) { fields.append(Field(.cameraSerialNumber, .text(serial))) }
        if let id = Self.bytes(facts.uniqueID) { fields.append(Field(.rawDataUniqueID, .integers(id))) }
        if raw.samples.pattern != .grey {
            fields += [
                Field(.colorMatrix1, .numbers(Self.colorMatrix)),
                Field(.calibrationIlluminant1, .integer(Self.daylight)),
                Field(.asShotNeutral, .numbers([1, 1, 1])),
            ]
        }
        return PhotoFields(facts: facts).photo + fields
    }

    var exif: [Field] { PhotoFields(facts: facts).exif }

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
        return fields + PhotoFields.size(raw.dimensions, samples: 1, bits: 8 * raw.bytesPerSample)
    }

    /// Make and model: what developers know a camera by (chapter 4, UniqueCameraModel). It has to stand there.
    private var uniqueCameraModel: String {
        let (make, model) = (PhotoFields.plain(facts.make), PhotoFields.plain(facts.model))
        guard let model else { return make ?? "Camera" }
        guard let make, !model.hasPrefix(make) else { return model }
        return make + " " + model
    }

    /// 32 hexadecimal digits as 16 bytes.
    private static func bytes(_ digits: String) -> [Int]? {
        let numbers = digits.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard numbers.count == 32, digits.utf8.count == 32 else { return nil }
        return stride(from: 0, to: 32, by: 2).map { numbers[$0] << 4 | numbers[$0 + 1] }
    }
}
