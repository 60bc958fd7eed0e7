public import JSON

/// A refusal as it goes over the bus: the `error` member of a JSON-RPC 2.0 response.
public struct BusError: Error, Hashable, Sendable {
    /// The contract's word for why (`data.reason`).
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        case deviceNotFound, deviceBusy, lockRequired, lockLost, lockTimeout, formatUnsupported, frameRateUnsupported
        case presetUnsupported, controlUnsupported, controlOutOfRange, controlReadOnly, controlBusy, sessionNotFound
        case sessionNotRunning, cannotAddInput, cannotAddOutput, photoSettingsReused, photoFormatUnavailable
        case momentNotHeld
        case recordingInProgress, notRecording, diskFull, pathNotAllowed, unauthorized, interrupted, deviceDisconnected
        case deviceInUse, workerCrashed, limitExceeded, versionUnsupported, invalidParams, shuttingDown
        case profileNotFound, rigNotFound, entryNotFound, takeNotFound
        /// A request that `bus.cancel` gave up.
        case cancelled
        /// JSON-RPC's own cases, so that `data.reason` is always there.
        case parseError, invalidRequest, methodNotFound, internalError
    }

    public var reason: Reason
    /// One sentence that tells a person what to do.
    public var message: String
    /// The further members of `error.data` that the contract names for this reason.
    public var data: [String: JSONValue]

    public init(_ reason: Reason, _ message: String, _ data: [String: JSONValue] = [:]) {
        self.reason = reason
        self.message = message
        self.data = data
    }

    /// There are frames, but no memory to share them in: they come as payload. Of `buffer/` topics and rings.
    public static func withoutRing(_ message: String) -> BusError {
        BusError(.internalError, message, ["missing": "ring"])
    }

    /// It is ``withoutRing(_:)``.
    public var isWithoutRing: Bool { reason == .internalError && data["missing"] == "ring" }

    /// JSON-RPC's code: its own for its own cases, else -32000.
    public var code: Int {
        switch reason {
        case .parseError: -32700
        case .invalidRequest: -32600
        case .methodNotFound: -32601
        case .invalidParams: -32602
        case .internalError: -32603
        default: -32000
        }
    }

    /// The `error` object.
    public var json: JSONValue {
        .object([
            "code": JSONValue(code), "message": .string(message),
            "data": .object(data.merging(["reason": .string(reason.rawValue)]) { _, reason in reason }),
        ])
    }

    /// What is wrong with a member of `params`; `path` is dotted, with indices in brackets: `changes[1].frameRate`.
    public static func invalidParams(_ path: String, _ why: String) -> BusError {
        BusError(
            .invalidParams, "\(path.isEmpty ? "params" : path): \(why)", ["path": .string(path), "why": .string(why)])
    }
}
