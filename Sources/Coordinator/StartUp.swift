import BusProtocol
import Glibc
import LinuxIO
import Settings

/// The steps before the coordinator serves: reads the configuration, makes the directories, and takes the lock against
/// a second coordinator.
enum StartUp {
    static func launch(
        _ program: String, _ directory: RuntimeDirectory, hasGroup: Bool, _ configuration: Configuration
    ) -> WorkerHandle.Launch {
        WorkerHandle.Launch(
            program: program, runtimeDirectory: directory, group: hasGroup ? configuration.group : nil,
            logLevel: configuration.logLevel, renditions: configuration.renditions,
            ringMemory: configuration.ringMemory,
            idleCloseMilliseconds: configuration.idleCloseMilliseconds,
            silenceLimitMilliseconds: configuration.silenceLimitMilliseconds, maxZoom: configuration.maxZoom,
            connectionsPerUser: configuration.connectionsPerUser, connections: configuration.connections,
            faults: configuration.faults)
    }

    static func readConfiguration(_ path: String?) throws(CoordinatorStartError) -> Configuration {
        guard let path else { return Configuration() }
        do {
            let bytes = try File.readAtOnce(path, limit: 1 << 20)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw CoordinatorStartError(description: "\(path) is not valid UTF-8")
            }
            return try Configuration(toml: text)
        } catch let error as Configuration.ParseError {
            throw CoordinatorStartError(description: "\(path): \(error.description)")
        } catch let error as CoordinatorStartError {
            throw error
        } catch {
            throw CoordinatorStartError(description: "\(error)")
        }
    }

    static func makeDirectories(_ directory: RuntimeDirectory, group: UInt32?) throws(SystemError) {
        let mode: UInt32 = group == nil ? 0o700 : 0o750
        try PrivateDirectory.make(directory.path, mode: mode, group: group)
        try PrivateDirectory.make(directory.media, mode: mode, group: group)
        try PrivateDirectory.make(directory.internalDirectory, mode: 0o700)
        try PrivateDirectory.make(directory.accessDirectory, mode: 0o700)
        try PrivateDirectory.make(directory.livePhotos, mode: 0o700)
    }

    /// Where aliases, settings and recordings are kept; nil: nowhere.
    static func stateDirectory(
        _ options: CoordinatorOptions, _ configuration: Configuration, _ directory: RuntimeDirectory,
        _ environment: [String: String]
    ) -> StateDirectory? {
        let runtime = [
            options.runtimeDirectory, configuration.runtimeDirectory, environment["CAMERABUS_RUNTIME_DIR"],
        ]
        return StateDirectory.choose(
            flag: options.stateDirectory, configured: configuration.stateDirectory, runtime: directory,
            isRuntimeNamed: runtime.contains { !($0 ?? "").isEmpty }, environment: environment,
            uid: CurrentProcess.uid)
    }

    static func takeLock(_ directory: RuntimeDirectory) throws(CoordinatorStartError) -> LockFile {
        let giveUp = MonotonicClock.now() + 1_000_000_000
        while true {
            do {
                return try LockFile(directory.coordinatorLock, isSigned: true)
            } catch  where error.isWouldBlock {
                // A coordinator that was killed while it started a worker leaves a child that has the descriptor until
                // it is a worker.
                if case .somebody(nil) = LockFile.holder(of: directory.coordinatorLock),
                    MonotonicClock.now() < giveUp
                {
                    poll(nil, 0, 10)
                    continue
                }
                throw CoordinatorStartError(
                    description:
                        "another coordinator serves \(directory.path); stop it, or choose another place with "
                        + "--runtime-dir"
                )
            } catch {
                throw CoordinatorStartError(description: "\(error)")
            }
        }
    }

    static func workerProgram(_ options: CoordinatorOptions) throws(CoordinatorStartError) -> String {
        if let program = options.workerProgram { return program }
        return try beside("camerabus-worker", option: "--worker")
    }

    static func matcherProgram(_ options: CoordinatorOptions) throws(CoordinatorStartError) -> String {
        if let program = options.matcherProgram { return program }
        return try beside("camerabus-matcher", option: "--matcher")
    }

    static func recorderProgram(_ options: CoordinatorOptions) throws(CoordinatorStartError) -> String {
        if let program = options.recorderProgram { return program }
        return try beside("camerabus-recorder", option: "--recorder")
    }

    static func librarianProgram(_ options: CoordinatorOptions) throws(CoordinatorStartError) -> String {
        if let program = options.librarianProgram { return program }
        return try beside("camerabus-librarian", option: "--librarian")
    }

    private static func beside(_ program: String, option: String) throws(CoordinatorStartError) -> String {
        guard let own = CurrentProcess.executablePath, let slash = own.lastIndex(of: "/") else {
            throw CoordinatorStartError(description: "\(program) can't be found; name it with \(option)")
        }
        return "\(own[..<slash])/\(program)"
    }
}
