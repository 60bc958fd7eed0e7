/// How to give up calls that wait, by the user and the key of their request.
final class CancellationTable {
    private var bodies: [RequestKey: () -> Void] = [:]

    /// Sets how to give up a call; nothing for a call without a key.
    func set(_ key: RequestKey?, _ giveUp: @escaping () -> Void) {
        if let key { bodies[key] = giveUp }
    }

    /// The call has ended.
    func remove(_ key: RequestKey) { bodies[key] = nil }

    /// Gives up a call.
    ///
    /// - Returns: false: no such call waits.
    func cancel(_ key: RequestKey) -> Bool {
        guard let giveUp = bodies.removeValue(forKey: key) else { return false }
        giveUp()
        return true
    }
}
