public import BusProtocol
import Glibc
import JSON

extension BusError {
    /// Nothing more can be written there; {free, needed} in bytes.
    public static func diskFull(_ path: String) -> BusError {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "/"
        var status = statvfs()
        let isKnown = statvfs(folder.isEmpty ? "/" : folder, &status) == 0
        let (bytes, isHuge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return BusError(
            .diskFull, "The disk of \(path) is full: make room, then record again.",
            ["free": JSONValue(isKnown && !isHuge ? bytes : 0), "needed": .integer(1 << 20)])
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
