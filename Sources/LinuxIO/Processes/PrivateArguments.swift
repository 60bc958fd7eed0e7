import CLinux
import Glibc

/// Arguments of a program that are not on its command line, because every user of the machine can read that.
///
/// The program inherits them in sealed memory (`memfd_create(2)`), each followed by a NUL. Its command line names the
/// descriptor. Only the program's own user and root can read the memory.
public enum PrivateArguments {
    /// The descriptor, in every program that gets some.
    static let descriptor: Int32 = 3
    /// Bytes of all of them.
    private static let maximumBytes = 64 << 20
    private static let option = "--arguments-at="

    /// The argument that says where the others are.
    static var place: String { "\(option)\(descriptor)" }

    /// The memory with some, as long as this lives.
    final class Memory {
        private let file: FileDescriptor
        var rawValue: Int32 { file.rawValue }

        init(_ arguments: [String]) throws(SystemError) {
            var bytes: [UInt8] = []
            for argument in arguments {
                bytes.append(contentsOf: argument.utf8)
                bytes.append(0)
            }
            guard bytes.count <= maximumBytes else { throw SystemError(code: E2BIG, operation: "memfd_create") }
            let made = FileDescriptor(owning: try check("memfd_create") { clinux_memfd("arguments") })
            let descriptor = made.rawValue
            try FileDescriptor.writeAll(bytes, to: descriptor)
            try check("fcntl") { clinux_seal_whole(descriptor) }
            file = made
        }
    }

    /// The arguments of this process, without its name. The private ones replace the argument that names their
    /// descriptor. The memory is released.
    ///
    /// - Throws: the system's error, such as `EBADF` for a descriptor that is not open.
    public static func all() throws(SystemError) -> [String] {
        var arguments: [String] = []
        for argument in CommandLine.arguments.dropFirst() {
            guard argument.hasPrefix(option), let descriptor = Int32(argument.dropFirst(option.count)), descriptor > 2
            else {
                arguments.append(argument)
                continue
            }
            arguments += try read(FileDescriptor(owning: descriptor))
        }
        return arguments
    }

    private static func read(_ memory: consuming FileDescriptor) throws(SystemError) -> [String] {
        let descriptor = memory.rawValue
        var status = stat()
        try check("fstat", "\(descriptor)") { fstat(descriptor, &status) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= maximumBytes else {
            throw SystemError(code: EINVAL, operation: "read", subject: "the arguments at \(descriptor)")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = try check("pread", "\(descriptor)") { pread(descriptor, &bytes, bytes.count, 0) }
        return bytes[..<count].split(separator: 0, omittingEmptySubsequences: false).dropLast().map {
            String(decoding: $0, as: UTF8.self)
        }
    }
}
