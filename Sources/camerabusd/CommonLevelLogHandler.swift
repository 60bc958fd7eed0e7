import BusServer
import Logging
import Synchronization

/// Writes to the standard error, at one level for all loggers: a level that SIGHUP brings holds also for those that
/// were handed on long before.
struct CommonLevelLogHandler: LogHandler {
    private static let level = Mutex(Logger.Level.info)
    private var handler: LineLogHandler

    init(label: String) {
        handler = LineLogHandler(label: label)
        handler.logLevel = .trace
    }

    var logLevel: Logger.Level {
        get { Self.level.withLock { $0 } }
        set { Self.level.withLock { $0 = newValue } }
    }

    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) { handler.log(event: event) }
}
