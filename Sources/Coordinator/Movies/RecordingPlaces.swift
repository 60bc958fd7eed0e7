import BusProtocol
import CaptureCore
import Glibc
import LinuxIO

/// Where movies and photos may be stored, as the configuration is now.
final class RecordingPlaces {
    private let configuration: LiveConfiguration
    /// Where state is kept; nil: nowhere.
    private let stateDirectory: String?

    init(_ configuration: LiveConfiguration, stateDirectory: String?) {
        self.configuration = configuration
        self.stateDirectory = stateDirectory
    }

    var current: MoviePlace {
        MoviePlace(
            library: configuration.current.libraryDirectory ?? stateDirectory.map { "\($0)/library" },
            roots: configuration.current.libraryRoots, destinations: configuration.current.libraryDestinations)
    }

    /// Whether the bus's group may read the library.
    var isShared: Bool { configuration.current.sharesLibrary }

    /// Bytes that stay free on the library's disk.
    var minimumFree: Int64 { configuration.current.libraryMinFree }

    /// Refuses a path that leaves its allowed folder by a symbolic link.
    ///
    /// - Throws: `pathNotAllowed`.
    func checkLinks(_ target: MoviePlace.Target) throws(BusError) {
        guard let root = target.root, let slash = target.path.lastIndex(of: "/") else { return }
        guard let real = File.realPath(ofNearest: root),
            let folder = File.realPath(ofNearest: String(target.path[..<slash])),
            MoviePlace.contains(real, "\(folder)/")
        else { throw current.refusal(target.path) }
    }
}

/// The local time, for the names of files and folders.
enum LocalTime {
    /// `2026-01-31`, `235959`
    static func today() -> (day: String, time: String) {
        var (now, parts) = (time(nil), tm())
        localtime_r(&now, &parts)
        func digits(_ value: Int32, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let day = "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
        return (day, "\(digits(parts.tm_hour, 2))\(digits(parts.tm_min, 2))\(digits(parts.tm_sec, 2))")
    }
}
