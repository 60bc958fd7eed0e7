import BusServer
import Glibc
import LinuxIO
import Synchronization

/// Writes one file again and again on a thread of its own, since a disk can take its time; the newest content wins.
final class FileWriter {
    private struct Content {
        var number: UInt64
        var bytes: [UInt8]
    }

    private struct Outcome {
        var number: UInt64
        var error: SystemError?
        /// The last that was written.
        var written: UInt64
    }

    private final class Disk: Sendable {
        private let path: String
        private let written = Mutex<UInt64>(0)

        init(_ path: String) { self.path = path }

        func write(_ content: Content) -> Outcome {
            var failure: SystemError?
            do throws(SystemError) {
                try File.replace(path, with: content.bytes, mode: 0o600)
            } catch {
                failure = error
            }
            return written.withLock { written in
                if failure == nil { written = content.number }
                return Outcome(number: content.number, error: failure, written: written)
            }
        }
    }

    private let path: String
    private var work: BackgroundWork<Content, Outcome>?
    private var lastNumber: UInt64 = 0
    private var waiting: [(number: UInt64, body: (SystemError?) -> Void)] = []

    init(_ loop: Loop, path: String) throws(SystemError) {
        self.path = path
        let disk = Disk(path)
        work = try BackgroundWork(
            loop, name: "state-file", work: { disk.write($0) }, then: { [weak self] in self?.tell($0) })
    }

    deinit { end() }

    /// Has the file hold these bytes, or newer ones; the body is called when it does, or with what kept it from that.
    func write(_ bytes: [UInt8], then body: @escaping (SystemError?) -> Void) {
        guard let work else { return body(SystemError(code: ECANCELED, operation: "write", subject: path)) }
        lastNumber += 1
        waiting.append((lastNumber, body))
        work.start(Content(number: lastNumber, bytes: bytes))
    }

    /// Waits until all is written.
    func end() {
        let outcome = work?.end()
        work = nil
        if let outcome { tell(outcome) }
    }

    private func tell(_ outcome: Outcome) {
        // What a newer content replaced before its turn is in that.
        let told = waiting.prefix { $0.number <= outcome.number }
        waiting.removeFirst(told.count)
        for entry in told { entry.body(entry.number <= outcome.written ? nil : outcome.error) }
    }
}
