import CEXIF

/// One of the directories that EXIF's fields stand in (CIPA DC-008 / JEITA CP-3451, 4.5 and 4.6).
public enum EXIFDirectory: Hashable, Sendable, CaseIterable {
    /// The 0th: of the picture as any TIFF's.
    case image
    /// The 1st: of the thumbnail.
    case thumbnail
    /// The Exif IFD: how the picture was taken.
    case photo
    case gps
    case interoperability

    var code: ExifIfd {
        switch self {
        case .image: EXIF_IFD_0
        case .thumbnail: EXIF_IFD_1
        case .photo: EXIF_IFD_EXIF
        case .gps: EXIF_IFD_GPS
        case .interoperability: EXIF_IFD_INTEROPERABILITY
        }
    }
}

/// A field, by its directory and its number there (`EXIF_TAG_*`).
public struct EXIFTag: Hashable, Sendable {
    public var directory: EXIFDirectory
    public var number: UInt16

    public init(_ directory: EXIFDirectory, number: UInt16) {
        self.directory = directory
        self.number = number
    }

    private init(_ directory: EXIFDirectory, _ tag: ExifTag) {
        self.init(directory, number: UInt16(truncatingIfNeeded: tag.rawValue))
    }

    var code: ExifTag { ExifTag(rawValue: ExifTag.RawValue(number)) }

    public static let imageDescription = EXIFTag(.image, EXIF_TAG_IMAGE_DESCRIPTION)
    public static let make = EXIFTag(.image, EXIF_TAG_MAKE)
    public static let model = EXIFTag(.image, EXIF_TAG_MODEL)
    public static let orientation = EXIFTag(.image, EXIF_TAG_ORIENTATION)
    public static let xResolution = EXIFTag(.image, EXIF_TAG_X_RESOLUTION)
    public static let yResolution = EXIFTag(.image, EXIF_TAG_Y_RESOLUTION)
    public static let resolutionUnit = EXIFTag(.image, EXIF_TAG_RESOLUTION_UNIT)
    public static let software = EXIFTag(.image, EXIF_TAG_SOFTWARE)
    public static let dateTime = EXIFTag(.image, EXIF_TAG_DATE_TIME)
    public static let yCbCrPositioning = EXIFTag(.image, EXIF_TAG_YCBCR_POSITIONING)

    public static let thumbnailCompression = EXIFTag(.thumbnail, EXIF_TAG_COMPRESSION)
    public static let thumbnailOrientation = EXIFTag(.thumbnail, EXIF_TAG_ORIENTATION)
    public static let thumbnailXResolution = EXIFTag(.thumbnail, EXIF_TAG_X_RESOLUTION)
    public static let thumbnailYResolution = EXIFTag(.thumbnail, EXIF_TAG_Y_RESOLUTION)
    public static let thumbnailResolutionUnit = EXIFTag(.thumbnail, EXIF_TAG_RESOLUTION_UNIT)

    public static let exposureTime = EXIFTag(.photo, EXIF_TAG_EXPOSURE_TIME)
    public static let fNumber = EXIFTag(.photo, EXIF_TAG_FNUMBER)
    public static let exposureProgram = EXIFTag(.photo, EXIF_TAG_EXPOSURE_PROGRAM)
    public static let isoSpeedRatings = EXIFTag(.photo, EXIF_TAG_ISO_SPEED_RATINGS)
    public static let exifVersion = EXIFTag(.photo, EXIF_TAG_EXIF_VERSION)
    public static let dateTimeOriginal = EXIFTag(.photo, EXIF_TAG_DATE_TIME_ORIGINAL)
    public static let dateTimeDigitized = EXIFTag(.photo, EXIF_TAG_DATE_TIME_DIGITIZED)
    public static let offsetTime = EXIFTag(.photo, EXIF_TAG_OFFSET_TIME)
    public static let offsetTimeOriginal = EXIFTag(.photo, EXIF_TAG_OFFSET_TIME_ORIGINAL)
    public static let offsetTimeDigitized = EXIFTag(.photo, EXIF_TAG_OFFSET_TIME_DIGITIZED)
    public static let componentsConfiguration = EXIFTag(.photo, EXIF_TAG_COMPONENTS_CONFIGURATION)
    public static let shutterSpeedValue = EXIFTag(.photo, EXIF_TAG_SHUTTER_SPEED_VALUE)
    public static let apertureValue = EXIFTag(.photo, EXIF_TAG_APERTURE_VALUE)
    public static let exposureBiasValue = EXIFTag(.photo, EXIF_TAG_EXPOSURE_BIAS_VALUE)
    public static let subjectDistance = EXIFTag(.photo, EXIF_TAG_SUBJECT_DISTANCE)
    public static let meteringMode = EXIFTag(.photo, EXIF_TAG_METERING_MODE)
    public static let flash = EXIFTag(.photo, EXIF_TAG_FLASH)
    public static let focalLength = EXIFTag(.photo, EXIF_TAG_FOCAL_LENGTH)
    public static let makerNote = EXIFTag(.photo, EXIF_TAG_MAKER_NOTE)
    public static let subSecTime = EXIFTag(.photo, EXIF_TAG_SUB_SEC_TIME)
    public static let subSecTimeOriginal = EXIFTag(.photo, EXIF_TAG_SUB_SEC_TIME_ORIGINAL)
    public static let subSecTimeDigitized = EXIFTag(.photo, EXIF_TAG_SUB_SEC_TIME_DIGITIZED)
    public static let flashPixVersion = EXIFTag(.photo, EXIF_TAG_FLASH_PIX_VERSION)
    public static let colorSpace = EXIFTag(.photo, EXIF_TAG_COLOR_SPACE)
    public static let pixelXDimension = EXIFTag(.photo, EXIF_TAG_PIXEL_X_DIMENSION)
    public static let pixelYDimension = EXIFTag(.photo, EXIF_TAG_PIXEL_Y_DIMENSION)
    public static let exposureMode = EXIFTag(.photo, EXIF_TAG_EXPOSURE_MODE)
    public static let whiteBalance = EXIFTag(.photo, EXIF_TAG_WHITE_BALANCE)
    public static let digitalZoomRatio = EXIFTag(.photo, EXIF_TAG_DIGITAL_ZOOM_RATIO)
    public static let focalLengthIn35mmFilm = EXIFTag(.photo, EXIF_TAG_FOCAL_LENGTH_IN_35MM_FILM)
    public static let imageUniqueID = EXIFTag(.photo, EXIF_TAG_IMAGE_UNIQUE_ID)
    public static let bodySerialNumber = EXIFTag(.photo, EXIF_TAG_BODY_SERIAL_NUMBER)
}
