import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// The sockets of the rigs, and the matchers: one process for each rig that somebody is connected to
/// (``MatcherHandle``). Each reads its rig from the bus.
final class MatcherSupervisor: SocketNameHolder {
    private let loop: Loop
    private let program: String
    private let door: MatcherHandle.Door
    private let workers: WorkerSupervisor
    private let logger: Logger
    /// The users who may see sets; nil: the list could not be written, and matchers keep the last one that they read.
    private var accessList: AccessList?
    private var matchers: [String: MatcherHandle] = [:]
    /// Those of rigs that are gone, until they have ended.
    private var leaving: [MatcherHandle] = []
    private var whenAllHaveEnded: (() -> Void)?
    private var hasRigs = false

    /// - Parameter door: who may connect to the rigs' sockets.
    init(
        _ loop: Loop, program: String, _ door: MatcherHandle.Door, _ workers: WorkerSupervisor, logger: Logger
    ) {
        self.loop = loop
        self.program = program
        self.door = door
        self.workers = workers
        self.logger = logger
        workers.matchers = self
    }

    /// Serves these rigs, and ends all other matchers.
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

    // A rig that could not be kept ends with its coordinator, which may have had no time to remove its socket and to
    // end its matcher.
    private func endLeftovers() {
        let directory = workers.launch.runtimeDirectory
        let ending = RuntimeDirectory.mediaSocketEnding
        for file in Directory.names(directory.media) ?? [] where file.hasSuffix(ending) {
            let name = String(file.dropLast(ending.count))
            guard DeviceID.isValid(name), matchers[name] == nil, !hasProcess(name), workers[name] == nil,
                case .nobody = LockFile.holder(of: directory.deviceLock(name))
            else { continue }
            File.remove(directory.mediaSocket(name))
        }
    }

    /// Whether a rig or a matcher has that name, or is about to let go of it. A matcher that a coordinator before this
    /// one started for a rig that a device hides by now is ended.
    func hasProcess(_ name: String) -> Bool {
        if matchers[name]?.hasBegun ?? false || leaving.contains(where: { $0.name == name }) { return true }
        guard matchers[name] == nil, whenAllHaveEnded == nil else { return false }
        let matcher = make(name)
        guard matcher.inherit() else { return false }
        leave(matcher, by: MonotonicClock.now() + Self.patience)
        return true
    }

    /// A matcher has reported.
    func heard(by pid: Int32, _ counters: JSONValue) {
        for matcher in matchers.values where matcher.pid == pid { matcher.heard(counters) }
    }

    /// Of the matchers that run, by rig.
    var counters: [String: JSONValue] { matchers.compactMapValues { $0.pid == nil ? nil : $0.counters } }

    /// Serves the rigs whose names were taken.
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

    private func make(_ name: String) -> MatcherHandle {
        var logger = logger
        logger[metadataKey: "rig"] = "\(name)"
        return MatcherHandle(name, loop, directory: workers.launch.runtimeDirectory, door, logger: logger) {
            [program, workers] listening in
            try ChildProcess(
                program: program, arguments: ["--set=\(name)"], privateArguments: Self.arguments(workers.launch),
                standardInput: listening, keepsDescriptors: false)
        }
    }

    // Another process under this name has first to let go of it.
    private func startIfFree(_ matcher: MatcherHandle) {
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

    private func leave(_ matcher: MatcherHandle, by deadline: Int64) {
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
