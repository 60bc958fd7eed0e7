import Synchronization

/// Passes elements from the loop's thread to the task that waits for the next one. It is bounded: it keeps the newest
/// elements, or reports that it is full.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var dropped: UInt64 = 0
        var end: ClientError?
        var waiters: [(number: UInt64, resume: CheckedContinuation<Result<Element, ClientError>, Never>)] = []
        var lastNumber: UInt64 = 0
    }

    private let capacity: Int
    /// Of who waits for several at once: something is in it when something has come here.
    private let bell: Mailbox<Void>?
    private let state = Mutex(State())

    init(capacity: Int, bell: Mailbox<Void>? = nil) {
        self.capacity = max(1, capacity)
        self.bell = bell
    }

    /// Puts an element in; when it is full, the oldest goes.
    ///
    /// - Parameter room: for how many there is room for this element's sake, if for more than otherwise.
    /// - Returns: false when there is no room for another one.
    @discardableResult
    func put(_ element: Element, room: Int = 0) -> Bool {
        let capacity = max(capacity, room)
        let (waiter, hasRoom) = state.withLock { state in
            if state.end != nil { return (nil as CheckedContinuation<Result<Element, ClientError>, Never>?, true) }
            if !state.waiters.isEmpty { return (state.waiters.removeFirst().resume, true) }
            while state.elements.count >= capacity {
                state.elements.removeFirst()
                state.dropped += 1
            }
            state.elements.append(element)
            return (nil, state.elements.count < capacity)
        }
        waiter?.resume(returning: .success(element))
        bell?.put(())
        return hasRoom
    }

    /// What is in it can still be taken; then there is only this error.
    func finish(_ error: ClientError) {
        let waiters = state.withLock { state in
            if state.end == nil { state.end = error }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume.resume(returning: .failure(error)) }
        bell?.put(())
    }

    /// How many went because it was full.
    var dropped: UInt64 { state.withLock(\.dropped) }

    var count: Int { state.withLock(\.elements.count) }

    /// The next element, if there is one; nil: not yet.
    func poll() throws(ClientError) -> Element? {
        let now: Result<Element, ClientError>? = state.withLock { state in
            if !state.elements.isEmpty { return .success(state.elements.removeFirst()) }
            if let end = state.end { return .failure(end) }
            return nil
        }
        return try now?.get()
    }

    /// The next element, as soon as there is one.
    func next() async throws(ClientError) -> Element {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Result<Element, ClientError>? = state.withLock { state in
                    if !state.elements.isEmpty { return .success(state.elements.removeFirst()) }
                    if let end = state.end { return .failure(end) }
                    // Asked under the lock: a cancellation that comes later finds the waiter.
                    if Task.isCancelled { return .failure(.cancelled) }
                    state.waiters.append((number, continuation))
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
            }
            waiter?.resume.resume(returning: .failure(.cancelled))
        }
        return try result.get()
    }
}
