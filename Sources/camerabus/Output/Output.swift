import Glibc
import JSON

/// Nobody reads our standard output any more.
struct OutputClosed: Error {}

/// Standard output for results, standard error for all else.
enum Output {
    static func line(_ text: String) throws { try bytes(Array(text.utf8) + [0x0A]) }

    static func json(_ value: JSONValue) throws { try bytes(value.serialized + [0x0A]) }

    static func bytes(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

    /// All of the bytes, however long a reader takes for them.
    static func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard let error = writeAll(bytes, to: 1) else { return }
        if error == EPIPE { throw OutputClosed() }
        throw Failure(status: ExitStatus.refused, description: "standard output: \(String(cString: strerror(error)))")
    }

    /// A sentence for a person.
    static func note(_ text: String) { _ = Array((text + "\n").utf8).withUnsafeBytes { writeAll($0, to: 2) } }

    /// Takes the place of the line that stands on the terminal at standard error; nothing: leaves it empty.
    static func progress(_ line: String) {
        _ = Array("\r\u{1B}[K\(line)".utf8).withUnsafeBytes { writeAll($0, to: 2) }
    }

    /// - Returns: the error number, if any.
    private static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32? {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = Glibc.write(descriptor, part.baseAddress, part.count)
            if count >= 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                // Somebody has made our output non-blocking: a terminal that ssh or a test shares.
                var item = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&item, 1, -1)
            case let error: return error
            }
        }
        return nil
    }
}
