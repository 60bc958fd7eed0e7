import BusProtocol
import CaptureCore
import EXIF

/// What stands in a JPEG photo beside its pixels (CIPA DC-008, Exif 2.32).
struct PhotoEXIF {
    let facts: PhotoFacts
    /// Of the pixels in the file.
    let dimensions: Dimensions
    /// EXIF's number, 1–8.
    let orientation: Int
    /// Of the pixels in the file: width to height.
    let pixelAspectRatio: FormatExtensions.Ratio

    /// Fields of more bytes are not taken over from a camera's own EXIF.
    private static let mostAdoptedBytes = 1024

    /// All fields, without a thumbnail.
    ///
    /// - Parameter camera: the APP1 segment of the picture as the camera made it. What isn't known otherwise is taken
    ///   over from there: where it was, through which lens; not what of it is bound to its place (`MakerNote`), nor
    ///   what is of the thumbnail.
    func make(camera: UnsafeRawBufferPointer?) throws(EXIFError) -> EXIFData {
        let data = try EXIFData()
        try setImage(data)
        try setTimes(data)
        try setExposure(data)
        try setOptics(data)
        try setPixels(data)
        if let camera { try adopt(camera, data) }
        return data
    }

    /// - Parameter jpeg: small enough to fit.
    func setThumbnail(_ jpeg: [UInt8], _ data: EXIFData) throws(EXIFError) {
        try data.setThumbnail(jpeg)
        try data.set(.thumbnailCompression, .shorts([6]))
        try data.set(.thumbnailOrientation, .shorts([UInt16(clamping: orientation)]))
        try data.set(.thumbnailXResolution, .rationals([EXIFRational(72, 1)]))
        try data.set(.thumbnailYResolution, .rationals([EXIFRational(72, 1)]))
        try data.set(.thumbnailResolutionUnit, .shorts([2]))
    }

    /// How much longer ``EXIFData/serialized()`` becomes with a thumbnail, beside the thumbnail: a directory of seven
    /// fields with two fractions.
    static let thumbnailOverhead = 2 + 7 * 12 + 4 + 2 * 8

    private func setImage(_ data: EXIFData) throws(EXIFError) {
        try set(data, .imageDescription, facts.comment)
        try set(data, .make, facts.make)
        try set(data, .model, facts.model)
        try set(data, .software, facts.software)
        try data.set(.orientation, .shorts([UInt16(clamping: orientation)]))
        let density = PixelDensity(pixelAspectRatio)
        try data.set(.xResolution, .rationals([EXIFRational(UInt32(density.across), 1)]))
        try data.set(
            .yResolution,
            .rationals([EXIFRational(UInt32(clamping: density.down.numerator), UInt32(density.down.denominator))]))
        try data.set(.resolutionUnit, .shorts([2]))
        try data.set(.yCbCrPositioning, .shorts([1]))
    }

    private func setTimes(_ data: EXIFData) throws(EXIFError) {
        for tag in [EXIFTag.dateTime, .dateTimeOriginal, .dateTimeDigitized] {
            try data.set(tag, .text(facts.exifDateTime))
        }
        for tag in [EXIFTag.subSecTime, .subSecTimeOriginal, .subSecTimeDigitized] {
            try data.set(tag, .text(facts.exifSubSeconds))
        }
        for tag in [EXIFTag.offsetTime, .offsetTimeOriginal, .offsetTimeDigitized] {
            try data.set(tag, .text(facts.exifOffset))
        }
    }

    private func setExposure(_ data: EXIFData) throws(EXIFError) {
        if let duration = facts.exposureDuration, duration > 0 {
            try set(data, .exposureTime, PhotoFraction(nanoseconds: duration))
        }
        if let iso = facts.exifISO { try data.set(.isoSpeedRatings, .shorts([UInt16(clamping: iso)])) }
        if let bias = facts.exposureBias.flatMap({ PhotoFraction($0) }) {
            try data.set(.exposureBiasValue, .signedRationals([bias.signed]))
        }
        if let program = facts.exifExposureProgram {
            try data.set(.exposureProgram, .shorts([UInt16(clamping: program)]))
        }
        if let isManual = facts.isExposureManual { try data.set(.exposureMode, .shorts([isManual ? 1 : 0])) }
        if let isManual = facts.isWhiteBalanceManual { try data.set(.whiteBalance, .shorts([isManual ? 1 : 0])) }
        if facts.meteringMode != nil {
            try data.set(.meteringMode, .shorts([UInt16(clamping: facts.exifMeteringMode)]))
        }
        if facts.flashFired != nil || !facts.hasFlash {
            try data.set(.flash, .shorts([UInt16(clamping: facts.exifFlash)]))
        }
    }

    private func setOptics(_ data: EXIFData) throws(EXIFError) {
        try set(data, .fNumber, facts.fNumber.flatMap { PhotoFraction($0) })
        try set(data, .focalLength, facts.focalLength.flatMap { PhotoFraction($0) })
        if let length = facts.focalLength35, length >= 0.5, length.isFinite {
            try data.set(.focalLengthIn35mmFilm, .shorts([UInt16(min(length.rounded(), 65535))]))
        }
        if let distance = facts.subjectDistance, distance >= 0 {
            let infinity = EXIFRational(.max, 1)
            try data.set(.subjectDistance, .rationals([PhotoFraction(distance)?.unsigned ?? infinity]))
        }
        try set(data, .digitalZoomRatio, facts.zoom.flatMap { PhotoFraction($0) })
        try set(data, .bodySerialNumber, facts.serial)
    }

    private func setPixels(_ data: EXIFData) throws(EXIFError) {
        try data.set(.exifVersion, .undefined(Array("0232".utf8)))
        try data.set(.flashPixVersion, .undefined(Array("0100".utf8)))
        // Y, Cb, Cr, nothing.
        try data.set(.componentsConfiguration, .undefined([1, 2, 3, 0]))
        try data.set(.colorSpace, .shorts([1]))
        try data.set(.pixelXDimension, .longs([UInt32(clamping: dimensions.width)]))
        try data.set(.pixelYDimension, .longs([UInt32(clamping: dimensions.height)]))
        try data.set(.imageUniqueID, .text(facts.livePhoto?.digits ?? facts.uniqueID))
        if let livePhoto = facts.livePhoto { try data.set(.makerNote, .undefined(AppleNote.bytes(livePhoto))) }
    }

    private func adopt(_ camera: UnsafeRawBufferPointer, _ data: EXIFData) throws(EXIFError) {
        // The same in other words, which would no longer be the same.
        var unwanted: Set<EXIFTag> = [.makerNote]
        if data.value(.exposureTime) != nil { unwanted.insert(.shutterSpeedValue) }
        if data.value(.fNumber) != nil { unwanted.insert(.apertureValue) }
        try data.adopt(from: try EXIFData(reading: camera)) { tag, bytes in
            tag.directory != .thumbnail && tag.directory != .interoperability && bytes <= Self.mostAdoptedBytes
                && !unwanted.contains(tag)
        }
    }

    private func set(_ data: EXIFData, _ tag: EXIFTag, _ text: String?) throws(EXIFError) {
        guard let text, !text.isEmpty else { return }
        try data.set(tag, .text(text))
    }

    private func set(_ data: EXIFData, _ tag: EXIFTag, _ fraction: PhotoFraction?) throws(EXIFError) {
        guard let fraction = fraction?.unsigned else { return }
        try data.set(tag, .rationals([fraction]))
    }
}
