import BusProtocol
public import Logging

/// Writes to the standard error, each event as one line: what others call themselves, or write into notes, makes no
/// line of its own, and does not steer the terminal of whoever reads the log.
public struct LineLogHandler: LogHandler {
    private var handler: StreamLogHandler

    public init(label: String) { handler = .standardError(label: label) }

    public var logLevel: Logger.Level {
        get { handler.logLevel }
        set { handler.logLevel = newValue }
    }

    public var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue.mapValues(Self.escaped) }
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue.map(Self.escaped) }
    }

    public func log(event: LogEvent) {
        var event = event
        event.message = "\(event.message.description.escaped)"
        event.metadata = event.metadata?.mapValues(Self.escaped)
        handler.log(event: event)
    }

    private static func escaped(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
        switch value {
        case .string(let text): .string(quoted(text.escaped))
        case .stringConvertible(let value): .string(quoted(value.description.escaped))
        case .array(let values): .array(values.map(escaped))
        case .dictionary(let values): .dictionary(values.mapValues(escaped))
        }
    }

    /// In quotes if it might be read as several fields, or as another one.
    private static func quoted(_ text: String) -> String {
        guard text.utf8.contains(where: { " =\"".utf8.contains($0) }) else { return text }
        return "\"\(text.reduce(into: "") { $0 += $1 == "\"" ? "\\\"" : String($1) })\""
    }
}
