import FFmpeg

/// Turns planes of the wanted size and writes them as the payload that was asked for: all that does not depend on which
/// part of a frame they show.
final class PictureFinish {
    private let chroma: ChromaLayout?
    private let range: ColorRange
    private let matrix: ColorMatrix
    private let turner: PictureTurner?
    private let packer: PicturePacker

    /// - Parameters:
    ///   - chroma: of the turned planes, as ``PicturePacker/chroma(for:source:isScaled:)`` says.
    ///   - range: of the planes that will come, as is the matrix.
    ///   - known: is taken instead, where one of them is for just such planes.
    static func make(
        _ request: PictureRequest, chroma: ChromaLayout?, range: ColorRange, matrix: ColorMatrix,
        known: [PictureFinish?]
    ) throws(ConversionError) -> PictureFinish {
        for case let finish? in known
        where finish.chroma == chroma && finish.range == range && finish.matrix == matrix { return finish }
        return try PictureFinish(request, chroma: chroma, range: range, matrix: matrix)
    }

    private init(
        _ request: PictureRequest, chroma: ChromaLayout?, range: ColorRange, matrix: ColorMatrix
    ) throws(ConversionError) {
        self.chroma = chroma
        self.range = range
        self.matrix = matrix
        let orientation = request.orientation
        turner = try PictureTurner(orientation, request.unturned, chroma: chroma.map { orientation.turned($0) })
        packer = try PicturePacker(request, chroma: chroma, range: range, matrix: matrix)
    }

    func write(_ picture: PlanarPicture, into output: PictureBuffer) throws(ConversionError) {
        try packer.pack(try turner?.turn(picture) ?? picture, into: output)
    }
}
