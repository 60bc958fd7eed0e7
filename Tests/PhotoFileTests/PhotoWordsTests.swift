import CaptureCore
import EXIF
import Testing

@testable import PhotoFile

@Suite struct PhotoWordsTests {
    @Test func `numbers become the simplest fractions`() throws {
        for (value, numerator, denominator) in [
            (0.0, 0, 1), (2.8, 14, 5), (-1.0 / 3, -1, 3), (0.000125, 1, 8000), (35, 35, 1), (1.3333333, 4, 3),
            (-2, -2, 1), (1e12, Int(Int32.max), 1),
        ] {
            let fraction = try #require(PhotoFraction(value))
            #expect(fraction.signed == EXIFSignedRational(Int32(numerator), Int32(denominator)), "\(value)")
            #expect((fraction.unsigned == nil) == (value < 0))
        }
        #expect(PhotoFraction(.nan) == nil && PhotoFraction(.infinity) == nil)
        var noise = Noise()
        for _ in 0..<1000 {
            let value = Double(noise.next()) / Double(noise.next() % 10_000_000 + 1)
            let fraction = try #require(PhotoFraction(value)?.unsigned)
            let said = Double(fraction.numerator) / Double(fraction.denominator)
            #expect(abs(said - min(value, Double(Int32.max))) <= max(value, 1) * 1e-6, "\(value)")
        }
    }

    @Test func `durations are said exactly`() {
        for (nanoseconds, numerator, denominator) in [
            (10_000_000, 1, 100), (33_300_000, 333, 10_000), (1, 1, 1_000_000_000), (2_500_000_000, 5, 2),
            (3_600_000_000_000, 3600, 1),
        ] {
            let fraction = PhotoFraction(nanoseconds: Int64(nanoseconds))
            #expect(fraction.unsigned == EXIFRational(UInt32(numerator), UInt32(denominator)))
        }
        #expect(PhotoFraction(nanoseconds: .max).unsigned != nil && PhotoFraction(nanoseconds: .min).unsigned == nil)
    }

    @Test func `times are local ones, to the microsecond`() {
        func words(_ realtime: Int64, _ offset: Int) -> [String] {
            let facts = PhotoFacts(uniqueID: "", realtime: realtime, utcOffset: offset)
            return [facts.exifDateTime, facts.exifSubSeconds, facts.exifOffset]
        }
        #expect(words(1_795_359_600_000_001_999, 3600) == ["2026:11:22 16:00:00", "000001", "+01:00"])
        #expect(words(1_795_359_600_999_999_999, -12600) == ["2026:11:22 11:30:00", "999999", "-03:30"])
        #expect(words(0, 0) == ["1970:01:01 00:00:00", "000000", "+00:00"])
        #expect(words(-1000, 0) == ["1969:12:31 23:59:59", "999999", "+00:00"])
        for realtime in [Int64.min, .max] {
            #expect(words(realtime, 86400).map(\.utf8.count) == [19, 6, 6])
        }
    }

    @Test func `flash and exposure are said as far as they are known`() {
        var facts = PhotoFacts(uniqueID: "", realtime: 0, utcOffset: 0)
        #expect(facts.exifFlash == 0x20 && facts.exifExposureProgram == nil && facts.exifISO == nil)
        facts.hasFlash = true
        facts.redEyeReduction = true
        #expect(facts.exifFlash == 0)
        facts.flashFired = true
        #expect(facts.exifFlash == 0x41)
        facts.iso = 100_000
        #expect(facts.exifISO == 65535)
        facts.isExposureManual = true
        #expect(facts.exifExposureProgram == 1)
    }

    @Test func `a thumbnail keeps the picture's shape and is never larger`() {
        func size(_ width: Int, _ height: Int, _ side: Int) -> Dimensions {
            PhotoThumbnail(maximumSide: side).dimensions(of: Dimensions(width: width, height: height))
        }
        #expect(size(1920, 1080, 160) == Dimensions(width: 160, height: 90))
        #expect(size(1080, 1920, 320) == Dimensions(width: 180, height: 320))
        #expect(size(120, 90, 160) == Dimensions(width: 120, height: 90))
        #expect(size(4000, 10, 16) == Dimensions(width: 16, height: 1))
    }
}
