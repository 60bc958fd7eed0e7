import BusProtocol
import CaptureCore
import EXIF
import Imaging

/// Makes JPEG photos out of frames of one layout.
///
/// A camera's JPEG picture stays what it is where nothing else is asked for. It is turned without decoding where no
/// pixel is lost by that; where blocks at an edge aren't whole it is decoded and encoded again, since nobody asked to
/// have something cut off.
final class JPEGPhotoEncoder {
    /// Of the pixels in the file.
    let dimensions: Dimensions
    /// As wished; nil: none is.
    var thumbnail: Dimensions? { thumbnails?.dimensions }

    private let layout: FrameLayout
    private let making: PhotoMaking
    private let thumbnails: ThumbnailMaker?
    /// Finds out whether a camera's picture is whole, where nothing else decodes it.
    private let checker: JPEGChecker?
    /// Makes the picture; made when first needed where a camera's is mostly good as it is.
    private var converter: PictureConverter?

    private let output = PictureBuffer()
    /// Camera's pictures with what they lack.
    private let completed = PictureBuffer()

    private var isCameras: Bool { Self.isJPEG(layout.pixelFormat) }

    /// - Throws: `formatUnsupported` if no picture can be made of this layout.
    init(_ layout: FrameLayout, _ making: PhotoMaking) throws(BusError) {
        self.layout = layout
        self.making = making
        let orientation = making.pixelOrientation
        dimensions = orientation.turned(layout.dimensions)
        thumbnails = try making.thumbnail.map { wish throws(BusError) in
            try ThumbnailMaker(layout, wish, orientation)
        }
        let isCameras = Self.isJPEG(layout.pixelFormat)
        if isCameras, making.quality == nil, orientation == .upright {
            checker = try JPEGChecker(layout)
            converter = nil
        } else {
            checker = nil
            converter = try Self.converter(layout, making)
        }
    }

    private static func isJPEG(_ format: PixelFormat) -> Bool { format == .motionJPEG || format == .jpeg }

    private static func converter(_ layout: FrameLayout, _ making: PhotoMaking) throws(BusError) -> PictureConverter {
        let orientation = making.pixelOrientation
        var request = PictureRequest(
            encoding: .jpeg, dimensions: orientation.turned(layout.dimensions),
            quality: making.quality ?? PhotoSettings.usualQuality)
        request.orientation = orientation
        request.keepsQuality = making.quality == nil && orientation != .upright
        return try PictureConverter(from: layout, to: request)
    }

    /// - Parameter facts: with the orientation that the file is to tell.
    func encode(_ frame: PhotoPicture, _ facts: PhotoFacts) throws(PhotoFileError) -> EncodedPhoto {
        let camera = isCameras ? try cameraParts(frame) : nil
        let picture: JPEGParts
        if let camera, checker != nil, frame.zoom <= DigitalZoom.whole {
            if thumbnails == nil { try check(frame) }
            picture = camera
        } else {
            picture = try makePicture(frame)
        }
        let stated = layout.description.extensions.pixelAspectRatio
        let words = PhotoEXIF(
            facts: facts, dimensions: dimensions, orientation: facts.orientation,
            pixelAspectRatio: making.pixelOrientation.swapsSides ? stated.inverse : stated)
        let (exif, thumbnail) = try makeEXIF(words, frame, camera)
        return EncodedPhoto(
            bytes: JPEGAssembly.photo(exif: exif, picture, camera: camera), dimensions: dimensions, thumbnail: thumbnail
        )
    }

    /// - Returns: nil: its markers are broken. A decoder may read it nevertheless, as it does for renditions.
    private func cameraParts(_ frame: PhotoPicture) throws(PhotoFileError) -> JPEGParts? {
        let offset = layout.planes.first?.offset ?? 0
        guard offset >= 0, offset < frame.bytes.count else {
            throw .truncated(needed: offset + 1, delivered: frame.bytes.count)
        }
        let jpeg = UnsafeRawBufferPointer(rebasing: frame.bytes[offset...])
        let isCompleted = try converting { () throws(ConversionError) in
            try JPEGStream.complete(jpeg, into: completed)
        }
        do throws(PhotoFileError) {
            return try JPEGParts(isCompleted ? completed.bytes : jpeg)
        } catch .damaged {
            return nil
        }
    }

    private func check(_ frame: PhotoPicture) throws(PhotoFileError) {
        guard let checker else { return }
        try converting { () throws(ConversionError) in
            try checker.check([frame.bytes], bytesUsed: [frame.bytes.count])
        }
    }

    private func makePicture(_ frame: PhotoPicture) throws(PhotoFileError) -> JPEGParts {
        if converter == nil {
            do {
                converter = try Self.converter(layout, making)
            } catch {
                throw .failed(error.message)
            }
        }
        guard let converter else { throw .failed("there is nothing that makes pictures") }
        _ = try converting { () throws(ConversionError) in
            try converter.convert([frame.bytes], bytesUsed: [frame.bytes.count], zoom: frame.zoom, into: output)
        }
        return try JPEGParts(output.bytes)
    }

    private func makeEXIF(
        _ words: PhotoEXIF, _ frame: PhotoPicture, _ camera: JPEGParts?
    ) throws(PhotoFileError) -> (bytes: [UInt8], thumbnail: Dimensions?) {
        let cameras = camera?.segments.first { $0.isEXIF }?.contents
        do {
            var data = try words.make(camera: cameras)
            var bytes = try data.serialized()
            if bytes.count > EXIFData.maximumBytes {
                data = try words.make(camera: nil)
                bytes = try data.serialized()
            }
            guard bytes.count <= EXIFData.maximumBytes else {
                throw PhotoFileError.failed("\(bytes.count) bytes are too many for the metadata of a JPEG picture")
            }
            let room = EXIFData.maximumBytes - bytes.count - PhotoEXIF.thumbnailOverhead
            guard let thumbnail = try thumbnails?.make(frame, room: room) else { return (bytes, nil) }
            try words.setThumbnail(thumbnail.jpeg, data)
            let whole = try data.serialized()
            // What libexif puts around it is its own affair.
            return whole.count <= EXIFData.maximumBytes ? (whole, thumbnail.dimensions) : (bytes, nil)
        } catch let error as PhotoFileError {
            throw error
        } catch {
            throw .failed("\(error)")
        }
    }
}

extension PhotoMaking {
    /// How the pixels themselves are turned.
    var pixelOrientation: PictureOrientation {
        turnsPixels ? PictureOrientation(quarters: orientation.rotationAngle / 90, isMirrored: isMirrored) : .upright
    }
}
