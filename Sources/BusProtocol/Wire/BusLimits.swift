public import JSON

/// What a bus takes at most. `bus.hello` tells them as `limits`, under the names of ``BusLimits/Name``.
public enum BusLimits {
    /// Bytes of a request; more is refused with `limitExceeded`.
    public static let maxRequestBytes = 1 << 20
    /// Bytes of any message part; libzmq ends the connection of who sends more (`ZMQ_MAXMSGSIZE`).
    public static let maxMessageBytes = 16 << 20
    /// Levels of arrays and objects in a request.
    public static let maxDepth = 64
    /// Frames of an envelope, its empty delimiter included.
    public static let maxEnvelopeFrames = 8
    /// Bytes of an envelope's frames together.
    public static let maxEnvelopeBytes = 1024
    /// Distinct renditions of one device at a time.
    public static let maxRenditions = 8
    /// Connections of one user to one process of the bus: the coordinator, or one device's worker.
    public static let connectionsPerUser = 128
    /// Subscriptions of one connection.
    public static let maxSubscriptions = 1024
    /// Bytes of a topic. A longer subscription only watches.
    public static let maxTopicBytes = 256
    /// Characters (Unicode code points) of `key`, beside `method`.
    public static let maxKeyCharacters = 128
    /// Bytes of a request's `id`, if it is a string.
    public static let maxIDBytes = 256
    /// Devices of one lock, and changes of one batch.
    public static let maxDevicesPerLock = 64
    /// Cameras of one photo.
    public static let maxDevicesPerPhoto = 16
    /// Photos that wait or are being taken, of all clients.
    public static let maxPhotos = 100
    /// Bytes of all photos of one reply.
    public static let maxPhotoReplyBytes = 256 << 20
    /// Bytes of one part of a file of the capture library.
    public static let maxLibraryPartBytes = 4 << 20
    /// Bytes of the path of a Unix socket (`sun_path` without its NUL).
    public static let maxSocketPathBytes = 107

    /// The names of the limits, in `bus.hello` and in the `limit` member of a `limitExceeded`.
    public enum Name: String, Hashable, Sendable, CaseIterable {
        case requestBytes, messageBytes, depth, renditions, connectionsPerUser, topicBytes, keyCharacters,
            devicesPerLock, subscriptions
    }

    /// The limit of that name.
    public static func value(_ name: Name) -> Int {
        switch name {
        case .requestBytes: maxRequestBytes
        case .messageBytes: maxMessageBytes
        case .depth: maxDepth
        case .renditions: maxRenditions
        case .connectionsPerUser: connectionsPerUser
        case .topicBytes: maxTopicBytes
        case .keyCharacters: maxKeyCharacters
        case .devicesPerLock: maxDevicesPerLock
        case .subscriptions: maxSubscriptions
        }
    }

    /// `limits` of `bus.hello`.
    public static var json: JSONValue {
        .object(Dictionary(uniqueKeysWithValues: Name.allCases.map { ($0.rawValue, JSONValue(value($0))) }))
    }
}

extension BusError {
    /// `limitExceeded` {limit, maximum}.
    ///
    /// - Parameter maximum: where it is configured otherwise than the protocol's own.
    public static func limitExceeded(_ limit: BusLimits.Name, _ message: String, maximum: Int? = nil) -> BusError {
        BusError(
            .limitExceeded, message,
            ["limit": .string(limit.rawValue), "maximum": JSONValue(maximum ?? BusLimits.value(limit))])
    }
}
