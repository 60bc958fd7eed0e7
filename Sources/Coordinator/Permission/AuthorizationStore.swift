import BusServer
import CaptureCore
import LinuxIO
import Logging

/// Keeps decisions about users in `permissions.json` in the state directory. A decision is on the disk before the
/// reply.
final class AuthorizationStore {
    /// What is wrong with it.
    private(set) var problems: [Problem] = [] { didSet { if problems != oldValue { onProblems?() } } }
    /// Called when they have changed.
    var onProblems: (() -> Void)?
    private let file: KeptFile?
    private let bootID: String
    private let logger: Logger

    private static let name = "permissions.json"
    private static let maximumBytes = 4 << 20

    /// Reads the decisions into the table. A damaged file is moved aside, and grants nothing.
    ///
    /// - Parameters:
    ///   - directory: ours alone; nil: nothing can be kept.
    ///   - bootID: names this run of the machine.
    init(
        _ loop: Loop, directory: String?, bootID: String, _ table: inout AuthorizationTable, logger: Logger
    ) throws(SystemError) {
        self.bootID = bootID
        self.logger = logger
        guard let directory else {
            file = nil
            problems = [.permissionsNotKept("there is no place to keep it; name one with --state-dir.")]
            return
        }
        let path = "\(directory)/\(Self.name)"
        let found = try KeptFile.read(path, limit: Self.maximumBytes, isOwn: true) {
            try table.takeDecisions($0, boot: bootID)
        }
        if case .damaged(let aside, let why) = found {
            logger.error(
                "decisions about users can't be read and were moved aside: they grant nothing",
                metadata: ["moved_to": "\(aside)", "error": "\(why)"])
            problems = [.permissionsLost(aside, why)]
        }
        file = try KeptFile(loop, path: path)
    }

    /// Calls the body when the decisions are on the disk; false: they can't be.
    func save(_ table: AuthorizationTable, then body: @escaping (Bool) -> Void) {
        guard let file else { return body(false) }
        file.write(table.json(boot: bootID)) { [weak self] error in
            self?.written(error)
            body(error == nil)
        }
    }

    private func written(_ error: SystemError?) {
        let others = problems.filter { $0.reason != .permissionsNotKept }
        if let error, others.count == problems.count {
            logger.error("decisions about users can't be written", metadata: ["error": "\(error)"])
        }
        problems = others + (error.map { [.permissionsNotKept("\($0).")] } ?? [])
    }

    /// Waits until all is written.
    func close() { file?.close() }
}
