import BusProtocol
import CaptureCore
import FFmpeg
import Imaging

/// Reads what is stated in a movie's pictures without decoding them.
struct StoredPictures {
    private let track: VideoTrack
    private var picture: PictureDescription
    /// Of H.264.
    private var sets = H264ParameterSets()
    private var sequence: H264SequenceParameters?

    init(_ track: VideoTrack) {
        self.track = track
        picture = track.picture
    }

    /// - Parameter bytes: of the next picture.
    /// - Returns: what is stated about it; nil: it can't be read.
    mutating func read(_ bytes: UnsafeRawBufferPointer) -> PictureDescription? {
        guard track.codec == .h264 else {
            guard let head = JPEGHead(bytes), let size = head.dimensions else { return nil }
            (picture.width, picture.height) = (size.width, size.height)
            picture.turn = head.orientation.map { PictureTurn($0) }
            return picture
        }
        sets.take(bytes)
        guard let current = sets.current else { return nil }
        if current != sequence { state(current) }
        return picture
    }

    /// As a decoder takes it: what isn't stated stays as it was, but for the chroma's place.
    private mutating func state(_ current: H264SequenceParameters) {
        sequence = current
        (picture.width, picture.height) = (current.dimensions.width, current.dimensions.height)
        picture.color = ColorTags(
            primaries: current.primaries?.code ?? picture.color.primaries,
            transferFunction: current.transferFunction?.code ?? picture.color.transferFunction,
            matrix: current.matrix?.code ?? picture.color.matrix,
            range: current.range.map { $0 == .full ? .full : .limited } ?? picture.color.range,
            chromaLocation: (current.chromaLocation ?? .left).code)
        guard track.trackShape == nil else { return }
        picture.pixelShape =
            current.pixelAspectRatio.map { PixelShape(width: $0.numerator, height: $0.denominator) } ?? .square
    }
}
