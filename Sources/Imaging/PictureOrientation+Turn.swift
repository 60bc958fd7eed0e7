public import CaptureCore
public import FFmpeg

extension PictureOrientation {
    public init(_ turn: PictureTurn) { self.init(quarters: turn.quarters, isMirrored: turn.isMirrored) }
}

extension PictureTurn {
    public init(_ orientation: PictureOrientation) {
        self.init(quarters: orientation.quarters, isMirrored: orientation.isMirrored)
    }
}
