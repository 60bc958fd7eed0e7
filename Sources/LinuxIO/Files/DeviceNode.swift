import Glibc

/// Device nodes by their paths; nothing is opened.
public enum DeviceNode {
    /// Whether a device node is there, perhaps behind symbolic links (`/dev/v4l/by-id/…`).
    public static func exists(_ path: String) -> Bool { number(of: path) != nil }

    /// Whether both are paths to one device.
    public static func isSame(_ path: String, _ other: String) -> Bool {
        if path == other { return true }
        guard let number = number(of: path) else { return false }
        return number == self.number(of: other)
    }

    /// `/dev/video0` and so on, by their numbers.
    public static func videoNodes(in directory: String = "/dev") -> [String] {
        (Directory.names(directory) ?? [])
            .compactMap { name in name.hasPrefix("video") ? Int(name.dropFirst(5)) : nil }
            .sorted().map { "\(directory)/video\($0)" }
    }

    private static func number(of path: String) -> dev_t? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFCHR else { return nil }
        return status.st_rdev
    }
}
