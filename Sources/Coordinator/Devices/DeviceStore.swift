import BusServer
import CaptureCore
import LinuxIO
import Logging

/// Keeps the device table (``DeviceTable``) in `devices.json`. A change is on the disk before the reply that depends on
/// it, any other change within a second. What can't be written is tried again.
final class DeviceStore: ProblemReporter {
    private(set) var table = DeviceTable()
    /// What is wrong with it.
    private(set) var problems: [Problem] = [] { didSet { if problems != oldValue { onProblems?() } } }
    /// Called when they have changed.
    var onProblems: (() -> Void)?
    /// The directory, where things can be kept in it.
    let directory: String?
    private let loop: Loop
    private let logger: Logger
    private let file: KeptFile?
    // Two coordinators with one table would each undo what the other remembers.
    private let lock: LockFile?
    private var timer: Loop.Token?
    private var hasFailed = false

    private static let name = "devices.json"
    private static let maximumBytes = 16 << 20
    /// How long a change may take to be written without a request that waits for it, milliseconds.
    private static let delay: Int64 = 1000

    /// Opens the table. A damaged one is moved aside, and a new one begun.
    ///
    /// - Parameter directory: nil: nothing can be kept.
    /// - Throws: when the directory was asked for by name and can't be used.
    init(_ loop: Loop, _ directory: StateDirectory?, logger: Logger) throws(SystemError) {
        self.loop = loop
        self.logger = logger
        guard let directory else {
            logger.warning("there is no directory to keep aliases and settings of devices; name one with --state-dir")
            (file, lock, self.directory) = (nil, nil, nil)
            problems = [.memoryNotKept("there is no place to keep them; name one with --state-dir.")]
            return
        }
        let path = "\(directory.path)/\(Self.name)"
        let opened: (KeptFile, LockFile, DeviceTable)?
        var lost: Problem?
        do throws(SystemError) {
            try directory.make()
            let lock = try LockFile("\(directory.path)/camerabusd.lock")
            let table = try Self.read(path, logger, &lost)
            opened = (try KeptFile(loop, path: path), lock, table)
        } catch {
            if directory.isNamed { throw error }
            logger.warning(
                "aliases and settings of devices can't be kept; name another directory with --state-dir",
                metadata: ["state_dir": "\(directory.path)", "error": "\(error)"])
            opened = nil
            problems = [.memoryNotKept("\(error). Name another place with --state-dir.")]
        }
        (file, lock, self.directory) = (opened?.0, opened?.1, opened == nil ? nil : directory.path)
        if let lost { problems = [lost] }
        if let opened { table = opened.2 }
    }

    private static func read(
        _ path: String, _ logger: Logger, _ lost: inout Problem?
    ) throws(SystemError) -> DeviceTable {
        switch try KeptFile.read(path, limit: maximumBytes, { try DeviceTable(json: $0) }) {
        case .nothing: return DeviceTable()
        case .content(let table): return table
        case .damaged(let aside, let why):
            logger.error(
                "the file of devices can't be read and was moved aside: aliases and settings are forgotten",
                metadata: ["moved_to": "\(aside)", "error": "\(why)"])
            lost = .memoryLost(aside, why)
            return DeviceTable()
        }
    }

    /// Seconds since 1970.
    static var now: Int64 { MonotonicClock.realtime() / 1_000_000_000 }

    /// Changes the table; it is written within a second.
    func change(_ body: (inout DeviceTable) -> Void) {
        let before = table
        body(&table)
        guard table != before, file != nil, timer == nil else { return }
        timer = loop.schedule(afterMilliseconds: Self.delay) { [weak self] in self?.save { _ in } }
    }

    /// Calls the body when the table is on the disk; false: it can't be written.
    func save(_ body: @escaping (Bool) -> Void) {
        loop.cancel(timer)
        timer = nil
        guard let file else { return body(false) }
        file.write(table.json) { [weak self] error in
            if let error, let self, !hasFailed {
                logger.error("the file of devices can't be written", metadata: ["error": "\(error)"])
            }
            self?.written(error)
            body(error == nil)
        }
    }

    private func written(_ error: SystemError?) {
        hasFailed = error != nil
        if hasFailed, timer == nil {
            timer = loop.schedule(afterMilliseconds: Self.delay) { [weak self] in self?.save { _ in } }
        }
        let others = problems.filter { $0.reason != .memoryNotKept }
        problems = others + (error.map { [.memoryNotKept("\($0).")] } ?? [])
    }

    /// Writes what is not written yet, and waits for it.
    func close() {
        if timer != nil { save { _ in } }
        file?.close()
    }
}
