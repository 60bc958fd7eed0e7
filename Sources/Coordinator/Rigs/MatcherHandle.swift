import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// A rig's socket, and the matcher process that serves it while somebody is connected.
///
/// The coordinator listens and accepts nobody. The first connection starts the matcher, which gets the listening socket
/// and accepts it. A matcher ends by itself when nobody has been connected for a while; then the coordinator waits for
/// the next connection.
final class MatcherHandle {
    /// Who may connect to the socket.
    struct Door {
        var mode: UInt32
        var group: UInt32?
    }

    let name: String
    private let loop: Loop
    private let directory: RuntimeDirectory
    private let door: Door
    private let logger: Logger
    private let spawn: (_ listening: Int32) throws -> ChildProcess
    /// The rig's name is taken: by its socket, or by a process.
    private(set) var hasBegun = false
    /// Where it listens; nil: not yet, as a process from before this coordinator has the name.
    private var socket: FileDescriptor?
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
    /// As it reported them last.
    private(set) var counters = JSONValue.null

    /// When the owner of a lock file that names nobody is looked for again, milliseconds.
    private static let ownerInterval: Int64 = 200

    init(
        _ name: String, _ loop: Loop, directory: RuntimeDirectory, _ door: Door, logger: Logger,
        spawn: @escaping (_ listening: Int32) throws -> ChildProcess
    ) {
        self.name = name
        self.loop = loop
        self.directory = directory
        self.door = door
        self.logger = logger
        self.spawn = spawn
    }

    private var process: ProcessDescriptor? { child?.process ?? inherited }
    var pid: Int32? { process?.pid }

    /// It has reported.
    func heard(_ counters: JSONValue) {
        self.counters = counters
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

    /// Has the rig served from now on.
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
            awaitConnection()
        }
    }

    private func awaitConnection() {
        do throws(SystemError) {
            if socket == nil {
                socket = try UnixSocket.listen(at: directory.mediaSocket(name), mode: door.mode, group: door.group)
            }
            guard let listening = socket?.rawValue else { return }
            token = loop.watch(.descriptor(listening)) { [weak self] in self?.serve(listening) }
        } catch {
            logger.error("the rig's socket can't be opened", metadata: ["error": "\(error)"])
            startAgain()
        }
    }

    // Somebody connects, and waits to be accepted.
    private func serve(_ listening: Int32) {
        loop.cancel(token)
        token = nil
        do {
            let child = try spawn(listening)
            self.child = child
            token = loop.watch(.descriptor(child.process.rawValue)) { [weak self] in self?.ended() }
            policy.started(at: MonotonicClock.now())
            watcher.begin(isLoading: true)
        } catch {
            logger.error("the matcher can't be started", metadata: ["error": "\(error)"])
            startAgain()
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
        var wasInOrder = false
        if let child {
            guard let ending = child.reap() else { return }
            wasInOrder = ending == .exited(0)
            if onEnd == nil, !wasInOrder {
                logger.warning(
                    "the matcher has ended",
                    metadata: [LogKeys.workerPID: "\(child.process.pid)", "ending": "\(ending)"])
            }
        }
        loop.cancel(token)
        watcher.end()
        (child, inherited, token, hasReported) = (nil, nil, nil, false)
        if onEnd != nil { tellEnd() } else if wasInOrder { start() } else { startAgain() }
    }

    private func startAgain() {
        timer = loop.schedule(at: policy.restart(at: MonotonicClock.now())) { [weak self] in self?.start() }
    }

    /// Signals the matcher to end, and kills it at the deadline (monotonic). The body is called when nobody has the
    /// name any more: at once without a matcher.
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
        // While a device's worker is waited for, the file is that worker's.
        if hasBegun, predecessor == nil { File.remove(directory.mediaSocket(name)) }
        loop.cancel(token)
        (predecessor, token) = (nil, nil)
        socket = nil
        let body = onEnd
        onEnd = {}
        body?()
    }
}
