import BusProtocol
public import JSON

extension Client {
    /// Which entries of the capture library are wanted; nil: whatever it is.
    public struct LibraryFilter: Hashable, Sendable {
        /// Nanoseconds since 1970: what began then or later.
        public var since: Int64?
        /// `movie`, `take` or `photo`.
        public var kind: String?
        /// A camera's or a microphone's id at that time, or its `uniqueID`.
        public var device: String?
        /// `recording`, `finished`, `recovered`, `damaged` or `missing`.
        public var state: String?
        /// What belongs together.
        public var take: String?
        /// Photos of one request: its `uniqueID`.
        public var photo: String?
        /// What their ids begin with.
        public var prefix: String?
        /// How many at most, 1 to 1000; nil: 100.
        public var limit: Int?

        public init(
            since: Int64? = nil, kind: String? = nil, device: String? = nil, state: String? = nil,
            take: String? = nil, photo: String? = nil, prefix: String? = nil, limit: Int? = nil
        ) {
            self.since = since
            self.kind = kind
            self.device = device
            self.state = state
            self.take = take
            self.photo = photo
            self.prefix = prefix
            self.limit = limit
        }
    }

    /// What was recorded, the newest first: one's own, for administrators everybody's.
    ///
    /// - Returns: {entries, more, unreadable?}.
    public func library(
        _ filter: LibraryFilter = LibraryFilter(), timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        let params: JSONValue = .members([
            "since": filter.since.map(JSONValue.integer), "kind": filter.kind.map(JSONValue.string),
            "device": filter.device.map(JSONValue.string), "state": filter.state.map(JSONValue.string),
            "take": filter.take.map(JSONValue.string), "photo": filter.photo.map(JSONValue.string),
            "prefix": filter.prefix.map(JSONValue.string), "limit": filter.limit.map { JSONValue($0) },
        ])
        return try await call("library.list", params, timeout: timeout)
    }

    /// One entry of the capture library.
    ///
    /// - Throws: ``ClientError/refused(_:)`` with `entryNotFound`, also for somebody else's.
    public func libraryEntry(
        _ id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await call("library.get", ["id": .string(id)], timeout: timeout)["entry"] ?? .null
    }

    /// Removes the files of an entry, and then the entry.
    ///
    /// - Returns: {id, deleted}: the files that were there.
    /// - Throws: ``ClientError/refused(_:)`` with `entryNotFound`, or `recordingInProgress` while it is being made.
    @discardableResult
    public func deleteFromLibrary(
        _ id: String, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await call("library.delete", ["id": .string(id)], timeout: timeout)
    }
}
