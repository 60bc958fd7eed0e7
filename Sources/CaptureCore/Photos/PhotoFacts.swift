/// What a photo's file says of how it was made; nil: it isn't known, and not said.
public struct PhotoFacts: Hashable, Sendable {
    /// EXIF's numbers.
    public enum MeteringMode: Int, Hashable, Sendable, CaseIterable {
        case average = 1
        case centerWeightedAverage, spot, multiSpot, pattern
    }

    /// Of the camera.
    public var make: String?
    public var model: String?
    public var serial: String?
    /// What made the file.
    public var software: String?
    /// The picture's own: 32 hexadecimal digits.
    public var uniqueID: String
    /// When its exposure began, nanoseconds since 1970 (`CLOCK_REALTIME`).
    public var realtime: Int64
    /// Seconds by which the local time was ahead of UTC then.
    public var utcOffset: Int
    /// Nanoseconds.
    public var exposureDuration: Int64?
    public var iso: Int?
    /// EV.
    public var exposureBias: Double?
    public var fNumber: Double?
    /// Millimetres.
    public var focalLength: Double?
    /// What it would be with a picture of 36 mm × 24 mm, millimetres.
    public var focalLength35: Double?
    /// Metres.
    public var subjectDistance: Double?
    /// There was a flash of light; nil: nobody knows.
    public var flashFired: Bool?
    /// The camera has a flash.
    public var hasFlash: Bool
    public var redEyeReduction: Bool
    /// The exposure was set by hand; nil: nobody knows.
    public var isExposureManual: Bool?
    public var isWhiteBalanceManual: Bool?
    public var meteringMode: MeteringMode?
    /// EXIF's number for how the stored pixels are to be turned, 1–8 (``ExifOrientation``).
    public var orientation: Int
    /// How many times the middle of the picture was enlarged.
    public var zoom: Double?
    /// For people.
    public var comment: String?
    /// What its movie has as well; ``uniqueID`` has the same digits then. nil: it has no movie.
    public var livePhoto: LivePhotoIdentifier?

    public init(
        uniqueID: String, realtime: Int64, utcOffset: Int, make: String? = nil, model: String? = nil,
        serial: String? = nil, software: String? = nil, exposureDuration: Int64? = nil, iso: Int? = nil,
        exposureBias: Double? = nil, fNumber: Double? = nil, focalLength: Double? = nil, focalLength35: Double? = nil,
        subjectDistance: Double? = nil, flashFired: Bool? = nil, hasFlash: Bool = false,
        redEyeReduction: Bool = false, isExposureManual: Bool? = nil, isWhiteBalanceManual: Bool? = nil,
        meteringMode: MeteringMode? = nil, orientation: Int = 1, zoom: Double? = nil, comment: String? = nil,
        livePhoto: LivePhotoIdentifier? = nil
    ) {
        self.uniqueID = uniqueID
        self.realtime = realtime
        self.utcOffset = utcOffset
        self.make = make
        self.model = model
        self.serial = serial
        self.software = software
        self.exposureDuration = exposureDuration
        self.iso = iso
        self.exposureBias = exposureBias
        self.fNumber = fNumber
        self.focalLength = focalLength
        self.focalLength35 = focalLength35
        self.subjectDistance = subjectDistance
        self.flashFired = flashFired
        self.hasFlash = hasFlash
        self.redEyeReduction = redEyeReduction
        self.isExposureManual = isExposureManual
        self.isWhiteBalanceManual = isWhiteBalanceManual
        self.meteringMode = meteringMode
        self.orientation = orientation
        self.zoom = zoom
        self.comment = comment
        self.livePhoto = livePhoto
    }
}

/// How a file's pixels are to be turned to be upright, as EXIF and TIFF number it.
public enum ExifOrientation {
    /// The number for pixels as the camera has them, of a picture that is wanted like this: turned clockwise first,
    /// then mirrored.
    public static func number(_ orientation: CaptureOrientation, isMirrored: Bool) -> Int {
        switch (orientation.rotationAngle, isMirrored) {
        case (90, false): 6
        case (180, false): 3
        case (270, false): 8
        case (90, true): 5
        case (180, true): 4
        case (270, true): 7
        case (_, true): 2
        default: 1
        }
    }

    /// How the pixels of a file with that number are to be turned; nil: it is no number of EXIF's.
    public static func orientation(_ number: Int) -> PictureOrientation? {
        for quarters in 0..<4 {
            for isMirrored in [false, true]
            where self.number(CaptureOrientation(rotationAngle: quarters * 90), isMirrored: isMirrored) == number {
                return PictureOrientation(quarters: quarters, isMirrored: isMirrored)
            }
        }
        return nil
    }
}
