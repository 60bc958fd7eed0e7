import BusClient
import JSON

/// Ids of movies, takes and entries, as they are typed: the beginning is enough where only one begins so.
enum ShortID {
    /// Digits of a whole one: nobody is asked about these.
    private static let digits = 16
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
        _ typed: String, _ what: String, _ ids: () async throws(ClientError) -> [String]
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
                "Several \(what) begin with '\(typed)': \(shown). Type more of the one you mean."))
    }
}
