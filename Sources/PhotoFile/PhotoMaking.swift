public import CaptureCore

/// What kind of file a photo becomes.
public struct PhotoMaking: Hashable, Sendable {
    public var fileType: PhotoFileType
    /// Of JPEG, 1–100; nil: a camera's JPEG picture stays as it is, others get ``PhotoSettings/usualQuality``.
    public var quality: Int?
    public var orientation: CaptureOrientation
    public var isMirrored: Bool
    /// The pixels themselves are turned, not by a tag. Raw pixels never are, those of PNG and TIFF always.
    public var isTurned: Bool
    /// nil: none.
    public var thumbnail: PhotoThumbnail?

    public init(
        fileType: PhotoFileType, quality: Int? = nil, orientation: CaptureOrientation = .landscapeRight,
        isMirrored: Bool = false, isTurned: Bool = false, thumbnail: PhotoThumbnail? = nil
    ) {
        self.fileType = fileType
        self.quality = quality
        self.orientation = orientation
        self.isMirrored = isMirrored
        self.isTurned = isTurned
        self.thumbnail = thumbnail
    }

    /// The same for pixels that have to be turned to be upright in the first place.
    func made(of source: PictureOrientation) -> PhotoMaking {
        let wish = PictureOrientation(quarters: orientation.rotationAngle / 90, isMirrored: isMirrored)
        let whole = source.followed(by: wish)
        var making = self
        making.orientation = CaptureOrientation(rotationAngle: whole.quarters * 90)
        making.isMirrored = whole.isMirrored
        return making
    }

    var turnsPixels: Bool {
        switch fileType {
        case .jpeg: isTurned
        case .dng: false
        case .png, .tiff: true
        }
    }

    /// EXIF's number for what is left to be turned by who shows the file.
    var orientationTag: Int {
        turnsPixels ? 1 : ExifOrientation.number(orientation, isMirrored: isMirrored)
    }
}

extension PhotoThumbnail {
    /// The size of the thumbnail of a picture: no larger than the picture.
    func dimensions(of picture: Dimensions) -> Dimensions {
        let longer = max(picture.width, picture.height)
        guard longer > maximumSide, maximumSide > 0 else { return picture }
        func scaled(_ side: Int) -> Int { max(1, (side * maximumSide + longer / 2) / longer) }
        return Dimensions(width: scaled(picture.width), height: scaled(picture.height))
    }
}
