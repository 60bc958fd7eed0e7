/// What files of the capture library are called: names that a person can read, a folder per day, and nothing that leads out of it.
public enum LibraryNames {
    /// The longest name, bytes: some room is left for what side-cars and further parts add (`NAME_MAX` is 255).
    public static let maxNameBytes = 200

    /// What keeps a text from being the name of a file in the library; nil: nothing.
    public static func objection(to name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > maxNameBytes { return "has more than \(maxNameBytes) bytes" }
        if name.utf8.contains(UInt8(ascii: "/")) { return "must be a name, without '/'" }
        if name.hasPrefix(".") { return "must not begin with '.'" }
        if name.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }) {
            return "must hold no control characters"
        }
        return nil
    }

    /// The folder of a day, as UTC has it: `2026-11-22`.
    ///
    /// - Parameter time: nanoseconds since 1970.
    public static func day(_ time: Int64) -> String {
        // The Gregorian calendar in eras of 400 years, which begin in March.
        let days = time.flooredDivision(by: 86_400_000_000_000) + 719_468
        let era = days.flooredDivision(by: 146_097)
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfYear - (153 * shifted + 2) / 5 + 1, 2))"
    }

    /// Where a file of that name has its place.
    ///
    /// - Parameters:
    ///   - directory: the library, absolute.
    ///   - time: when it is made, nanoseconds since 1970.
    public static func path(_ directory: String, _ name: String, madeAt time: Int64) -> String {
        "\(directory)/\(day(time))/\(name)"
    }

    /// A name for what nobody has named: what it shows, when it was made (UTC), and its id, which no other has: `front-143205-1a2b3c4d.mp4`.
    ///
    /// - Parameters:
    ///   - subject: a device or a rig.
    ///   - time: nanoseconds since 1970.
    ///   - ending: without the dot.
    public static func automatic(_ subject: String, id: String, madeAt time: Int64, ending: String) -> String {
        let second = time.flooredDivision(by: 1_000_000_000).flooredRemainder(by: 86400)
        let clock = padded(second / 3600, 2) + padded(second / 60 % 60, 2) + padded(second % 60, 2)
        return "\(subject)-\(clock)-\(id).\(ending)"
    }

    /// The side-car of a movie, beside it.
    public static func sideCar(of path: String) -> String { "\(stem(path)).frames.jsonl" }

    /// A further part of a movie, beside the first: `walk.mp4` goes on in `walk-2.mp4`.
    public static func part(_ number: Int, of path: String) -> String {
        let stem = stem(path)
        return "\(stem)-\(number)\(path.dropFirst(stem.count))"
    }

    /// Whether a path is below a folder, by its text: both absolute, and neither with a part that means another folder.
    public static func isInside(_ path: String, _ directory: String) -> Bool {
        let (path, directory) = (path.split(separator: "/"), directory.split(separator: "/"))
        return path.count > directory.count && path.starts(with: directory)
            && !path.contains { $0 == "." || $0 == ".." }
    }

    // Without the ending of its name.
    private static func stem(_ path: String) -> Substring {
        let name = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
        guard let dot = path[name...].lastIndex(of: "."), dot > name else { return path[...] }
        return path[..<dot]
    }

    private static func padded(_ number: Int64, _ count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: Int64) -> Int64 { self / divisor - (self % divisor < 0 ? 1 : 0) }
    fileprivate func flooredRemainder(by divisor: Int64) -> Int64 { self - flooredDivision(by: divisor) * divisor }
}
