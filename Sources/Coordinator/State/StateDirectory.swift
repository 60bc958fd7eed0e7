import BusProtocol
import Glibc
import LinuxIO

/// Where the coordinator keeps what must outlive a reboot.
struct StateDirectory: Hashable {
    var path: String
    /// This directory was named: it is an error if it can't be used.
    var isNamed: Bool
    /// systemd made it, with the mode that its unit says.
    var isOfService = false

    /// The one that the command line or the configuration names, else systemd's `$STATE_DIRECTORY`, else `state` in a
    /// runtime directory that was named, else root's or the user's own; nil: a user without a home.
    static func choose(
        flag: String?, configured: String?, runtime: RuntimeDirectory, isRuntimeNamed: Bool,
        environment: [String: String], uid: UInt32
    ) -> StateDirectory? {
        for named in [flag, configured] {
            if let named, !named.isEmpty { return StateDirectory(path: trimmed(named), isNamed: true) }
        }
        // systemd puts a colon between several.
        if let path = environment["STATE_DIRECTORY"]?.split(separator: ":").first, path.hasPrefix("/") {
            return StateDirectory(path: trimmed(String(path)), isNamed: false, isOfService: true)
        }
        if isRuntimeNamed { return StateDirectory(path: "\(runtime.path)/state", isNamed: false) }
        if uid == 0 { return StateDirectory(path: "/var/lib/camerabus", isNamed: false) }
        // The XDG base directory specification: a relative path is to be ignored.
        if let base = environment["XDG_STATE_HOME"], base.hasPrefix("/") {
            return StateDirectory(path: "\(trimmed(base))/camerabus", isNamed: false)
        }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return StateDirectory(path: "\(trimmed(home))/.local/state/camerabus", isNamed: false)
    }

    /// Makes it, ours alone, with the folders above it that are missing. Through the service's its group may pass, to
    /// movies in the library below, where the unit lets it.
    func make() throws(SystemError) {
        guard path.hasPrefix("/") else { throw SystemError(code: EINVAL, operation: "mkdir", subject: path) }
        var parent = ""
        for part in path.split(separator: "/").dropLast() {
            parent += "/\(part)"
            // What can't be made and is needed shows at the last one.
            mkdir(parent, 0o700)
        }
        var status = stat()
        let passes: UInt32 = isOfService && stat(path, &status) == 0 ? status.st_mode & 0o010 : 0
        try PrivateDirectory.make(path, mode: 0o700 | passes)
    }

    private static func trimmed(_ path: String) -> String {
        var path = path
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}
