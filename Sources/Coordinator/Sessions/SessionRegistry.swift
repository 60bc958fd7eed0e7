import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Acts when a session has changed or is gone.
protocol SessionObserver: AnyObject {
    func sessionChanged(_ id: String)
}

/// The photos of sessions.
protocol SessionPhotoSource: AnyObject {
    /// Whether a camera has another format than its own for the moment of a photo. Decisions about it wait until that
    /// is over.
    func isBorrowed(uniqueID: String) -> Bool
    /// What a session's photo output can do now.
    func members(of session: CaptureSession) -> [String: JSONValue]
}

/// The current sessions: their owners, inputs and outputs, and whether they run. Publishes `state/session/<id>/`.
///
/// ``CaptureSession`` decides what a session may be, ``Arbiter`` who gets a device. `SessionRegistry+Devices.swift`
/// sets the devices.
final class SessionRegistry: ConfigurationObserver {
    let loop: Loop
    let events: EventSocket
    let store: RestartStore
    let locks: LockService
    let workers: WorkerSupervisor
    let logger: Logger
    weak var observer: (any SessionObserver)?
    weak var photos: (any SessionPhotoSource)?
    weak var movies: (any AutomaticControlUser)?
    let pressures: PressureRegistry
    let access: SessionAccess
    let configurations: ConfigurationService
    private let configuration: LiveConfiguration
    private(set) lazy var stabilization = AutomaticControlSwitch(
        .stabilization, loop, deviceStore, workers, self, logger: logger)
    private(set) lazy var smoothFocus = AutomaticControlSwitch(
        .smoothFocus, loop, deviceStore, workers, self, logger: logger)
    private let deviceStore: DeviceStore
    private let holders: HolderWatcher
    private(set) var entries: [String: Entry] = [:]
    /// Made by a coordinator before this one: whoever asked may not know of it.
    private var inherited: Set<String> = []
    var stages: [String: SessionStage] = [:]
    /// The last order to each worker.
    var toldRunning: [String: Told] = [:]

    struct Told: Hashable {
        var isRunning: Bool
        /// Milliseconds for which the device's pictures are held.
        var preRoll: Int
        /// A client watches its scene.
        var watchesScene: Bool
    }
    /// By device, while it streams.
    var loads: [String: Load] = [:]
    /// By device, until it is looked at whether that has stayed so.
    var freed: [String: Freed] = [:]
    var freeingTimer: Loop.Token?
    /// The devices are known.
    var isSettled = false
    private var saveTimer: Loop.Token?
    private(set) var hasEnded = false

    static let maximumSessions = 256
    static let maximumSessionsOfUser = 64
    private static let saveInterval: Int64 = 1000

    init(
        _ loop: Loop, events: EventSocket, store: RestartStore, locks: LockService, workers: WorkerSupervisor,
        holders: HolderWatcher, deviceStore: DeviceStore, _ configuration: LiveConfiguration,
        _ pressures: PressureRegistry,
        _ access: SessionAccess, _ configurations: ConfigurationService, logger: Logger
    ) {
        self.loop = loop
        self.events = events
        self.store = store
        self.locks = locks
        self.workers = workers
        self.logger = logger
        self.configuration = configuration
        self.pressures = pressures
        self.access = access
        self.configurations = configurations
        self.holders = holders
        self.deviceStore = deviceStore
        inherit()
        configurations.observer = self
    }

    /// How a camera is attached to USB; nil: it is not, or that is unknown.
    func link(_ device: ManagedDevice) -> USBLink? { configuration.current.link(of: device) }

    // What the coordinator before this one left. What interrupts a session is found out anew.
    private func inherit() {
        let (kept, ended) = store.found.survivingSessions(boot: store.bootID) { [holders] owner in
            owner.startTime.map { holders.retain(pid: owner.pid, startTime: $0) } ?? false
        }
        for session in kept {
            let entry = Entry(session)
            entries[session.id] = entry
            inherited.insert(session.id)
            publish(session.id)
            inheritWaiting(entry)
        }
        for session in ended {
            var run = session.run
            for event in run.stop() { events.event("event/session/\(session.id)", event.name, event.members) }
        }
        if !ended.isEmpty { save() }
        if !kept.isEmpty || !ended.isEmpty {
            logger.notice("sessions are taken over", metadata: ["kept": "\(kept.count)", "ended": "\(ended.count)"])
        }
    }

    /// Processes with sessions from a coordinator before this one: they have to connect again.
    var inheritedOwners: [LockHolder] {
        Array(Set(entries.values.map(\.session).filter { !$0.isDetached }.map(\.owner)))
    }

    /// The session that a coordinator before this one made for the same request.
    ///
    /// - Parameter request: its digest; nil: it has no key.
    func made(for request: String?, by holder: LockHolder) -> CaptureSession? {
        guard let request else { return nil }
        return inherited.compactMap { entries[$0]?.session }.first { $0.request == request && $0.isOf(holder) }
    }

    /// In the order in which they were made.
    var sessions: [CaptureSession] {
        entries.values.map(\.session).sorted { ($0.since, $0.id) < ($1.since, $1.id) }
    }

    func entry(_ id: String) throws(BusError) -> Entry {
        guard let entry = entries[id] else {
            throw BusError(
                .sessionNotFound, "There is no session '\(id)', or it has ended; session.list lists the sessions.",
                ["session": .string(id)])
        }
        return entry
    }

    // MARK: Requests

    /// Adds a session.
    func add(_ session: CaptureSession) throws(BusError) {
        let ofUser = entries.values.count { $0.session.owner.uid == session.owner.uid }
        guard entries.count < Self.maximumSessions, ofUser < Self.maximumSessionsOfUser else {
            let maximum = ofUser < Self.maximumSessionsOfUser ? Self.maximumSessions : Self.maximumSessionsOfUser
            throw BusError(
                .limitExceeded, "There are too many sessions; delete one that is not needed.",
                ["limit": "sessions", "maximum": JSONValue(maximum)])
        }
        if !session.isDetached {
            let owner = session.owner
            guard owner.pid > 0, let startTime = owner.startTime else {
                throw .invalidParams(
                    "detached", "must be true for a process that the bus can't see (pid 0 in bus.hello)")
            }
            guard holders.retain(pid: owner.pid, startTime: startTime) else {
                throw BusError(.cancelled, "The process that asked for the session has ended.")
            }
        }
        entries[session.id] = Entry(session)
        guard save() else {
            entries[session.id] = nil
            release(session)
            throw Self.notWritten
        }
        logger.info("session made", metadata: ["session": "\(session.id)", "owner": "\(session.owner.name)"])
        publish(session.id)
    }

    /// Changes a session, on the disk when this returns. Changes of its devices are under way then.
    ///
    /// - Parameters:
    ///   - isChecked: it is refused, if it runs, where its cameras would find no room on USB.
    ///   - isMade: what it follows is done already: it stands also where it can only be written later.
    /// - Returns: whether it is on the disk.
    @discardableResult
    func change(
        _ id: String, isChecked: Bool = false, isMade: Bool = false,
        _ body: (inout CaptureSession) throws(BusError) -> Void
    ) throws(BusError) -> Bool {
        let entry = try entry(id)
        let before = entry.session
        var session = before
        try body(&session)
        guard session != before else { return true }
        // Whatever has come to it meanwhile: a session without inputs has nothing that anybody may not have.
        if session.run.isActive, access.refusal(session) != nil { _ = session.run.waitForAuthorization() }
        if isChecked, before.run.isActive, session.run.isActive { try checkBandwidth(session) }
        entry.session = session
        let isKept = save()
        guard isKept || isMade else {
            entry.session = before
            throw Self.notWritten
        }
        let devices = Set(before.inputs.map(\.device)).union(entry.session.inputs.map(\.device))
        entry.places = entry.places.filter { entry.session.input($0.key) != nil }
        entry.renditions = entry.renditions.filter { entry.session.input($0.key) != nil }
        entry.soundFormats = entry.soundFormats.filter { entry.session.input($0.key) != nil }
        update(entry, [])
        for device in devices.sorted() { review(device) }
        if entry.session.run.state == .waitingForAuthorization {
            if let error = access.refusal(entry.session) { refuse(entry, error) } else { go(entry) }
        }
        settle(entry)
        return isKept
    }

    /// Starts it. Whether it runs is published when it is known. A session that was started before does not change.
    ///
    /// - Parameter lockID: the lock under which it may set its devices from now on; nil: as before.
    func start(_ id: String, lockID: String?) throws(BusError) {
        let entry = try entry(id)
        entry.error = nil
        try change(id) { session in
            session.lockID = lockID ?? session.lockID
            _ = session.run.start()
        }
        if entry.session.inputs.isEmpty { update(entry, entry.session.run.serve()) }
    }

    /// Stops it, also if that can't be written now.
    ///
    /// - Returns: whether that is on the disk.
    func stop(_ id: String) throws(BusError) -> Bool {
        let entry = try entry(id)
        entry.error = nil
        return halt(entry)
    }

    /// Stops it, whether that can be written now or later.
    ///
    /// - Returns: whether it is on the disk.
    @discardableResult
    func halt(_ entry: Entry, also events: [SessionRun.Event] = []) -> Bool {
        let told = entry.session.run.stop()
        entry.places = [:]
        entry.renditions = [:]
        entry.soundFormats = [:]
        let isKept = save()
        endTrial(entry, BusError(.cancelled, "The session was stopped while its camera was being switched."))
        update(entry, told + events)
        reviewAll(entry)
        settle(entry)
        return isKept
    }

    /// Stops it and forgets it, also if that can't be written now.
    ///
    /// - Returns: whether that is on the disk.
    func delete(_ id: String) throws(BusError) -> Bool {
        let entry = try entry(id)
        end(entry)
        // What can't be written now is tried again; the session is over all the same.
        return save()
    }

    private func end(_ entry: Entry) {
        let session = entry.session
        update(entry, entry.session.run.stop())
        endTrial(entry, BusError(.cancelled, "The session was deleted while its camera was being switched."))
        entries[session.id] = nil
        inherited.remove(session.id)
        release(session)
        for (timer, body) in entry.waiting {
            loop.cancel(timer)
            body()
        }
        entry.waiting = []
        events.set("state/session/\(session.id)", nil)
        observer?.sessionChanged(session.id)
        logger.info("session ended", metadata: ["session": "\(session.id)"])
        for input in session.inputs { review(input.device) }
    }

    private func release(_ session: CaptureSession) {
        guard !session.isDetached, let startTime = session.owner.startTime else { return }
        holders.release(pid: session.owner.pid, startTime: startTime)
    }

    /// Decides all of its devices anew.
    func reviewAll(_ entry: Entry) {
        for input in entry.session.inputs { review(input.device) }
    }

    // MARK: Changes

    /// A process has ended, or has been without a connection for too long.
    func holderEnded(pid: Int32, startTime: UInt64?, uid: UInt32? = nil) {
        let ended = entries.values.filter { entry in
            let session = entry.session
            return !session.isDetached && session.owner.pid == pid
                && (startTime == nil || session.owner.startTime == startTime)
                && (uid == nil || session.owner.uid == uid)
        }
        guard !ended.isEmpty else { return }
        for entry in ended.sorted(by: { $0.session.id < $1.session.id }) { end(entry) }
        save()
    }

    /// Gives devices other names.
    ///
    /// - Returns: false: that could not be written yet.
    func rename(_ names: [(device: String, name: String)]) -> Bool {
        let names = Dictionary(names.map { ($0.device, $0.name) }) { first, _ in first }
        var isChanged = false
        for (id, entry) in entries {
            let isTried = entry.trial?.rename(names) ?? false
            guard entry.session.rename(names) || isTried else { continue }
            isChanged = true
            entry.places = Dictionary(entry.places.map { (names[$0.key] ?? $0.key, $0.value) }) { first, _ in first }
            entry.renditions = Dictionary(entry.renditions.map { (names[$0.key] ?? $0.key, $0.value) }) { $1 }
            entry.soundFormats = Dictionary(entry.soundFormats.map { (names[$0.key] ?? $0.key, $0.value) }) { $1 }
            publish(id)
        }
        for device in names.keys {
            loop.cancel(stages.removeValue(forKey: device)?.retry)
            toldRunning[device] = nil
        }
        return !isChanged || save()
    }

    /// A client has set a device's format under its lock: its own sessions have that one from now on.
    ///
    /// - Returns: whether that is on the disk.
    func configured(_ device: String, _ change: ConfigurationChange, by holder: LockHolder) -> Bool {
        var isKept = true
        for entry in entries.values where entry.session.input(device) != nil {
            let owner = entry.session.owner
            guard holder.pid > 0, owner.pid == holder.pid, owner.uid == holder.uid, owner.startTime == holder.startTime,
                let format = change.activeFormat
            else { continue }
            let action = SessionAction.setInput(
                device: device, activeFormat: .set(format), frameRate: change.frameRate.map { .set($0) } ?? .reset)
            let surroundings = CaptureSession.Surroundings(known: []) { _ in nil }
            do throws(BusError) {
                let isWritten = try self.change(entry.session.id, isMade: true) { session throws(BusError) in
                    try session.configure([(action, "")], in: surroundings)
                }
                isKept = isKept && isWritten
            } catch {
                logger.warning(
                    "a session could not take the format of its camera",
                    metadata: [
                        "session": "\(entry.session.id)", LogKeys.deviceID: "\(device)", "error": "\(error.message)",
                    ])
            }
        }
        return isKept
    }

    /// Ends all: the bus is going down.
    func shutDown() {
        hasEnded = true
        for entry in entries.values.sorted(by: { $0.session.id < $1.session.id }) { end(entry) }
        save()
    }

    // MARK: State

    /// Publishes the session, then its events.
    func update(_ entry: Entry, _ happened: [SessionRun.Event]) {
        let id = entry.session.id
        publish(id)
        for event in happened {
            events.event("event/session/\(id)", event.name, event.members)
            logger.info("session \(event.name)", metadata: ["session": "\(id)"])
        }
    }

    func publish(_ id: String) {
        guard let entry = entries[id] else { return }
        events.set("state/session/\(id)", value(entry))
        observer?.sessionChanged(id)
    }

    /// Writes the sessions; what can't be written is tried again, as what has ended must not come back.
    @discardableResult
    func save() -> Bool {
        let isSaved = store.save(sessions)
        if !isSaved, saveTimer == nil {
            saveTimer = loop.schedule(afterMilliseconds: Self.saveInterval) { [weak self] in
                self?.saveTimer = nil
                self?.save()
            }
        }
        return isSaved
    }

    private static let notWritten = BusError(
        .internalError, "The session could not be written to the disk; see the coordinator's log.")
}
