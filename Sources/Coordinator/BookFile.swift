import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Logging

/// Keeps a book in a file of its own beside the device book: what a reply rests on is there before the reply.
final class BookFile<Book: KeptBook> {
    private(set) var book = Book()
    /// That it was damaged and begun anew.
    private(set) var problem: Problem?
    private let logger: Logger
    private var writer: FileWriter?
    private let name: String

    private static var maximumBytes: Int { 64 << 20 }

    /// Opens the book. A damaged one is moved aside, and a new one begun; one that can't be read now is left alone.
    ///
    /// - Parameters:
    ///   - directory: nil: nothing can be kept.
    ///   - name: of the file, without `.json`; also what people call its contents.
    init(_ loop: Loop, directory: String?, name: String, logger: Logger) {
        self.logger = logger
        self.name = name
        guard let directory else { return }
        let path = "\(directory)/\(name).json"
        do {
            writer = try FileWriter(loop, path: path)
            let bytes = try File.read(path, limit: Self.maximumBytes)
            book = try Book(json: try bytes.withUnsafeBytes { try JSONValue(parsing: $0) })
        } catch let error as SystemError where error.code == ENOENT {
            // None was written yet.
        } catch let error as SystemError where error.code != EFBIG {
            logger.warning("the \(name) can't be kept", metadata: ["path": "\(path)", "error": "\(error)"])
            problem = .bookUnreadable(name, "\(error)")
            writer = nil
        } catch {
            let aside = path + ".damaged"
            rename(path, aside)
            logger.error(
                "the \(name) can't be read and were moved aside",
                metadata: ["moved_to": "\(aside)", "error": "\(error)"])
            problem = .bookLost(name, aside, "\(error)")
        }
    }

    /// Changes the book, and calls the body when it is on the disk so; false: it can't be.
    func change(_ change: (inout Book) throws(BusError) -> Void, then body: @escaping (Bool) -> Void) throws(BusError) {
        var next = book
        try change(&next)
        book = next
        guard let writer else { return body(false) }
        writer.write(book.json.serialized + [UInt8(ascii: "\n")]) { [logger, name] error in
            if let error { logger.error("the \(name) can't be written", metadata: ["error": "\(error)"]) }
            body(error == nil)
        }
    }

    /// Changes what is not kept.
    func amend(_ change: (inout Book) -> Void) { change(&book) }

    /// Waits until all is written.
    func close() { writer?.end() }
}
