import CaptureCore
import Glibc

// The facts in EXIF's words and numbers (CIPA DC-008, 4.6.5): JPEG and DNG say the same.

extension PhotoFacts {
    /// Local time, `2026:11:22 15:12:00`. Years outside of 0…9999 can't be said, and become these.
    var exifDateTime: String {
        var seconds = time_t(Self.floored(realtime, Self.nanoseconds) + Int64(utcOffset))
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil else { return "0000:01:01 00:00:00" }
        let year = min(max(Int(parts.tm_year) + 1900, 0), 9999)
        return Self.digits(year, 4) + ":" + Self.digits(Int(parts.tm_mon) + 1) + ":" + Self.digits(Int(parts.tm_mday))
            + " " + Self.digits(Int(parts.tm_hour)) + ":" + Self.digits(Int(parts.tm_min)) + ":"
            + Self.digits(Int(parts.tm_sec))
    }

    /// The decimals of ``exifDateTime``'s seconds: microseconds, which is how exact the clocks of frames are.
    var exifSubSeconds: String {
        let nanoseconds = realtime % Self.nanoseconds
        return Self.digits(Int((nanoseconds < 0 ? nanoseconds + Self.nanoseconds : nanoseconds) / 1000), 6)
    }

    /// `+01:00`
    var exifOffset: String {
        let minutes = min(abs(utcOffset) / 60, 99 * 60 + 59)
        return (utcOffset < 0 ? "-" : "+") + Self.digits(minutes / 60) + ":" + Self.digits(minutes % 60)
    }

    /// Bit 0: it fired; bit 5: there is none; bit 6: with red-eye reduction.
    var exifFlash: Int {
        guard hasFlash else { return 0x20 }
        return (flashFired == true ? 1 : 0) | (redEyeReduction && flashFired == true ? 0x40 : 0)
    }

    /// 0: unknown.
    var exifMeteringMode: Int { meteringMode?.rawValue ?? 0 }

    /// 1: by hand; 2: by the camera; nil: nobody knows.
    var exifExposureProgram: Int? { isExposureManual.map { $0 ? 1 : 2 } }

    /// As a short holds it: 65535 is that much or more.
    var exifISO: Int? { iso.flatMap { $0 > 0 ? min($0, 65535) : nil } }

    private static let nanoseconds: Int64 = 1_000_000_000

    private static func floored(_ value: Int64, _ unit: Int64) -> Int64 {
        value / unit - (value % unit < 0 ? 1 : 0)
    }

    private static func digits(_ value: Int, _ count: Int = 2) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}
