import BusProtocol
import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// The users that a keys or tokens file allows. It also stores them on disk: so a user that is removed while no gateway
/// or no bus runs is still reported as revoked, by the next gateway if necessary.
final class RemoteUserStore {
    /// What the file says.
    struct Reading {
        var remoteUsers: [RemoteUserList.Entry] = []
        /// False: some of it, or all, could not be read, and who isn't among the guests may be in that.
        var isWhole = false
    }

    /// Tells the bus that what this name has ends; calls the body when the bus has answered that.
    typealias Tell = (_ name: String, _ told: @escaping () -> Void) -> Void

    /// Tells the bus as what this one is let in now; calls the body when the bus has answered that.
    typealias Change = (_ remoteUser: RemoteUserList.Entry, _ told: @escaping () -> Void) -> Void

    /// Who was taken out, and of whom the bus has not been told to the end.
    private struct Untold {
        let remoteUser: RemoteUserList.Entry
        /// Of the last time that it is told.
        var number: UInt64
    }

    private let loop: Loop
    private let kind: String
    private let keptPath: String?
    private let source: () -> Reading
    private let tell: Tell
    private let change: Change?
    private let afterthought: Int64
    private let logger: Logger
    private var token: Loop.Token?
    /// By key, as is ``known``.
    private var present: [String: RemoteUserList.Entry] = [:]
    /// Who was let in when the file was last read whole, or has been since.
    private var known: [String: RemoteUserList.Entry] = [:]
    private var untold: [String: Untold] = [:]
    private var lastNumber: UInt64 = 0
    private var keptText: String?
    /// Called with those whose connections end.
    var onCut: ((_ remoteUsers: [RemoteUserList.Entry]) -> Void)?

    private static let maximumBytes = 4 << 20
    /// Names that may be untold.
    private static let maximumUntold = 4096

    /// Lets nobody in yet; ``read()`` does.
    ///
    /// - Parameters:
    ///   - kind: what they show, `key` or `token`.
    ///   - path: of the file, which is read again whenever it changes; nil: there is none.
    ///   - keptPath: the gateway's own file of whom it let in last; nil: there is no place for it.
    ///   - afterthought: milliseconds after which a revocation is reported once more: earlier messages to the bus have
    ///     arrived by then.
    ///   - source: reads the file, and logs what is wrong with it.
    ///   - change: instead of that, for who has been let in again by then; nil: nothing is told of it.
    init(
        _ loop: Loop, of kind: String, path: String?, keptPath: String?, afterthought: Int64 = 1000, logger: Logger,
        source: @escaping () -> Reading, tell: @escaping Tell, change: Change? = nil
    ) {
        self.loop = loop
        self.kind = kind
        self.keptPath = keptPath
        self.source = source
        self.tell = tell
        self.change = change
        self.afterthought = afterthought
        self.logger = logger
        readKept()
        guard let path else { return }
        if keptPath == nil {
            logger.notice(
                """
                the gateway can't store who was allowed, so a user revoked while no gateway runs keeps recordings and \
                locks; set $STATE_DIRECTORY to a folder of this gateway
                """
            )
        }
        do throws(SystemError) {
            let watch = try FileWatch(path)
            token = loop.watch(.descriptor(watch.rawValue)) { [weak self] in
                if watch.hasChanged() { self?.read() }
            }
        } catch {
            logger.error(
                "can't watch the \(kind)s file; send SIGHUP after a change",
                metadata: ["error": "\(error)"])
        }
    }

    deinit { loop.cancel(token) }

    /// The user with this key; nil: none is allowed.
    subscript(key: String) -> RemoteUserList.Entry? { present[key] }

    /// The owner of this key when the file was last valid.
    func owner(of key: String) -> RemoteUserList.Entry? { known[key] }

    /// How many are let in.
    var count: Int { present.count }

    /// The key of that name, when the file was last read whole; nil: nobody of that name is let in.
    func key(of name: String) -> String? { remoteUser { $0.name == name }?.key }

    /// Who of them is meant, when the file was last read whole; nil: nobody.
    func remoteUser(_ isMeant: (RemoteUserList.Entry) -> Bool) -> RemoteUserList.Entry? {
        known.values.first(where: isMeant)
    }

    /// Takes in what the file says. Who isn't in it is let in no more; but what runs for somebody isn't ended by a file
    /// that could not be read whole: an editor may be about to write it.
    func read() {
        let reading = source()
        let (before, now) = (present, Self.byKey(reading.remoteUsers))
        let names = Set(reading.remoteUsers.map(\.name))
        let gone = known.values.filter { remoteUser in
            now[remoteUser.key] != remoteUser
                && (reading.isWhole || now[remoteUser.key] != nil || names.contains(remoteUser.name))
        }
        present = now
        for remoteUser in gone { known[remoteUser.key] = nil }
        known.merge(now) { $1 }
        let numbers = gone.map { noteUntold($0) }
        let cut = before.values.filter { now[$0.key] != $0 } + gone
        if !cut.isEmpty { onCut?(cut) }
        // Stored before it is reported.
        keep()
        for (remoteUser, number) in zip(gone, numbers) {
            let what = now[remoteUser.key] == nil ? "a \(kind) was revoked" : "the role of a \(kind) has changed"
            logger.notice("\(what): its connections end", metadata: ["name": "\(remoteUser.name)"])
            tell(remoteUser.name) { [weak self] in self?.wasTold(remoteUser.name, number) }
        }
    }

    // MARK: What is told

    private func noteUntold(_ remoteUser: RemoteUserList.Entry) -> UInt64 {
        lastNumber += 1
        if untold[remoteUser.name] != nil || untold.count < Self.maximumUntold {
            // Keeps the older of two: it differs from what a later gateway reads.
            untold[remoteUser.name] = Untold(
                remoteUser: untold[remoteUser.name]?.remoteUser ?? remoteUser, number: lastNumber)
        }
        return lastNumber
    }

    private func wasTold(_ name: String, _ number: UInt64) {
        loop.schedule(afterMilliseconds: afterthought) { [weak self] in
            guard let self else { return }
            let settled: () -> Void = { [weak self] in self?.settle(name, number) }
            guard let letIn = remoteUser({ $0.name == name }) else { return tell(name, settled) }
            // A user who was allowed again keeps new connections; but a late one may still have the old role.
            guard let change else { return settled() }
            change(letIn, settled)
        }
    }

    private func settle(_ name: String, _ number: UInt64) {
        guard untold[name]?.number == number else { return }
        untold[name] = nil
        keep()
    }

    // MARK: What is kept

    private func readKept() {
        guard let keptPath else { return }
        do {
            let text = String(decoding: try File.readOwn(keptPath, limit: Self.maximumBytes), as: UTF8.self)
            known = Self.byKey(try RemoteUserList(parsing: text).entries)
            keptText = text
        } catch let error as SystemError where error.isAbsent {
            return
        } catch {
            logger.warning(
                "can't read the earlier users; those whose \(kind) was removed meanwhile are not reported",
                metadata: ["file": "\(keptPath)", "error": "\(error)"])
        }
    }

    private func keep() {
        guard let keptPath else { return }
        var kept = RemoteUserList()
        // Unreported users come first. The next gateway knows the current ones.
        for remoteUser in untold.values.map(\.remoteUser).sorted(by: { $0.name < $1.name })
            + known.values.sorted(by: { $0.name < $1.name })
        {
            try? kept.add(remoteUser)
        }
        guard kept.text != keptText, keptText != nil || !kept.entries.isEmpty else { return }
        do throws(SystemError) {
            try File.replace(keptPath, with: Array(kept.text.utf8), mode: 0o600)
            keptText = kept.text
        } catch {
            logger.warning(
                "can't store the users; if a \(kind) is removed without a gateway, its user keeps recordings and locks",
                metadata: ["error": "\(error)"])
        }
    }

    private static func byKey(_ entries: [RemoteUserList.Entry]) -> [String: RemoteUserList.Entry] {
        Dictionary(entries.map { ($0.key, $0) }) { $1 }
    }
}
