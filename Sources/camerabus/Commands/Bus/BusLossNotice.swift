import BusClient

/// Notifies somebody who waits for the bus that the bus has ended.
enum BusLossNotice {
    /// Runs the body. When the connection to the bus ends and the bus then does not answer either, it notifies once.
    ///
    /// - Parameters:
    ///   - patience: how long to wait for the bus to come back and answer.
    ///   - notify: gets the message.
    static func run<Result>(
        _ client: Client, patience: Duration, _ what: String, by notify: @escaping @Sendable (String) -> Void,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        let watch = Task {
            await client.waitUntilCut()
            guard !Task.isCancelled else { return }
            // A bus that was restarted at once answers.
            do {
                _ = try await client.call("bus.ping", timeout: patience)
            } catch {
                guard !Task.isCancelled else { return }
                notify("The bus has ended. \(what)")
            }
        }
        defer { watch.cancel() }
        return try await body()
    }
}
