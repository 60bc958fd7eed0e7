import BusProtocol
import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// Whose keys are let in, as the file says now.
final class KeyBook {
    private let path: String
    private let loop: Loop
    private let logger: Logger
    private var watch: FileWatch?
    private var token: Loop.Token?
    private var entries: [String: AllowedKeys.Entry] = [:]
    /// Called with those who were let in before and are not any more, or are with another role or name now.
    var onChange: ((_ changed: [AllowedKeys.Entry]) -> Void)?

    private static let maximumBytes = 1 << 20

    init(_ loop: Loop, path: String, logger: Logger) {
        self.loop = loop
        self.path = path
        self.logger = logger
        do throws(SystemError) {
            let watch = try FileWatch(path)
            self.watch = watch
            token = loop.watch(.descriptor(watch.rawValue)) { [weak self] in
                if watch.hasChanged() { self?.read() }
            }
        } catch {
            logger.error(
                "the file of keys can't be watched: after a change, SIGHUP has it read", metadata: ["error": "\(error)"]
            )
        }
        read()
    }

    deinit { loop.cancel(token) }

    /// Who has that key; nil: nobody who is let in.
    subscript(key: String) -> AllowedKeys.Entry? { entries[key] }

    var count: Int { entries.count }

    /// Whether somebody of that name is let in.
    func isKnown(_ name: String) -> Bool { entries.values.contains { $0.name == name } }

    /// Takes in what the file says. One that is wrong lets nobody in: it may be about somebody who is to be kept out.
    func read() {
        var found = AllowedKeys()
        do {
            let bytes = try File.readAtOnce(path, limit: Self.maximumBytes)
            found = try AllowedKeys(parsing: String(decoding: bytes, as: UTF8.self))
        } catch {
            logger.error(
                "nobody is let in: the file of keys can't be read", metadata: ["file": "\(path)", "error": "\(error)"])
        }
        var now: [String: AllowedKeys.Entry] = [:]
        for entry in found.entries { now[entry.key] = entry }
        let changed = entries.values.filter { now[$0.key] != $0 }
        entries = now
        if !changed.isEmpty { onChange?(changed) }
    }
}
