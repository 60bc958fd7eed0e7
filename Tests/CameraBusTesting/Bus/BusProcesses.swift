import BusProtocol
public import LinuxIO

extension BusHarness {
    /// The pids of this bus's processes of that program: `camerabus-recorder`.
    public func pids(of program: String) -> [Int32] {
        Leaks(directory: directory.path, sharedMemoryBefore: []).processIDs.filter { pid in
            guard let line = try? File.read("/proc/\(pid)/cmdline", limit: 1 << 16) else { return false }
            return String(decoding: line.prefix { $0 != 0 }, as: UTF8.self).hasSuffix(program)
        }
    }

    /// Whoever writes a movie.
    ///
    /// - Throws: ``TestingError`` when nobody does.
    public func recorder(of movie: String) throws -> ProcessDescriptor {
        guard case .somebody(let recorder?) = LockFile.holder(of: directory.movieLock(movie)) else {
            throw TestingError("The movie \(movie) has no recorder.")
        }
        return recorder
    }
}
