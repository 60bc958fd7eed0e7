import Synchronization

/// A flag that is set once and can be read by all tasks.
final class OneTimeEvent: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .sequentiallyConsistent) }

    func set() { value.store(true, ordering: .sequentiallyConsistent) }
}
