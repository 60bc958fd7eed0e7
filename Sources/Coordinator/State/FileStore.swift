import BusProtocol
import BusServer
import CaptureCore
import LinuxIO
import Logging

/// Keeps a table in a file of its own in the state directory. Changes are on the disk before the reply, or tried again
/// until they are.
final class FileStore<Table: StoredTable>: ProblemReporter {
    private(set) var table = Table()
    /// That it was damaged and begun anew.
    private var problem: Problem?
    private let loop: Loop
    private let logger: Logger
    private var file: KeptFile?
    private let name: String
    private var retry: Loop.Token?
    private var hasFailed = false

    private static var maximumBytes: Int { 64 << 20 }
    /// When what could not be written is tried again, milliseconds.
    private static var retryInterval: Int64 { 1000 }

    /// Opens the table. A damaged one is moved aside, and a new one begun; one that can't be read now is left alone.
    ///
    /// - Parameters:
    ///   - directory: nil: nothing can be kept.
    ///   - name: of the file, without `.json`; also what people call its contents.
    init(_ loop: Loop, directory: String?, name: String, logger: Logger) {
        self.loop = loop
        self.logger = logger
        self.name = name
        guard let directory else { return }
        let path = "\(directory)/\(name).json"
        do {
            switch try KeptFile.read(path, limit: Self.maximumBytes, { try Table(json: $0) }) {
            case .nothing: break
            case .content(let found):
                table = found
                for why in found.leftOut {
                    logger.error("an entry of the \(name) is left out", metadata: ["error": "\(why)"])
                }
            case .damaged(let aside, let why):
                logger.error(
                    "the \(name) can't be read and were moved aside",
                    metadata: ["moved_to": "\(aside)", "error": "\(why)"])
                problem = .tableLost(name, aside, why)
            }
            file = try KeptFile(loop, path: path)
        } catch {
            logger.warning("the \(name) can't be kept", metadata: ["path": "\(path)", "error": "\(error)"])
            problem = .tableUnreadable(name, "\(error)")
        }
    }

    var problems: [Problem] { problem.map { [$0] } ?? [] }

    /// Changes the table, and calls the body when it is on the disk; false: it can't be written.
    func change(_ change: (inout Table) throws(BusError) -> Void, then body: @escaping (Bool) -> Void) throws(BusError)
    {
        var next = table
        try change(&next)
        table = next
        write(then: body)
    }

    private func write(then body: @escaping (Bool) -> Void) {
        guard let file else { return body(false) }
        loop.cancel(retry)
        retry = nil
        file.write(table.json) { [weak self] error in
            self?.written(error)
            body(error == nil)
        }
    }

    // What has ended must not come back with the next bus.
    private func written(_ error: SystemError?) {
        if let error, !hasFailed { logger.error("the \(name) can't be written", metadata: ["error": "\(error)"]) }
        hasFailed = error != nil
        guard hasFailed, retry == nil else { return }
        retry = loop.schedule(afterMilliseconds: Self.retryInterval) { [weak self] in self?.write { _ in } }
    }

    /// Changes what is not kept.
    func amend(_ change: (inout Table) -> Void) { change(&table) }

    /// Waits until all is written.
    func close() {
        if retry != nil { write { _ in } }
        file?.close()
    }
}
