import BusProtocol
import BusServer
import CaptureCore

/// Replies that wait for a session to settle.
extension SessionRegistry {
    /// How long a reply waits for the session to run, milliseconds.
    static let patience: Int64 = 5000
    /// Replies that wait for one session; a further one is given at once.
    private static let maximumWaiting = 64

    /// Calls the body when the session runs, is interrupted, or has reached its state; at the latest after
    /// ``patience``.
    func whenSettled(_ id: String, _ body: @escaping () -> Void) {
        guard let entry = entries[id], !isSettled(entry), entry.waiting.count < Self.maximumWaiting else {
            return body()
        }
        let timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak entry] in
            guard let entry else { return }
            let due = entry.waiting.prefix(1)
            entry.waiting.removeFirst(due.count)
            for (_, body) in due { body() }
            self?.settle(entry)
        }
        entry.waiting.append((timer, body))
    }

    private func isSettled(_ entry: Entry) -> Bool {
        guard entry.session.run.isActive else { return true }
        let isBusy = entry.session.inputs.contains { stages[$0.device]?.isBusy ?? false }
        return !isBusy && (!isComing(entry) || entry.error != nil)
    }

    // What kept it from its devices may be over, and their first pictures still to come.
    private func isComing(_ entry: Entry) -> Bool {
        switch entry.session.run.state {
        case .starting: return true
        case .interrupted: return !entry.places.values.contains { if case .denied = $0 { true } else { false } }
        default: return false
        }
    }

    func settle(_ entry: Entry) {
        guard !entry.waiting.isEmpty, isSettled(entry) else { return }
        let waiting = entry.waiting
        entry.waiting = []
        for (timer, body) in waiting {
            loop.cancel(timer)
            body()
        }
    }
}
