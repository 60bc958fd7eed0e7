import BusServer
import CaptureCore
import LinuxIO
import Logging
import ZeroMQ

/// A device's worker as a process: started, or found where another coordinator has started it; watched, started again
/// when it has ended, and killed when it is silent.
final class WorkerProcess {
    enum State: String {
        case starting, running, restarting, stopped
    }

    private let loop: Loop
    private let logger: Logger
    private let program: String
    /// Held by the device's worker for as long as it lives.
    private let lockPath: String
    private let device: String
    /// Of a new process, beside its device, and not for everybody's eyes.
    private let arguments: () -> [String]
    /// Told when the process has ended that said hello, before it is started again.
    private let onEnd: () -> Void
    /// Told of every change of what is told here.
    private let onChange: () -> Void

    private(set) var state = State.starting
    private(set) var restarts = 0
    /// It has been started at least once.
    private(set) var hasBegun = false
    private var child: ChildProcess?
    private var childToken: Loop.Token?
    /// The process that said hello: our child, or one that outlived an earlier coordinator.
    private var process: ProcessDescriptor?
    private var processToken: Loop.Token?
    /// A process that a coordinator before this one started: it has the device's lock file, and has said nothing yet.
    private var leftover: ProcessDescriptor?
    private var leftoverToken: Loop.Token?
    private var policy = RestartPolicy()
    private var restartTimer: Loop.Token?
    /// A signal that can't be ignored ends a worker whose loop hangs.
    private lazy var watcher = HangWatcher(loop) { [weak self] in
        self?.all.first?.pid
    } onSlow: { [weak self] hold, seconds in
        self?.logger.warning(
            "worker has not reported for \(seconds) s: \(hold.rawValue)",
            metadata: [LogKeys.workerPID: "\(self?.all.first?.pid ?? 0)"])
    } onHang: { [weak self] in
        guard let self, let watched = all.first else { return }
        logger.error("worker is silent and is killed", metadata: [LogKeys.workerPID: "\(watched.pid)"])
        watched.send(9)
    }

    /// When the owner of a lock file that names nobody is looked for again, milliseconds.
    private static let ownerInterval: Int64 = 200
    /// The exit status of a worker that finds the device's lock file taken (`EX_TEMPFAIL`).
    private static let deviceTaken: Int32 = 75

    init(
        _ loop: Loop, program: String, device: String, lockPath: String, logger: Logger,
        arguments: @escaping () -> [String],
        onEnd: @escaping () -> Void, onChange: @escaping () -> Void
    ) {
        self.loop = loop
        self.program = program
        self.device = device
        self.lockPath = lockPath
        self.logger = logger
        self.arguments = arguments
        self.onEnd = onEnd
        self.onChange = onChange
    }

    var pid: Int32? { process?.pid ?? child?.process.pid }
    var isGone: Bool { all.isEmpty }

    private var all: [ProcessDescriptor] { [process, child?.process, leftover].compactMap(\.self) }

    // MARK: The start

    func start() {
        restartTimer = nil
        hasBegun = true
        guard state != .stopped, isGone else { return }
        switch LockFile.holder(of: lockPath) {
        case .nobody: spawn()
        case .somebody(let owner): expect(owner)
        }
        onChange()
    }

    // The worker of a coordinator before this one says hello in a moment, or ends, or hangs and is killed for its
    // silence. One of ours beside it could only end at once.
    private func expect(_ owner: ProcessDescriptor?) {
        guard let owner else {
            restartTimer = loop.schedule(afterMilliseconds: Self.ownerInterval) { [weak self] in self?.start() }
            return
        }
        logger.debug("a worker is expected", metadata: [LogKeys.workerPID: "\(owner.pid)"])
        leftover = owner
        leftoverToken = loop.watch(.descriptor(owner.rawValue)) { [weak self] in
            guard let self else { return }
            forgetLeftover()
            if state == .stopped { onChange() } else { start() }
        }
        watcher.begin()
    }

    private func forgetLeftover() {
        loop.cancel(leftoverToken)
        (leftover, leftoverToken) = (nil, nil)
    }

    private func spawn() {
        do {
            let child = try ChildProcess(
                program: program, arguments: ["--device=\(device)"], privateArguments: arguments(),
                keepsDescriptors: false)
            self.child = child
            childToken = loop.watch(.descriptor(child.process.rawValue)) { [weak self] in self?.childEnded() }
            logger.debug("worker started", metadata: [LogKeys.workerPID: "\(child.process.pid)"])
            watcher.begin(isLoading: true)
        } catch {
            logger.error("worker can't be started", metadata: ["error": "\(error)"])
            startAgain()
        }
    }

    private func startAgain() {
        state = .restarting
        restarts += 1
        let now = MonotonicClock.now()
        restartTimer = loop.schedule(at: policy.restart(at: now)) { [weak self] in self?.start() }
    }

    // MARK: The end

    private func childEnded() {
        guard let child, let ending = child.reap() else { return }
        loop.cancel(childToken)
        childToken = nil
        self.child = nil
        let isKnown = process.map { $0.pid != child.process.pid } ?? false
        if ending == .exited(Self.deviceTaken), state != .stopped {
            // Another one was quicker: the device has its worker, and nothing was lost.
            logger.debug("the device has another worker", metadata: [LogKeys.workerPID: "\(child.process.pid)"])
            if !isKnown {
                loop.cancel(restartTimer)
                restartTimer = loop.schedule(afterMilliseconds: Self.ownerInterval) { [weak self] in self?.start() }
            }
            return onChange()
        }
        if state != .stopped {
            logger.warning(
                "worker ended", metadata: [LogKeys.workerPID: "\(child.process.pid)", "ending": "\(ending)"])
        }
        // Another process serves the device: this child found it taken, and nothing was lost.
        if !isKnown { ended() }
    }

    private func ended() {
        loop.cancel(processToken)
        processToken = nil
        process = nil
        watcher.end()
        // The next one is started when this one has ended, too.
        if !isGone { watcher.begin(isLoading: true) }
        onEnd()
        if state != .stopped { startAgain() }
        onChange()
    }

    /// Ends it in order: it is told to, and killed at the deadline (monotonic).
    func stop(by deadline: Int64) {
        state = .stopped
        loop.cancel(restartTimer)
        watcher.end()
        for process in all { process.send(15) }
        loop.schedule(at: deadline) { [weak self] in self?.kill() }
    }

    private func kill() { for process in all { process.send(9) } }

    // MARK: What it says

    /// A process that holds the device's lock file says hello: it is the worker, whoever started it.
    ///
    /// - Returns: false: it has ended since, and whoever is to start the next one does.
    func greeted(by pid: Int32) -> Bool {
        var greeting: ProcessDescriptor?
        if process?.pid != pid {
            guard let opened = try? ProcessDescriptor(pid: pid) else { return false }
            greeting = opened
        }
        forgetLeftover()
        loop.cancel(restartTimer)
        restartTimer = nil
        if let greeting {
            loop.cancel(processToken)
            process = greeting
            // Our own child is watched, and reaped, as such.
            if child?.process.pid != pid {
                processToken = loop.watch(.descriptor(greeting.rawValue)) { [weak self] in self?.ended() }
            }
        }
        policy.started(at: MonotonicClock.now())
        if state != .stopped { state = .running }
        watcher.begin()
        return true
    }

    /// It has said something.
    func heard() {
        if state == .running { watcher.reported() }
    }
}
