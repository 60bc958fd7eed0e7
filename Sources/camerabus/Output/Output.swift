import BusProtocol
import Glibc
import JSON
import LinuxIO

/// Nobody reads our standard output any more.
struct OutputClosed: Error {}

/// Standard output for results, standard error for all else.
enum Output {
    /// One line, or several. Nothing in it steers the terminal, whoever it comes from.
    static func line(_ text: String) throws { try bytes(Array(text.printableLines.utf8) + [0x0A]) }

    static func json(_ value: JSONValue) throws { try line(value.description.escapedInJSON) }

    static func bytes(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

    /// All of the bytes, however long a reader takes for them.
    static func write(_ bytes: UnsafeRawBufferPointer) throws {
        do throws(SystemError) {
            try FileDescriptor.writeAll(bytes, to: STDOUT_FILENO)
        } catch {
            if error.code == EPIPE { throw OutputClosed() }
            throw Failure(
                status: ExitStatus.refused, description: "standard output: \(String(cString: strerror(error.code)))")
        }
    }

    /// A sentence for a person.
    static func note(_ text: String) { error(text.printableLines + "\n") }

    /// Takes the place of the line that stands on the terminal at standard error; nothing: leaves it empty.
    static func progress(_ line: String) { error("\r\u{1B}[K\(line)") }

    private static func error(_ text: String) {
        // If it is closed, there is no place left to report that to.
        try? FileDescriptor.writeAll(Array(text.utf8), to: STDERR_FILENO)
    }
}
