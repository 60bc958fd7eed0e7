import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// The devices that clients make of their own frames. Each ends with its process; all outlive the coordinator.
final class SourceRegistry {
    /// By `uniqueID`.
    private(set) var sources: [String: ClientSource] = [:]

    private let loop: Loop
    private let holders: HolderWatcher
    private let path: String
    private let logger: Logger
    private var saveTimer: Loop.Token?
    private var hasFailed = false

    /// Called when sources have gone with their process.
    var onChange: (() -> Void)?

    static let maximumPerUser = 16
    static let maximum = 64
    private static let saveInterval: Int64 = 1000

    /// Takes over the sources of the coordinator before this one, as far as their processes live.
    ///
    /// - Parameter path: of the file that they are kept in.
    init(_ loop: Loop, _ holders: HolderWatcher, path: String, logger: Logger) {
        self.loop = loop
        self.path = path
        self.logger = logger
        self.holders = holders
        holders.whenEnded { [weak self] pid, startTime in self?.ended(pid: pid, startTime: startTime) }
        let kept = Self.kept(path, logger)
        for source in kept.compactMap(ClientSource.init(json:)) where watch(source) {
            sources[source.uniqueID] = source
        }
        if kept.count != sources.count { save() }
    }

    private static func kept(_ path: String, _ logger: Logger) -> [JSONValue] {
        do {
            switch try KeptFile.read(path, limit: 1 << 20, isOwn: true, { $0["sources"]?.array ?? [] }) {
            case .nothing: return []
            case .content(let sources): return sources
            case .damaged(_, let why): tell(why)
            }
        } catch {
            tell("\(error)")
        }
        return []

        func tell(_ why: String) {
            logger.error(
                "the list of clients' sources can't be read, and is dropped", metadata: ["error": "\(why)"])
        }
    }

    /// Processes with sources from a coordinator before this one: they have to connect again.
    var inheritedOwners: [LockHolder] { Array(Set(sources.values.map(\.owner))) }

    /// Removes the sources of users without permission.
    func deleteUnauthorized(_ isUnauthorized: (LockHolder) -> Bool) {
        let gone = sources.filter { isUnauthorized($0.value.owner) }.map(\.key)
        guard !gone.isEmpty else { return }
        for uniqueID in gone { remove(uniqueID) }
        onChange?()
    }

    private func watch(_ source: ClientSource) -> Bool {
        guard let startTime = source.owner.startTime, source.owner.pid != 0 else { return false }
        return holders.retain(pid: source.owner.pid, startTime: startTime)
    }

    /// Adds a source, on the disk when this returns. A process that has the same source already gets that one: its
    /// reply may have been lost.
    ///
    /// - Returns: the one that there is now.
    func add(_ source: ClientSource) throws(BusError) -> ClientSource {
        if let other = sources[source.uniqueID] {
            if other.isSame(as: source) { return other }
            throw BusError(
                .deviceBusy, "\(other.owner.name) (pid \(other.owner.pid)) has a source called '\(other.name)'.",
                ["holder": other.owner.json, "queue": 0])
        }
        let own = sources.values.count { $0.owner.uid == source.owner.uid }
        guard own < Self.maximumPerUser, sources.count < Self.maximum else {
            throw BusError(
                .limitExceeded, "There are too many sources; delete some with source.delete.",
                [
                    "limit": own < Self.maximumPerUser ? "sources" : "sourcesPerUser",
                    "maximum": JSONValue(own < Self.maximumPerUser ? Self.maximum : Self.maximumPerUser),
                ])
        }
        guard watch(source) else {
            throw BusError(
                .unauthorized,
                "The bus can't see this process (pid 0 in bus.hello), so it could not remove the source when the "
                    + "process ends; run the program outside of containers.",
                ["status": "denied", "needed": "a process in the bus's own namespace"])
        }
        sources[source.uniqueID] = source
        guard save() else {
            forget(source)
            throw BusError(
                .internalError, "The source could not be written to the disk; see the coordinator's log.")
        }
        return source
    }

    /// Removes a source, also if that can't be written now.
    ///
    /// - Returns: whether that is on the disk.
    @discardableResult
    func remove(_ uniqueID: String) -> Bool {
        guard let source = sources[uniqueID] else { return true }
        forget(source)
        return save()
    }

    private func forget(_ source: ClientSource) {
        sources[source.uniqueID] = nil
        if let startTime = source.owner.startTime { holders.release(pid: source.owner.pid, startTime: startTime) }
    }

    /// The process has ended, or has let go of the bus.
    func ended(pid: Int32, startTime: UInt64) {
        let gone = sources.filter { $0.value.owner.pid == pid && $0.value.owner.startTime == startTime }.map(\.key)
        guard !gone.isEmpty else { return }
        for uniqueID in gone { remove(uniqueID) }
        onChange?()
    }

    /// Writes the sources; what can't be written is tried again, as what has gone must not come back.
    @discardableResult
    private func save() -> Bool {
        loop.cancel(saveTimer)
        saveTimer = nil
        let json: JSONValue = [
            "sources": .array(sources.keys.sorted().compactMap { sources[$0]?.json })
        ]
        do {
            try KeptFile.write(json, to: path)
            hasFailed = false
            return true
        } catch {
            if !hasFailed { logger.error("clients' sources can't be written", metadata: ["error": "\(error)"]) }
            hasFailed = true
            saveTimer = loop.schedule(afterMilliseconds: Self.saveInterval) { [weak self] in self?.save() }
            return false
        }
    }
}

extension ClientSource {
    /// The same process's, of the same frames: what it calls itself is each connection's.
    fileprivate func isSame(as other: Self) -> Bool {
        var other = other
        other.owner.name = owner.name
        return self == other
    }
}
