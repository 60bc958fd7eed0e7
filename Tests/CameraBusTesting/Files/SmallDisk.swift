import Glibc
import LinuxIO

/// A file system of a few megabytes.
public final class SmallDisk: Sendable {
    private let scratch: TemporaryDirectory
    public var path: String { "\(scratch.path)/disk" }

    public init(megabytes: Int) async throws {
        scratch = try TemporaryDirectory()
        chmod(scratch.path, 0o711)
        mkdir(path, 0o700)
        let mounted = try await Self.run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", path], scratch)
        guard mounted.status == 0 else { throw TestingError(mounted.description) }
    }

    deinit { umount2(path, Int32(MNT_DETACH)) }

    /// Why this process may not mount one (`CAP_SYS_ADMIN`); nil: it may.
    public static let obstacle: String? = {
        let status = (try? File.read("/proc/self/status", limit: 1 << 16)) ?? []
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        let mask = line.flatMap { UInt64($0.dropFirst(7).drop { $0 == "\t" }, radix: 16) } ?? 0
        return geteuid() == 0 && mask >> 21 & 1 == 1 ? nil : "this process may not mount file systems"
    }()

    /// Fills it up but for so many bytes.
    ///
    /// - Returns: the file that takes the room, to be removed.
    public func fill(leaving bytes: Int) throws -> String {
        let file = "\(path)/filler"
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw TestingError("statvfs: \(String(cString: strerror(errno)))") }
        let size = Int(status.f_bavail) * Int(status.f_frsize) - bytes
        let descriptor = try FileDescriptor(opening: file, O_WRONLY | O_CREAT, mode: 0o600)
        guard posix_fallocate(descriptor.rawValue, 0, off_t(max(0, size))) == 0 else {
            throw TestingError("\(file) can't be made")
        }
        return file
    }

    /// Bytes that are free.
    public var free: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : 0
    }

    private static func run(
        _ program: String, _ arguments: [String], _ scratch: TemporaryDirectory
    ) async throws -> ProgramResult {
        let environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
        return try await RunningProgram(program, arguments, environment: environment, scratch: scratch).end()
    }
}
