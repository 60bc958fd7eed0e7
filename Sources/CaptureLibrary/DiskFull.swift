public import BusProtocol
import Glibc
import JSON

extension BusError {
    /// Nothing more can be written there; {free, needed} in bytes.
    ///
    /// - Parameter reserved: bytes that are to stay free, if that is what it lacks.
    public static func diskFull(_ path: String, reserved: Int64? = nil) -> BusError {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "/"
        var status = statvfs()
        let isKnown = statvfs(folder.isEmpty ? "/" : folder, &status) == 0
        let (bytes, isHuge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        let (free, needed) = (isKnown && !isHuge ? bytes : 0, UInt64(max(1 << 20, reserved ?? 0)))
        let lack = lack(free: free, reserved: reserved == nil ? nil : needed)
        return BusError(
            .diskFull, "The disk of \(path) \(lack): free some space, then record again.",
            ["free": JSONValue(free), "needed": JSONValue(needed)])
    }

    /// What a disk lacks, behind `The disk of …`; of bytes that are free, and that are to stay free if that is it.
    public static func lack(free: UInt64, reserved: UInt64?) -> String {
        guard let reserved else { return "is full, with \(words(free)) free" }
        return "has \(words(free)) free, and \(words(reserved)) must stay free"
    }

    /// `0 kB`, `740 kB`, `24 MB`, `1320 MB`.
    private static func words(_ bytes: UInt64) -> String {
        bytes < 1_000_000 ? "\(bytes / 1000) kB" : "\(bytes / 1_000_000) MB"
    }
}

extension CaptureLibrary {
    /// Bytes that may still be written to its disk; nil: nobody knows.
    public var free: Int64? {
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return nil }
        let (bytes, isHuge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return isHuge ? .max : Int64(clamping: bytes)
    }
}
