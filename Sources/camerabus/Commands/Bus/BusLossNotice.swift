import BusClient

/// Who waits for something that only the bus tells is told when the bus goes away meanwhile.
enum BusLossNotice {
    /// Runs the body; when the bus's connection ends meanwhile and the bus does not answer after that either, says so, once.
    ///
    /// - Parameters:
    ///   - patience: how long the bus has to come back, and to answer.
    ///   - tell: is given what there is to say.
    static func told<Result>(
        _ client: Client, patience: Duration, _ what: String, by tell: @escaping @Sendable (String) -> Void,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        let watch = Task {
            await client.waitUntilCut()
            guard !Task.isCancelled else { return }
            // One that is started anew at once has told how it went on by then.
            do {
                _ = try await client.call("bus.ping", timeout: patience)
            } catch {
                guard !Task.isCancelled else { return }
                tell("The bus has gone away. \(what)")
            }
        }
        defer { watch.cancel() }
        return try await body()
    }
}
