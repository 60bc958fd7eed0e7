public import CaptureCore
public import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import MovieFile
import TurboJPEG

/// A movie in the capture library as a recorder leaves it that dies: never finished, and cut off somewhere.
public struct LeftMovie {
    public let entry: LibraryEntry
    /// The file's bytes as the dying recorder left them.
    public let bytes: [UInt8]
    /// How many frames are in the fragments that are whole.
    public let wholeFrames: Int

    public static let size = Dimensions(width: 64, height: 48)
    /// Of a camera that is as virtual ones are.
    public static let interval: Int64 = 40_000_000

    /// - Parameters:
    ///   - cut: how much of the movie is there, 0 to 1; nil: all of it, and it was finished: only the entry says
    ///     otherwise.
    ///   - zeros: bytes that the file system has added behind.
    ///   - id: of its entry.
    ///   - uid: whose it is; nil: this process's.
    ///   - lock: what its recorder held.
    public init(
        _ library: CaptureLibrary, id: String, fileType: MovieFileType = .mp4, cut: Double?, zeros: Int = 0,
        uid: UInt32? = nil, started: Int64 = 1_795_333_303_000_000_000, lock: String? = nil
    ) throws {
        let path = "\(library.directory)/2026-11-22/\(id).\(fileType)"
        try library.makeFolder(for: path)
        var entry = LibraryEntry(
            id: id, path: path, sideCar: "\(path).frames.jsonl",
            devices: [LibraryDevice(device: "cam0", uniqueID: "virtual-0", name: "Virtual Camera 0")], started: started,
            fileType: fileType.rawValue, video: ["codec": "mjpeg", "width": 64, "height": 48], take: "take-\(id)",
            part: 1,
            owner: LibraryOwner(uid: uid ?? CurrentProcess.uid, pid: 42, name: "a test"), lock: lock)
        try library.add(entry)
        var configuration = MovieConfiguration(fileType, video: .motionJPEG(.jpeg(Self.size)))
        configuration.movieFragmentInterval = 5 * Self.interval
        let writer = try MovieWriter(path, configuration)
        var whole = [(size: 0, frames: 0)]
        for index in 0..<30 {
            let fragments = writer.statistics.fragments
            _ = try Self.picture(index).withUnsafeBytes { try writer.append($0, at: Int64(index) * Self.interval) }
            if writer.statistics.fragments > fragments { whole.append((Int(writer.statistics.syncedSize), index)) }
        }
        if cut == nil {
            try writer.finishWriting()
            bytes = try File.read(path, limit: 16 << 20)
            wholeFrames = 30
        } else {
            try writer.endFragment()
            whole.append((Int(writer.statistics.syncedSize), 30))
            let written = try File.read(path, limit: 16 << 20)
            // Removes the file, which is then as it would be found.
            writer.cancelWriting()
            let length = Int((Double(written.count) * min(max(cut ?? 1, 0), 1)).rounded(.down))
            // Not so many that the torn fragment looks whole.
            let room = max(0, (whole.first { $0.size > length }?.size ?? .max) - length - 1)
            bytes = written[..<length] + [UInt8](repeating: 0, count: min(zeros, room))
            wholeFrames = whole.last { $0.size <= length }?.frames ?? 0
            try File.replace(path, with: bytes, mode: 0o640)
        }
        try File.replace("\(path).frames.jsonl", with: Self.wholeLines + Array("{\"timest".utf8), mode: 0o640)
        entry.file = try Self.identity(path)
        entry.sideCarFile = try Self.identity("\(path).frames.jsonl")
        try library.replace(entry)
        self.entry = entry
    }

    private static func identity(_ path: String) throws -> FileIdentity {
        let file = try FileDescriptor(opening: path, O_RDONLY)
        return try FileIdentity(file.rawValue)
    }

    /// What of the side-car is whole.
    public static let wholeLines = Array(
        "{\"timestamp\":0,\"sequence\":0,\"dropped\":0}\n{\"timestamp\":40000000,\"sequence\":1,\"dropped\":0}\n".utf8)

    // Grey, and another grey with each frame.
    private static func picture(_ number: Int) throws -> [UInt8] {
        let pixels = [UInt8](repeating: UInt8(16 + number * 7), count: size.width * size.height)
        var jpeg = [UInt8](
            repeating: 0,
            count: JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: .gray))
        let compressor = try JPEGCompressor()
        let count = try pixels.withUnsafeBytes { pixels in
            try jpeg.withUnsafeMutableBytes { output in
                try compressor.compress(
                    pixels, format: .gray, width: size.width, height: size.height, stride: size.width,
                    subsampling: .gray, quality: 90, into: output)
            }
        }
        return Array(jpeg[..<count])
    }
}
