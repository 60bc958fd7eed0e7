import BusProtocol
import CaptureCore
import EXIF
import Imaging
import JSON
import Testing
import TurboJPEG

@testable import PhotoFile

let usualFacts = PhotoFacts(
    uniqueID: "0123456789abcdef0123456789abcdef", realtime: 1_795_359_600_123_456_789, utcOffset: 3600)

/// Makes the photo of one frame.
func encode(
    _ frame: (bytes: [UInt8], layout: FrameLayout), _ making: PhotoMaking, _ facts: PhotoFacts = usualFacts,
    zoom: Int = DigitalZoom.whole
) throws -> EncodedPhoto {
    let encoder = try PhotoEncoder(frame.layout, making)
    let photo = try frame.bytes.withUnsafeBytes {
        try encoder.encode(PhotoPicture(frame.layout, $0, zoom: zoom), facts)
    }
    #expect(photo.dimensions == encoder.dimensions)
    return photo
}

/// What stands beside a photo's pixels.
func exif(_ photo: EncodedPhoto) throws -> EXIFData {
    try photo.bytes.withUnsafeBytes { bytes in
        let parts = try JPEGParts(bytes)
        #expect(parts.segments.first?.isEXIF == true && parts.segments.count { $0.isEXIF } == 1)
        return try EXIFData(reading: try #require(parts.segments.first).contents)
    }
}

private func segment(_ marker: UInt8, _ contents: [UInt8]) -> [UInt8] {
    [0xFF, marker, UInt8((contents.count + 2) >> 8), UInt8((contents.count + 2) & 255)] + contents
}

/// A picture's tables and its scans: all that a decoder sees of it.
private func essence(_ jpeg: [UInt8]) throws -> [UInt8] {
    try jpeg.withUnsafeBytes { bytes in
        let parts = try JPEGParts(bytes)
        let tables = parts.segments.filter { !$0.isApplication && !$0.isComment }
        return tables.flatMap { Array($0.bytes) } + Array(bytes[parts.scan..<parts.end])
    }
}

private let size = Dimensions(width: 96, height: 64)

/// JPEG photos from a camera's own pictures.
@Suite struct CameraJPEGTests {
    private func frame() throws -> (bytes: [UInt8], layout: FrameLayout) {
        try PatchPicture(size: size).frame(.motionJPEG)
    }

    @Test func `a picture says to which movie it belongs`() throws {
        var facts = usualFacts
        let identifier = try #require(LivePhotoIdentifier(digits: "fedcba9876543210fedcba9876543210"))
        facts.livePhoto = identifier
        let data = try exif(try encode(try frame(), PhotoMaking(fileType: .jpeg), facts))
        #expect(data.value(.imageUniqueID) == .text(identifier.digits))
        guard case .undefined(let note)? = data.value(.makerNote) else { return #expect(Bool(false), "no note") }
        #expect(Array(note.prefix(14)) == Array("Apple iOS".utf8) + [0, 0, 1] + Array("MM".utf8))
        // One field, 0x0011, text of 37 bytes, which stands where it is said to.
        #expect(Array(note[14..<24]) == [0, 1, 0, 0x11, 0, 2, 0, 0, 0, 37])
        let place = Int(note[26]) << 8 | Int(note[27])
        #expect(Array(note[place...]) == Array(identifier.text.utf8) + [0])
        #expect(try exif(try encode(try frame(), PhotoMaking(fileType: .jpeg))).value(.makerNote) == nil)
    }

    @Test func `a picture stays what it is, without what the camera fills up with`() throws {
        var frame = try frame()
        let whole = try essence(frame.bytes)
        for making in [PhotoMaking(fileType: .jpeg), PhotoMaking(fileType: .jpeg, orientation: .portrait)] {
            frame.bytes += [UInt8](repeating: 0, count: 100)
            let photo = try encode(frame, making)
            #expect(try essence(photo.bytes) == whole && photo.dimensions == size && photo.thumbnail == nil)
            #expect(photo.bytes.suffix(2) == [0xFF, 0xD9])
        }
    }

    @Test func `missing Huffman tables are put in`() throws {
        var frame = try frame()
        let whole = try essence(frame.bytes)
        var stripped: [UInt8] = [0xFF, 0xD8]
        try frame.bytes.withUnsafeBytes { bytes in
            let parts = try JPEGParts(bytes)
            for segment in parts.segments where segment.marker != 0xC4 { stripped.append(contentsOf: segment.bytes) }
            stripped.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[parts.scan...]))
        }
        let tables = stripped.withUnsafeBytes { JPEGStream.completion(of: $0)?.bytes }
        #expect(tables.map { stripped.count + $0 } == frame.bytes.count)
        #expect(stripped.withUnsafeBytes { JPEGStream.lacksHuffmanTables($0) })
        frame.bytes = stripped
        let photo = try encode(frame, PhotoMaking(fileType: .jpeg))
        #expect(try essence(photo.bytes) == whole)
        #expect(try DecodedPicture(photo.bytes).shows(PatchPicture.patches))
    }

    @Test func `a picture that lacks its end alone gets it`() throws {
        var frame = try frame()
        let whole = try essence(frame.bytes)
        frame.bytes.removeLast(2)
        for making in [PhotoMaking(fileType: .jpeg), PhotoMaking(fileType: .jpeg, thumbnail: PhotoThumbnail())] {
            let photo = try encode(frame, making)
            #expect(try essence(photo.bytes) == whole && photo.bytes.suffix(2) == [0xFF, 0xD9])
            #expect(try DecodedPicture(photo.bytes).shows(PatchPicture.patches))
        }
    }

    @Test(arguments: [nil, 80])
    func `profile and comments go with it, streams and previews don't`(_ quality: Int?) throws {
        var frame = try frame()
        let (profile, comment) = (segment(0xE2, Array("ICC_PROFILE\0x".utf8)), segment(0xFE, Array("hello".utf8)))
        let others = [
            segment(0xE0, Array("AVI1\0".utf8)), segment(0xE4, Array("H264".utf8)), segment(0xE2, Array("MPF\0".utf8)),
        ]
        frame.bytes.insert(contentsOf: profile + others.flatMap { $0 } + comment, at: 2)
        let photo = try encode(frame, PhotoMaking(fileType: .jpeg, quality: quality))
        try photo.bytes.withUnsafeBytes { bytes in
            let beside = try JPEGParts(bytes).segments.filter { $0.isApplication || $0.isComment }
            #expect(beside.map(\.marker) == [0xE1, 0xE2, 0xFE])
            #expect(Array(beside[1].bytes) == profile && Array(beside[2].bytes) == comment)
        }
    }

    @Test func `what the camera says of the picture is kept where nobody knows better`() throws {
        let camera = try EXIFData()
        let longitude = EXIFTag(.gps, number: 4)
        try camera.set(.make, .text("Camera's"))
        try camera.set(.model, .text("Camera's"))
        try camera.set(.fNumber, .rationals([EXIFRational(2, 1)]))
        try camera.set(.orientation, .shorts([3]))
        try camera.set(.dateTimeOriginal, .text("2001:01:01 00:00:00"))
        try camera.set(.shutterSpeedValue, .signedRationals([EXIFSignedRational(5, 1)]))
        try camera.set(.makerNote, .undefined([1, 2, 3, 4, 5]))
        try camera.set(longitude, .rationals([EXIFRational(7, 1), EXIFRational(8, 1), EXIFRational(9, 1)]))
        try camera.setThumbnail(try frame().bytes)
        var frame = try frame()
        frame.bytes.insert(contentsOf: segment(0xE1, try camera.serialized()), at: 2)
        var facts = usualFacts
        (facts.make, facts.exposureDuration) = ("Ours", 10_000_000)
        for quality in [nil, 80] {
            let data = try exif(try encode(frame, PhotoMaking(fileType: .jpeg, quality: quality), facts))
            #expect(data.value(.make) == .text("Ours") && data.value(.model) == .text("Camera's"))
            #expect(data.value(.fNumber) == .rationals([EXIFRational(2, 1)]))
            #expect(data.value(.orientation) == .shorts([1]))
            #expect(data.value(.dateTimeOriginal) == .text("2026:11:22 16:00:00"))
            #expect(data.value(.exposureTime) == .rationals([EXIFRational(1, 100)]))
            #expect(data.value(.shutterSpeedValue) == nil && data.value(.makerNote) == nil)
            #expect(data.value(longitude) == camera.value(longitude))
            #expect(data.thumbnail == nil)
        }
    }

    @Test func `a quality that is named is what it gets`() throws {
        let frame = try PatchPicture(size: Dimensions(width: 320, height: 240)).frame(.motionJPEG)
        let sizes = try [95, 50, 10].map { try encode(frame, PhotoMaking(fileType: .jpeg, quality: $0)).bytes.count }
        #expect(sizes[0] > sizes[1] && sizes[1] > sizes[2])
    }

    @Test func `nothing is lost by turning whole blocks, and nothing is cut off where they aren't whole`() throws {
        let frame = try frame()
        let original = try DecodedPicture(frame.bytes)
        let making = PhotoMaking(fileType: .jpeg, orientation: .landscapeLeft, isTurned: true)
        let photo = try encode(frame, making)
        let turned = try DecodedPicture(photo.bytes)
        // Chroma is smoothed between pixels; brightness is what can be compared.
        var wrong = 0
        for y in 0..<size.height {
            for x in 0..<size.width {
                let (from, to) = (original.pixel(x, y), turned.pixel(size.width - 1 - x, size.height - 1 - y))
                if abs(from.luma - to.luma) > 2 { wrong += 1 }
            }
        }
        #expect(wrong == 0)
        let odd = Dimensions(width: 101, height: 67)
        let cut = try encode(try PatchPicture(size: odd).frame(.motionJPEG), making)
        #expect(cut.dimensions == odd)
        let picture = try DecodedPicture(cut.bytes)
        #expect(picture.size == odd && picture.shows([3, 2, 1, 0].map { PatchPicture.patches[$0] }))
    }

    // MARK: What cameras get wrong

    private func failure(_ bytes: [UInt8], _ layout: FrameLayout, _ making: PhotoMaking) throws -> PhotoFileError? {
        do {
            _ = try encode((bytes, layout), making)
            return nil
        } catch let error as PhotoFileError {
            return error
        }
    }

    private static let makings = [
        PhotoMaking(fileType: .jpeg), PhotoMaking(fileType: .jpeg, quality: 90),
        PhotoMaking(fileType: .jpeg, thumbnail: PhotoThumbnail(maximumSide: 16)),
        PhotoMaking(fileType: .jpeg, orientation: .landscapeLeft, isTurned: true),
    ]

    @Test(arguments: makings)
    func `a picture that breaks off is an error`(_ making: PhotoMaking) throws {
        let (bytes, layout) = try frame()
        for length in 0..<bytes.count - 2 {
            let error = try failure(Array(bytes[..<length]), layout, making)
            #expect(error?.isOfFrame == true, "\(length) of \(bytes.count) bytes: \(String(describing: error))")
        }
        // Also when it ends as if nothing had happened.
        for length in stride(from: bytes.count / 2, to: bytes.count - 40, by: 7) {
            let error = try failure(Array(bytes[..<length]) + [0xFF, 0xD9], layout, making)
            #expect(error?.isOfFrame == true, "\(length) of \(bytes.count) bytes: \(String(describing: error))")
        }
    }

    @Test(arguments: makings)
    func `broken pictures end in an error or in a whole photo`(_ making: PhotoMaking) throws {
        let (bytes, layout) = try frame()
        let encoder = try PhotoEncoder(layout, making)
        var noise = Noise()
        for _ in 0..<400 {
            var broken = bytes
            for _ in 0..<(1 + noise.next() % 4) {
                broken[Int(noise.next()) % broken.count] = UInt8(truncatingIfNeeded: noise.next())
            }
            do {
                let photo = try broken.withUnsafeBytes { try encoder.encode(PhotoPicture(layout, $0), usualFacts) }
                #expect(try exif(photo).value(.imageUniqueID) == .text(usualFacts.uniqueID))
            } catch let error as PhotoFileError {
                #expect(error.isOfFrame || !error.description.isEmpty)
            }
        }
        // And the next good one is good.
        let photo = try bytes.withUnsafeBytes { try encoder.encode(PhotoPicture(layout, $0), usualFacts) }
        #expect(photo.bytes.count > 1000)
    }

    @Test func `a picture of another size than announced is an error`() throws {
        let (bytes, layout) = try frame()
        for wrong in [Dimensions(width: 96, height: 72), Dimensions(width: 48, height: 64)] {
            var announced = layout
            announced.dimensions = wrong
            for making in Self.makings {
                #expect(try failure(bytes, announced, making)?.isOfFrame == true)
            }
        }
    }
}

/// Photos from frames of any kind.
@Suite struct PhotoEncoderTests {
    static let formats: [PixelFormat] = [.motionJPEG, .yuyv, .nv12, .i420, .bgr24, .rgb24, .bayerRGGB8, .grey]

    private static func patches(_ format: PixelFormat, _ patches: [Patch]) -> [Patch] {
        guard format == .grey else { return patches }
        return patches.map {
            let luma = Int($0.luma.rounded())
            return Patch(r: luma, g: luma, b: luma)
        }
    }

    @Test(arguments: formats)
    func `every format becomes a JPEG picture, turned by a tag or by itself`(_ format: PixelFormat) throws {
        let frame = try PatchPicture(size: Dimensions(width: 64, height: 48)).frame(format)
        for orientation in CaptureOrientation.allCases {
            for isMirrored in [false, true] {
                var making = PhotoMaking(
                    fileType: .jpeg, orientation: orientation, isMirrored: isMirrored,
                    thumbnail: PhotoThumbnail(maximumSide: 32))
                let number = ExifOrientation.number(orientation, isMirrored: isMirrored)
                let tagged = try encode(frame, making)
                #expect(tagged.dimensions == frame.layout.dimensions)
                #expect(try exif(tagged).value(.orientation) == .shorts([UInt16(number)]))
                #expect(try DecodedPicture(tagged.bytes).shows(Self.patches(format, PatchPicture.patches)))
                making.isTurned = true
                let turned = try encode(frame, making)
                let quarters = orientation.rotationAngle / 90
                let picture = try DecodedPicture(turned.bytes)
                #expect(picture.size == turned.dimensions)
                #expect(
                    turned.dimensions == Dimensions(width: [64, 48][quarters % 2], height: [48, 64][quarters % 2]))
                let data = try exif(turned)
                #expect(data.value(.orientation) == .shorts([1]))
                #expect(data.value(.pixelXDimension) == .longs([UInt32(turned.dimensions.width)]))
                let wanted = Self.patches(
                    format, PatchPicture.patches(quarters: quarters, isMirrored: isMirrored))
                #expect(picture.shows(wanted), "\(picture.patches) for \(wanted)")
                let thumbnail = try DecodedPicture(try #require(data.thumbnail))
                #expect(thumbnail.size == turned.thumbnail && thumbnail.size.width == [32, 24][quarters % 2])
                #expect(thumbnail.shows(wanted), "\(thumbnail.patches) for \(wanted)")
            }
        }
    }

    @Test(arguments: formats)
    func `a zoomed camera's photo is zoomed`(_ format: PixelFormat) throws {
        let frame = try PatchPicture(size: Dimensions(width: 128, height: 96), isFramed: true).frame(format)
        let making = PhotoMaking(fileType: .jpeg, thumbnail: PhotoThumbnail(maximumSide: 64))
        let black = Patch(r: 0, g: 0, b: 0)
        let whole = try encode(frame, making)
        #expect(try DecodedPicture(whole.bytes).pixel(5, 5).isNear(black))
        let zoomed = try encode(frame, making, zoom: 2000)
        let wanted = Self.patches(format, PatchPicture.patches)
        for jpeg in [zoomed.bytes, try #require(try exif(zoomed).thumbnail)] {
            let picture = try DecodedPicture(jpeg)
            #expect(picture.shows(wanted))
            #expect(picture.pixel(picture.size.width / 10, picture.size.height / 10).isNear(wanted[0]))
        }
        #expect(zoomed.dimensions == frame.layout.dimensions)
    }

    @Test func `a thumbnail that would not fit becomes poorer, then smaller`() throws {
        var noise = Noise()
        let large = Dimensions(width: 1280, height: 960)
        let jpeg = try PatchPicture.jpeg(noise.bytes(large.area * 3), large, .s420)
        let layout = try #require(FrameLayout.packed(.motionJPEG, large))
        let wish = PhotoThumbnail(maximumSide: 640, quality: 100)
        let encoder = try PhotoEncoder(layout, PhotoMaking(fileType: .jpeg, thumbnail: wish))
        #expect(encoder.thumbnail == Dimensions(width: 640, height: 480))
        for _ in 0..<2 {
            let photo = try jpeg.withUnsafeBytes { try encoder.encode(PhotoPicture(layout, $0), usualFacts) }
            let data = try exif(photo)
            let thumbnail = try #require(data.thumbnail)
            #expect(thumbnail.count < EXIFData.maximumBytes)
            #expect(try DecodedPicture(thumbnail).size == photo.thumbnail)
            // As large as fits: half of the room is used at least.
            #expect(thumbnail.count > 16384)
        }
    }

    @Test func `frames that end too early are an error`() throws {
        for format in Self.formats where format != .motionJPEG {
            let frame = try PatchPicture(size: size).frame(format)
            for making in [
                PhotoMaking(fileType: .jpeg), PhotoMaking(fileType: .jpeg, thumbnail: PhotoThumbnail(maximumSide: 16)),
            ] {
                for missing in [1, 1000, frame.bytes.count] {
                    let short = (Array(frame.bytes.dropLast(missing)), frame.layout)
                    let error = #expect(throws: PhotoFileError.self) { try encode(short, making) }
                    #expect(error?.isOfFrame == true)
                }
            }
        }
    }

    @Test func `what can't be made is refused with what can`() throws {
        #expect(PhotoEncoder.available(for: .motionJPEG).codecs == [.jpeg, .png, .tiff])
        #expect(PhotoEncoder.available(for: .h264).codecs.isEmpty && PhotoEncoder.available(for: .h264).raw.isEmpty)
        for (format, fileType) in [(PixelFormat.h264, PhotoFileType.jpeg), (.motionJPEG, .dng), (.yuyv, .dng)] {
            let layout = try #require(FrameLayout.packed(format, size))
            let error = #expect(throws: BusError.self) {
                _ = try PhotoEncoder(layout, PhotoMaking(fileType: fileType))
            }
            #expect(error?.reason == .photoFormatUnavailable)
            let codecs: [String] = format == .h264 ? [] : ["jpeg", "png", "tiff"]
            #expect(error?.data["available"] == ["photo": JSONValue(codecs), "raw": []])
        }
        let frame = try PatchPicture(size: size).frame(.yuyv)
        let encoder = try PhotoEncoder(frame.layout, PhotoMaking(fileType: .jpeg))
        var other = frame.layout
        other.dimensions.height -= 1
        #expect(throws: PhotoFileError.self) {
            _ = try frame.bytes.withUnsafeBytes { try encoder.encode(PhotoPicture(other, $0), usualFacts) }
        }
    }
}
