import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Runs the matchers, one process for each rig: starts them, watches them, and starts them again. Each reads its rig
/// from the bus.
final class MatcherSupervisor: SocketNameHolder {
    private let loop: Loop
    private let program: String
    private let workers: WorkerSupervisor
    private let logger: Logger
    /// The users who may see sets; nil: the list could not be written, and matchers keep the last one that they read.
    private var accessList: AccessList?
    private var matchers: [String: Matcher] = [:]
    /// Those of rigs that are gone, until they have ended.
    private var leaving: [Matcher] = []
    private var whenAllHaveEnded: (() -> Void)?
    private var hasRigs = false

    init(_ loop: Loop, program: String, _ workers: WorkerSupervisor, logger: Logger) {
        self.loop = loop
        self.program = program
        self.workers = workers
        self.logger = logger
        workers.matchers = self
    }

    /// Gives each of these rigs a matcher, and ends all other matchers.
    func setRigs(_ names: Set<String>) {
        guard whenAllHaveEnded == nil else { return }
        for (name, matcher) in matchers where !names.contains(name) {
            matchers[name] = nil
            leave(matcher, by: MonotonicClock.now() + Self.patience)
        }
        for name in names where matchers[name] == nil { add(name) }
        if !hasRigs { endLeftovers() }
        hasRigs = true
    }

    // A rig that could not be kept ends with its coordinator, which may have had no time to end its matcher.
    private func endLeftovers() {
        let directory = workers.launch.runtimeDirectory
        let ending = RuntimeDirectory.matcherLockEnding
        for lock in Directory.names(directory.internalDirectory) ?? [] where lock.hasSuffix(ending) {
            let name = String(lock.dropLast(ending.count))
            guard DeviceID.isValid(name), matchers[name] == nil, !hasProcess(name), workers[name] == nil,
                case .nobody = LockFile.holder(of: directory.deviceLock(name))
            else { continue }
            File.remove(directory.mediaSocket(name))
        }
    }

    /// Whether a matcher has that name, or is about to end under it. One that a coordinator before this one started for
    /// a rig that a device hides by now is ended.
    func hasProcess(_ name: String) -> Bool {
        if matchers[name]?.hasBegun ?? false || leaving.contains(where: { $0.name == name }) { return true }
        guard matchers[name] == nil, whenAllHaveEnded == nil else { return false }
        let matcher = make(name)
        guard matcher.inherit() else { return false }
        leave(matcher, by: MonotonicClock.now() + Self.patience)
        return true
    }

    /// A matcher has reported.
    func heard(by pid: Int32) {
        for matcher in matchers.values where matcher.pid == pid { matcher.heard() }
    }

    /// Starts the matchers whose names were taken.
    func startWaiting() { for matcher in matchers.values { startIfFree(matcher) } }

    /// Has the matchers let in whom this list has, and nobody else. They watch the file that it is in: so do those that
    /// a coordinator before this one started, whether or not their rigs are there still.
    func admit(_ list: AccessList) {
        guard list != accessList else { return }
        do throws(SystemError) {
            try File.replace(workers.launch.runtimeDirectory.accessListFile, with: list.json.serialized, mode: 0o600)
            accessList = list
        } catch {
            logger.error("the list of users who may see sets can't be written", metadata: ["error": "\(error)"])
            accessList = nil
            // Without the file they admit nobody.
            File.remove(workers.launch.runtimeDirectory.accessListFile)
        }
    }

    /// How long a matcher may take to end, nanoseconds.
    private static let patience: Int64 = 3_000_000_000

    private func add(_ name: String) {
        let matcher = make(name)
        matchers[name] = matcher
        startIfFree(matcher)
    }

    private func make(_ name: String) -> Matcher {
        var logger = logger
        logger[metadataKey: "rig"] = "\(name)"
        return Matcher(name, loop, directory: workers.launch.runtimeDirectory, logger: logger) { [program, workers] in
            try ChildProcess(
                program: program, arguments: ["--set=\(name)"], privateArguments: Self.arguments(workers.launch),
                keepsDescriptors: false)
        }
    }

    // Another process under this name has first to let go of it.
    private func startIfFree(_ matcher: Matcher) {
        guard !matcher.hasBegun, !leaving.contains(where: { $0.name == matcher.name }),
            !workers.hasProcess(matcher.name)
        else { return }
        matcher.start()
    }

    private static func arguments(_ launch: WorkerHandle.Launch) -> [String] {
        [
            "--runtime-dir=\(launch.runtimeDirectory.path)", "--log-level=\(launch.logLevel)",
            "--access-list=\(launch.runtimeDirectory.accessListFile)",
            "--renditions=\(launch.renditions)", "--connections-per-user=\(launch.connectionsPerUser)",
            "--connections=\(launch.connections)",
        ] + (launch.group.map { ["--group=\($0)"] } ?? [])
    }

    private func leave(_ matcher: Matcher, by deadline: Int64) {
        leaving.append(matcher)
        matcher.stop(by: deadline) { [weak self, weak matcher] in
            guard let self, let matcher else { return }
            leaving.removeAll { $0 === matcher }
            startWaiting()
            workers.startWaiting()
            tellIfAllHaveEnded()
        }
    }

    /// Ends all matchers; the body is called when the last one has ended, which the kill at the deadline makes sure.
    func stopAll(by deadline: Int64, then body: @escaping () -> Void) {
        whenAllHaveEnded = body
        let ending = matchers.values
        matchers = [:]
        for matcher in ending { leave(matcher, by: deadline) }
        tellIfAllHaveEnded()
    }

    private func tellIfAllHaveEnded() {
        guard leaving.isEmpty, let body = whenAllHaveEnded else { return }
        whenAllHaveEnded = {}
        body()
    }
}

/// A rig's matcher process.
private final class Matcher {
    let name: String
    private let loop: Loop
    private let directory: RuntimeDirectory
    private let logger: Logger
    private let spawn: () throws -> ChildProcess
    /// It has been started at least once.
    private(set) var hasBegun = false
    private var child: ChildProcess?
    /// One that a coordinator before this one started: it goes on, and learns from the bus what has changed.
    private var inherited: ProcessDescriptor?
    /// The worker of a device that had the name, from a coordinator before this one: it is ended when it says hello.
    private var predecessor: ProcessDescriptor?
    private var token: Loop.Token?
    private var policy = RestartPolicy()
    private var timer: Loop.Token?
    private var onEnd: (() -> Void)?
    /// A signal that can't be ignored ends a matcher whose loop hangs.
    private lazy var watcher = HangWatcher(loop) { [weak self] in
        self?.pid
    } onSlow: { [weak self] hold, seconds in
        self?.logger.warning(
            "the matcher has not reported for \(seconds) s: \(hold.rawValue)",
            metadata: [LogKeys.workerPID: "\(self?.pid ?? 0)"])
    } onHang: { [weak self] in
        guard let self, let process else { return }
        logger.error("the matcher is silent and is killed", metadata: [LogKeys.workerPID: "\(process.pid)"])
        process.send(9)
    }
    /// It has reported since it was started.
    private var hasReported = false

    /// When the owner of a lock file that names nobody is looked for again, milliseconds.
    private static let ownerInterval: Int64 = 200

    init(
        _ name: String, _ loop: Loop, directory: RuntimeDirectory, logger: Logger,
        spawn: @escaping () throws -> ChildProcess
    ) {
        self.name = name
        self.loop = loop
        self.directory = directory
        self.logger = logger
        self.spawn = spawn
    }

    private var process: ProcessDescriptor? { child?.process ?? inherited }
    var pid: Int32? { process?.pid }

    /// It has reported.
    func heard() {
        if hasReported { watcher.reported() } else if onEnd == nil { watcher.begin() }
        hasReported = true
    }

    /// Takes in the process that a coordinator before this one has started; false: there is none.
    func inherit() -> Bool {
        guard case .somebody(let owner?) = LockFile.holder(of: directory.matcherLock(name)) else { return false }
        take(owner)
        return true
    }

    private func take(_ owner: ProcessDescriptor) {
        hasBegun = true
        inherited = owner
        token = loop.watch(.descriptor(owner.rawValue)) { [weak self] in self?.ended() }
        policy.started(at: MonotonicClock.now())
        watcher.begin()
    }

    func start() {
        timer = nil
        guard onEnd == nil, child == nil, inherited == nil else { return }
        hasBegun = true
        switch LockFile.holder(of: directory.matcherLock(name)) {
        case .somebody(let owner?): take(owner)
        case .somebody(nil):
            timer = loop.schedule(afterMilliseconds: Self.ownerInterval) { [weak self] in self?.start() }
        case .nobody:
            if case .somebody(let owner) = LockFile.holder(of: directory.deviceLock(name)) { return wait(for: owner) }
            do {
                let child = try spawn()
                self.child = child
                token = loop.watch(.descriptor(child.process.rawValue)) { [weak self] in self?.ended() }
                policy.started(at: MonotonicClock.now())
                watcher.begin(isLoading: true)
            } catch {
                logger.error("the matcher can't be started", metadata: ["error": "\(error)"])
                startAgain()
            }
        }
    }

    private func wait(for owner: ProcessDescriptor?) {
        guard let owner else {
            timer = loop.schedule(afterMilliseconds: Self.ownerInterval) { [weak self] in self?.start() }
            return
        }
        predecessor = owner
        token = loop.watch(.descriptor(owner.rawValue)) { [weak self] in
            guard let self else { return }
            loop.cancel(token)
            (predecessor, token) = (nil, nil)
            start()
        }
    }

    private func ended() {
        if let child {
            guard let ending = child.reap() else { return }
            if onEnd == nil {
                logger.warning(
                    "the matcher has ended",
                    metadata: [LogKeys.workerPID: "\(child.process.pid)", "ending": "\(ending)"])
            }
        }
        loop.cancel(token)
        watcher.end()
        (child, inherited, token, hasReported) = (nil, nil, nil, false)
        if onEnd == nil { startAgain() } else { tellEnd() }
    }

    private func startAgain() {
        timer = loop.schedule(at: policy.restart(at: MonotonicClock.now())) { [weak self] in self?.start() }
    }

    /// Signals it to end, and kills it at the deadline (monotonic). The body is called when it has ended.
    func stop(by deadline: Int64, then body: @escaping () -> Void) {
        onEnd = body
        loop.cancel(timer)
        watcher.end()
        guard let process else { return tellEnd() }
        process.send(15)
        timer = loop.schedule(at: deadline) { process.send(9) }
    }

    private func tellEnd() {
        loop.cancel(timer)
        // One that was killed leaves its socket's file. Without a process here it is a worker's, if there is one.
        if hasBegun, predecessor == nil { File.remove(directory.mediaSocket(name)) }
        loop.cancel(token)
        (predecessor, token) = (nil, nil)
        let body = onEnd
        onEnd = {}
        body?()
    }
}
