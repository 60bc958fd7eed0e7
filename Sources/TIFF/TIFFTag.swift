import CTIFF

/// A field of a TIFF directory, by its number (TIFF 6.0; EXIF; Adobe's DNG specification).
public struct TIFFTag: Hashable, Sendable, CustomStringConvertible {
    public var code: UInt32

    public init(_ code: UInt32) { self.code = code }

    init(_ code: Int32) { self.code = UInt32(code) }

    public var description: String { "tag \(code)" }
}

/// What a field holds. The library's table of fields says which it is, and how many.
public enum TIFFValue: Hashable, Sendable {
    /// Whole numbers of 8, 16, 32 or 64 bits, not negative.
    case integers([Int])
    /// Real numbers, as exact as 32 bits are; the file has most of them as fractions.
    case numbers([Double])
    /// Numerator and denominator; only in EXIF's directory just these.
    case fraction(Int, Int)
    case text(String)

    public static func integer(_ value: Int) -> TIFFValue { .integers([value]) }
    public static func number(_ value: Double) -> TIFFValue { .numbers([value]) }
}

/// A field as it stands in a directory.
public struct TIFFField: Hashable, Sendable {
    public var tag: TIFFTag
    public var value: TIFFValue

    public init(_ tag: TIFFTag, _ value: TIFFValue) { (self.tag, self.value) = (tag, value) }
}

// Those of a picture.
extension TIFFTag {
    public static let subfileType = TIFFTag(TIFFTAG_SUBFILETYPE)
    public static let imageWidth = TIFFTag(TIFFTAG_IMAGEWIDTH)
    public static let imageLength = TIFFTag(TIFFTAG_IMAGELENGTH)
    public static let bitsPerSample = TIFFTag(TIFFTAG_BITSPERSAMPLE)
    public static let compression = TIFFTag(TIFFTAG_COMPRESSION)
    public static let photometricInterpretation = TIFFTag(TIFFTAG_PHOTOMETRIC)
    public static let imageDescription = TIFFTag(TIFFTAG_IMAGEDESCRIPTION)
    public static let make = TIFFTag(TIFFTAG_MAKE)
    public static let model = TIFFTag(TIFFTAG_MODEL)
    public static let orientation = TIFFTag(TIFFTAG_ORIENTATION)
    public static let samplesPerPixel = TIFFTag(TIFFTAG_SAMPLESPERPIXEL)
    public static let rowsPerStrip = TIFFTag(TIFFTAG_ROWSPERSTRIP)
    public static let planarConfiguration = TIFFTag(TIFFTAG_PLANARCONFIG)
    public static let software = TIFFTag(TIFFTAG_SOFTWARE)
    public static let xResolution = TIFFTag(TIFFTAG_XRESOLUTION)
    public static let yResolution = TIFFTag(TIFFTAG_YRESOLUTION)
    public static let resolutionUnit = TIFFTag(TIFFTAG_RESOLUTIONUNIT)
    public static let dateTime = TIFFTag(TIFFTAG_DATETIME)
    /// As many as are given (any value) are the directories that are written next: the library fills in where they lie.
    public static let subDirectories = TIFFTag(TIFFTAG_SUBIFD)
    public static let exifDirectory = TIFFTag(TIFFTAG_EXIFIFD)
}

// Those of a sensor's pattern (TIFF/EP) and of a digital negative.
extension TIFFTag {
    public static let cfaRepeatPatternDim = TIFFTag(TIFFTAG_CFAREPEATPATTERNDIM)
    public static let cfaPattern = TIFFTag(TIFFTAG_CFAPATTERN)
    public static let dngVersion = TIFFTag(TIFFTAG_DNGVERSION)
    public static let dngBackwardVersion = TIFFTag(TIFFTAG_DNGBACKWARDVERSION)
    public static let uniqueCameraModel = TIFFTag(TIFFTAG_UNIQUECAMERAMODEL)
    public static let cfaPlaneColor = TIFFTag(TIFFTAG_CFAPLANECOLOR)
    public static let cfaLayout = TIFFTag(TIFFTAG_CFALAYOUT)
    public static let blackLevelRepeatDim = TIFFTag(TIFFTAG_BLACKLEVELREPEATDIM)
    public static let blackLevel = TIFFTag(TIFFTAG_BLACKLEVEL)
    public static let whiteLevel = TIFFTag(TIFFTAG_WHITELEVEL)
    public static let defaultCropOrigin = TIFFTag(TIFFTAG_DEFAULTCROPORIGIN)
    public static let defaultCropSize = TIFFTag(TIFFTAG_DEFAULTCROPSIZE)
    public static let colorMatrix1 = TIFFTag(TIFFTAG_COLORMATRIX1)
    public static let asShotNeutral = TIFFTag(TIFFTAG_ASSHOTNEUTRAL)
    public static let baselineExposure = TIFFTag(TIFFTAG_BASELINEEXPOSURE)
    public static let cameraSerialNumber = TIFFTag(TIFFTAG_CAMERASERIALNUMBER)
    public static let calibrationIlluminant1 = TIFFTag(TIFFTAG_CALIBRATIONILLUMINANT1)
    public static let rawDataUniqueID = TIFFTag(TIFFTAG_RAWDATAUNIQUEID)
}

// Those of an EXIF directory.
extension TIFFTag {
    public static let exposureTime = TIFFTag(EXIFTAG_EXPOSURETIME)
    public static let fNumber = TIFFTag(EXIFTAG_FNUMBER)
    public static let exposureProgram = TIFFTag(EXIFTAG_EXPOSUREPROGRAM)
    public static let isoSpeedRatings = TIFFTag(EXIFTAG_ISOSPEEDRATINGS)
    public static let exifVersion = TIFFTag(EXIFTAG_EXIFVERSION)
    public static let dateTimeOriginal = TIFFTag(EXIFTAG_DATETIMEORIGINAL)
    public static let dateTimeDigitized = TIFFTag(EXIFTAG_DATETIMEDIGITIZED)
    public static let offsetTime = TIFFTag(EXIFTAG_OFFSETTIME)
    public static let offsetTimeOriginal = TIFFTag(EXIFTAG_OFFSETTIMEORIGINAL)
    public static let offsetTimeDigitized = TIFFTag(EXIFTAG_OFFSETTIMEDIGITIZED)
    public static let flashPixVersion = TIFFTag(EXIFTAG_FLASHPIXVERSION)
    public static let colorSpace = TIFFTag(EXIFTAG_COLORSPACE)
    public static let exposureBiasValue = TIFFTag(EXIFTAG_EXPOSUREBIASVALUE)
    public static let subjectDistance = TIFFTag(EXIFTAG_SUBJECTDISTANCE)
    public static let meteringMode = TIFFTag(EXIFTAG_METERINGMODE)
    public static let flash = TIFFTag(EXIFTAG_FLASH)
    public static let focalLength = TIFFTag(EXIFTAG_FOCALLENGTH)
    public static let subSecTime = TIFFTag(EXIFTAG_SUBSECTIME)
    public static let subSecTimeOriginal = TIFFTag(EXIFTAG_SUBSECTIMEORIGINAL)
    public static let subSecTimeDigitized = TIFFTag(EXIFTAG_SUBSECTIMEDIGITIZED)
    public static let exposureMode = TIFFTag(EXIFTAG_EXPOSUREMODE)
    public static let whiteBalance = TIFFTag(EXIFTAG_WHITEBALANCE)
    public static let digitalZoomRatio = TIFFTag(EXIFTAG_DIGITALZOOMRATIO)
    public static let focalLengthIn35mmFilm = TIFFTag(EXIFTAG_FOCALLENGTHIN35MMFILM)
    public static let imageUniqueID = TIFFTag(EXIFTAG_IMAGEUNIQUEID)
    public static let bodySerialNumber = TIFFTag(EXIFTAG_BODYSERIALNUMBER)
}
