import BusProtocol
import Glibc
import LinuxIO

extension Machine {
    func directoryFact(_ path: String) -> DirectoryFact {
        var fact = DirectoryFact(path: path)
        var status = stat()
        guard lstat(files.path(path), &status) == 0 else {
            fact.kind = errno == EACCES ? .hidden : .missing
            return fact
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: fact.kind = .directory
        case S_IFLNK: fact.kind = .link
        default: fact.kind = .other
        }
        (fact.mode, fact.uid, fact.gid) = (status.st_mode & 0o7777, status.st_uid, status.st_gid)
        guard let directory = try? RuntimeDirectory(path), fact.kind == .directory else { return fact }
        fact.socket = socket(directory.commandSocket)
        fact.lockHolder = lockHolder(directory.coordinatorLock)
        return fact
    }

    private func socket(_ path: String) -> DirectoryFact.Socket {
        var status = stat()
        guard stat(files.path(path), &status) == 0 else { return errno == EACCES ? .forbidden : .missing }
        guard faccessat(AT_FDCWD, files.path(path), W_OK, AT_EACCESS) == 0 else { return .forbidden }
        return UnixSocket.isLive(files.path(path)) ? .live : .dead
    }

    /// The process that holds the file with `flock(2)`, as `/proc/locks` tells.
    private func lockHolder(_ path: String) -> Int32? {
        guard let status = files.status(path) else { return nil }
        let device = UInt64(status.st_dev)
        let major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
        let minor = device & 0xFF | (device >> 12) & ~0xFF
        for line in files.lines("/proc/locks") {
            // 1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF
            let words = line.split(whereSeparator: \.isWhitespace)
            guard words.count > 5, words[1] == "FLOCK", let pid = Int32(words[4]), pid > 0 else { continue }
            let file = words[5].split(separator: ":")
            if file.count == 3, UInt64(file[0], radix: 16) == major, UInt64(file[1], radix: 16) == minor,
                UInt64(file[2]) == UInt64(status.st_ino)
            {
                return pid
            }
        }
        return nil
    }

    /// Room where the bus writes; a directory that isn't there is not made up for by another.
    func spaceFacts(_ directories: [String]) -> [SpaceFact] {
        (directories + ["/var/lib/camerabus"]).compactMap { path in
            var status = statvfs()
            guard files.exists(path), statvfs(files.path(path), &status) == 0 else { return nil }
            let (free, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
            return SpaceFact(
                path: path, free: overflow ? .max : free, freeFiles: status.f_files == 0 ? nil : UInt64(status.f_favail)
            )
        }
    }

    func serviceFacts() -> ServiceFacts {
        let unit = [
            "/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
        ]
        .map { "\($0)/camerabusd.service" }.first(where: files.exists)
        var facts = ServiceFacts(unit: unit, hasSystemd: files.exists("/run/systemd/system"))
        facts.uid = userID("camerabus")
        return facts
    }
}
