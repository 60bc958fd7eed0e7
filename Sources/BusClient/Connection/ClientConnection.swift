import BusProtocol
import JSON
import Synchronization
import ZeroMQ

/// The connection to the bus: the thread of the loop, and requests to it from any task.
final class ClientConnection: Sendable {
    let handle: ClientLoop.Handle
    private let lastID = Atomic<Int64>(0)

    init(_ place: BusPlace, name: String) throws(ClientError) {
        handle = try ClientLoop.Handle()
        handle.post { loop in
            // Without a socket every request times out. That is the only report of a machine without free
            // descriptors.
            guard let channel = try? CallChannel(loop, place, name: name) else { return }
            loop.add(channel)
        }
    }

    /// Returns when a connection has ended, or the task is cancelled; at once where there is none.
    ///
    /// - Parameter connection: over which an answer came (``Answer/connection``); nil: that of now.
    func waitUntilCut(_ connection: Int? = nil) async {
        let number = lastID.add(1, ordering: .relaxed).newValue
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let refusal = handle.post(unlessCancelled: true) { loop in
                    guard let calls = loop.calls else { return continuation.resume() }
                    calls.whenCut(connection, number) { continuation.resume() }
                }
                if refusal != nil { continuation.resume() }
            }
        } onCancel: {
            handle.post { $0.calls?.stopWaitingForCut(number) }
        }
    }

    func ask(
        _ method: String, _ params: JSONValue, timeout: Duration, key: String? = nil,
        undo: CallChannel.Undo? = nil
    ) async throws(ClientError) -> Answer {
        let id = lastID.add(1, ordering: .relaxed).newValue
        let bytes = Request(id: .integer(id), method: method, params: params, key: key).serialized
        guard bytes.count <= BusLimits.maxRequestBytes else {
            let message = "The request is too long: \(bytes.count) bytes of at most \(BusLimits.maxRequestBytes)."
            throw .refused(.limitExceeded(.requestBytes, message))
        }
        let call = CallChannel.Call(
            id: id, method: method, bytes: bytes, key: key, deadline: monotonic(after: timeout),
            milliseconds: timeout.clampedMilliseconds, undo: undo)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<CallChannel.Outcome, Never>) in
                let refusal = handle.post(unlessCancelled: true) { loop in
                    guard let calls = loop.calls else {
                        return continuation.resume(returning: .failure(.system("No socket could be opened.")))
                    }
                    calls.start(call) { continuation.resume(returning: $0) }
                }
                if let refusal { continuation.resume(returning: .failure(refusal)) }
            }
        } onCancel: {
            handle.post { $0.calls?.giveUp(id, .cancelled) }
        }
        return try outcome.get()
    }
}
