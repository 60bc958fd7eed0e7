import BusClient
import JSON

/// Completes typed ids of movies, takes, sessions and library entries: a beginning is enough when only one id begins
/// with it.
enum ShortID {
    /// Digits of a whole one: nobody is asked about these.
    private static let digits = 16
    private static let sessionDigits = 8
    /// Of those that begin alike, so many are told.
    private static let most = 8

    /// Of the capture library.
    static func entry(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        try await whole(typed, "entries of the library") { () throws(ClientError) in
            let filter = Client.LibraryFilter(prefix: typed, limit: most + 1)
            let entries = try await client.library(filter, timeout: timeout)["entries"]?.array ?? []
            return entries.compactMap { $0["id"]?.string }
        }
    }

    /// Of a movie that is being recorded.
    static func movie(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        try await whole(typed, "movies") { () throws(ClientError) in
            try await client.movies(timeout: timeout).map(\.id)
        }
    }

    /// Of a movie that is being recorded, or was and is in the capture library.
    static func anyMovie(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        try await whole(typed, "movies") { () throws(ClientError) in
            let running = try await client.movies(timeout: timeout).map(\.id).filter { $0.hasPrefix(typed) }
            let filter = Client.LibraryFilter(kind: "movie", prefix: typed, limit: most + 1)
            // A bus without a library has only those.
            let ended = (try? await client.library(filter, timeout: timeout))?["entries"]?.array ?? []
            return running + ended.compactMap { $0["id"]?.string }.filter { !running.contains($0) }
        }
    }

    /// Of a session.
    static func session(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        try await whole(typed, "sessions", digits: sessionDigits) { () throws(ClientError) in
            try await client.sessions(timeout: timeout).compactMap { $0["id"]?.string }
        }
    }

    /// Of a request whose photos are in the capture library, among the newest there.
    static func photo(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        let entries = try await newest(Client.LibraryFilter(kind: "photo", limit: 1000), client, timeout)
        return try chosen(typed, among: Set(entries.compactMap { $0["photo"]?["uniqueID"]?.string }).sorted(), "photos")
    }

    /// Of a take, or of movies that were begun together, of which something is in the capture library, among the newest
    /// there.
    static func libraryTake(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        let entries = try await newest(Client.LibraryFilter(limit: 1000), client, timeout)
        return try chosen(typed, among: Set(entries.compactMap { $0["take"]?.string }).sorted(), "takes")
    }

    private static func newest(
        _ filter: Client.LibraryFilter, _ client: Client, _ timeout: Duration
    ) async throws(ClientError) -> [JSONValue] {
        try await client.library(filter, timeout: timeout)["entries"]?.array ?? []
    }

    /// Of a take that is neither finished nor discarded.
    static func take(_ typed: String, _ client: Client, _ timeout: Duration) async throws -> String {
        try await whole(typed, "takes") { () throws(ClientError) in
            try await client.takes(timeout: timeout).map(\.id)
        }
    }

    /// Of a take's segments.
    static func segment(_ typed: String, of take: String, _ client: Client, _ timeout: Duration) async throws -> String
    {
        try await whole(typed, "segments") { () throws(ClientError) in
            try await client.take(take, timeout: timeout).segments.map(\.id)
        }
    }

    private static func whole(
        _ typed: String, _ what: String, digits: Int = ShortID.digits, _ ids: () async throws(ClientError) -> [String]
    ) async throws -> String {
        guard !typed.isEmpty, typed.utf8.count < digits else { return typed }
        let known: [String]
        do throws(ClientError) {
            known = try await ids()
        } catch {
            // Why shows when it is used.
            guard case .refused = error else { throw error }
            return typed
        }
        return try chosen(typed, among: known, what)
    }

    /// The one that is meant; what none begins with stays as it is, and the bus says that there is none.
    ///
    /// - Throws: ``Failure`` when several begin so.
    static func chosen(_ typed: String, among ids: [String], _ what: String) throws -> String {
        if ids.contains(typed) { return typed }
        let found = ids.filter { $0.hasPrefix(typed) }
        guard found.count > 1 else { return found.first ?? typed }
        let shown = found.prefix(most).joined(separator: ", ") + (found.count > most ? ", …" : "")
        throw Failure(
            status: ExitStatus.refused,
            description: Table.printable(
                "Several \(what) begin with '\(typed)': \(shown). Type more characters of the id."))
    }
}
