public import BusProtocol
import Glibc
public import JSON
import LinuxIO
import Synchronization
import ZeroMQ

/// A connection to a CameraBus. It can be used from any task.
///
/// One thread of its own holds the sockets. Every call has a time limit, and a cancelled task stops waiting at once.
/// When the bus restarts, calls and subscriptions continue; calls that were under way fail.
public final class Client: Sendable {
    /// The most requests that may wait for an answer.
    public static let maximumPendingCalls = CallChannel.maximumPending
    /// The default time limit of a call.
    public static let defaultTimeout = Duration.seconds(10)

    /// Frames that are kept of a format whose frames build on one another.
    static let chainedFrames = 64

    /// The longest time without a heartbeat (one per second). After it the bus counts as hung or gone.
    public static let silenceOfNobody = Subscription.silenceWithoutHeartbeat

    /// Where the bus is.
    public let place: BusPlace
    /// Where the bus has its sockets; nil: on another machine.
    public var directory: RuntimeDirectory? { place.directory }
    /// What the bus said of itself at the first contact.
    public let greeting: Greeting
    /// The token that ``configure(_:lock:mode:dryRun:timeout:)`` and ``set(_:controls:lock:timeout:)`` use when none is
    /// given:
    /// `$CAMERABUS_LOCK`, which `camerabus lock … -- COMMAND` sets.
    public let defaultLock: String?

    let line: ClientConnection
    private let lastNumber = Atomic<UInt64>(0)

    private init(_ place: BusPlace, _ greeting: Greeting, _ line: ClientConnection, defaultLock: String?) {
        self.place = place
        self.greeting = greeting
        self.line = line
        self.defaultLock = defaultLock
    }

    deinit { line.handle.stop() }

    /// Finds the bus and says hello.
    ///
    /// - Parameters:
    ///   - runtimeDirectory: where to look, and nowhere else; nil: `$CAMERABUS_RUNTIME_DIR`, else the first of
    ///     `$XDG_RUNTIME_DIR/camerabus`, `/run/camerabus` and `/tmp/camerabus-<uid>` where a bus answers. In place of a
    ///     directory it may be
    ///     the address of a bus on another machine, `tcp://HOST:PORT`: its key is in `$CAMERABUS_SERVER_KEY`, our keys
    ///     are in the file
    ///     `$CAMERABUS_KEY`.
    ///   - name: the program's, for others to read: who holds a lock is told by it.
    ///   - defaultLock: ``defaultLock``, where it isn't that of `$CAMERABUS_LOCK`; empty: none.
    ///   - timeout: for the first answer.
    /// - Throws: ``ClientError/noBus(lookedAt:)`` when none runs; for another machine
    ///   ``ClientError/unreachable(address:_:)``, as soon as that is sure.
    public static func connect(
        runtimeDirectory: String? = nil, name: String, defaultLock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Client {
        let place = try place(runtimeDirectory: runtimeDirectory)
        return try await connect(to: place, name: name, defaultLock: defaultLock, timeout: timeout)
    }

    /// Where ``connect(runtimeDirectory:name:defaultLock:timeout:)`` finds the bus. On another machine nobody is asked
    /// yet.
    ///
    /// - Throws: ``ClientError/noBus(lookedAt:)``, and ``ClientError/invalidRuntimeDirectory(_:)`` also for keys that
    ///   can't be read.
    public static func place(runtimeDirectory: String? = nil) throws(ClientError) -> BusPlace {
        var environment: [String: String] = [:]
        for variable in ["CAMERABUS_RUNTIME_DIR", "XDG_RUNTIME_DIR", "CAMERABUS_SERVER_KEY", "CAMERABUS_KEY"] {
            environment[variable] = CurrentProcess.environment(variable)
        }
        return try BusDiscovery.place(flag: runtimeDirectory, environment: environment)
    }

    /// Says hello to the bus at that place, here or on another machine.
    ///
    /// - Parameters: as for ``connect(runtimeDirectory:name:defaultLock:timeout:)``.
    public static func connect(
        to place: BusPlace, name: String, defaultLock: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Client {
        let line = try ClientConnection(place, name: name)
        do throws(ClientError) {
            let hello: JSONValue = ["client": .string(name), "version": JSONValue(MethodTable.protocolVersion)]
            let answer = try await line.ask("bus.hello", hello, timeout: timeout)
            let lock = (defaultLock ?? CurrentProcess.environment("CAMERABUS_LOCK")).flatMap { $0.isEmpty ? nil : $0 }
            return Client(place, try Greeting(answer.result), line, defaultLock: lock)
        } catch {
            line.handle.stop()
            throw error
        }
    }

    /// Ends the connection: what waits gets ``ClientError/closed``. Dropping the last reference does the same, without
    /// waiting for it.
    public func close() async {
        line.handle.stop()
        await line.handle.waitForEnd()
    }

    /// Asks the bus, and answers the `result`.
    ///
    /// - Parameters:
    ///   - params: an object.
    ///   - timeout: after which ``ClientError/timedOut(method:milliseconds:)`` is thrown.
    /// - Throws: ``ClientError/refused(_:)`` with the bus's reason.
    public func call(
        _ method: String, _ params: JSONValue = [:], timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> JSONValue {
        try await line.ask(method, params, timeout: timeout).result
    }

    /// Like ``call(_:_:timeout:)``, with the binary frames behind the answer.
    public func request(
        _ method: String, _ params: JSONValue = [:], timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> Answer {
        try await line.ask(method, params, timeout: timeout)
    }

    /// Returns when the present connection for requests ends, or the task is cancelled; at once without a connection.
    /// It connects again by itself, if possible.
    public func waitUntilCut() async { await line.waitUntilCut() }

    /// A request that takes its time, and that is not repeated: giving it up tells the bus, which then need not go on
    /// with it.
    func cancellableRequest(
        _ method: String, _ params: JSONValue, timeout: Duration
    ) async throws(ClientError) -> Answer {
        let key = greeting.features.contains(Feature.keys.rawValue) ? hexadecimal(randomBytes(16)) : nil
        return try await line.ask(method, params, timeout: timeout, key: key)
    }

    /// A request that the bus may hold back: giving it up tells the bus, and a success that comes too late is taken
    /// back.
    ///
    /// When the bus ends before it has answered, the next one is asked the same under the same key: if the request was
    /// carried out by then, its answer comes now.
    func patientCall(
        _ method: String, _ params: JSONValue, timeout: Duration,
        undo: @escaping CallChannel.Undo
    ) async throws(ClientError) -> JSONValue {
        let key = greeting.features.contains(Feature.keys.rawValue) ? hexadecimal(randomBytes(16)) : nil
        let deadline = monotonic(after: timeout)
        var wasLost = false
        while true {
            do throws(ClientError) {
                return try await line.ask(
                    method, params, timeout: timeLeft(until: deadline), key: key, undo: undo
                ).result
            } catch .connectionLost(let lost) {
                guard key != nil, !Task.isCancelled else { throw .connectionLost(method: lost) }
                wasLost = true
            } catch {
                // What the bus that ended may have done for a caller who doesn't wait any more is to be taken back.
                if wasLost, error.reason == nil, let key { takeBack(method, params, key: key, undo: undo) }
                throw error
            }
        }
    }

    private func takeBack(
        _ method: String, _ params: JSONValue, key: String,
        undo: @escaping CallChannel.Undo
    ) {
        Task { [line] in
            guard let answer = try? await line.ask(method, params, timeout: .seconds(30), key: key, undo: undo)
            else { return }
            for undoing in undo(answer.result) {
                _ = try? await line.ask(undoing.method, undoing.params, timeout: .seconds(30))
            }
        }
    }

    /// A request that does no harm when it is carried out twice: when the bus ends before it has answered, the next one
    /// is asked.
    ///
    /// - Parameter isDone: whether that refusal, from a bus that is asked again, says that the one before had done it.
    func repeatedCall(
        _ method: String, _ params: JSONValue, timeout: Duration, isDone: (BusError) -> Bool = { _ in false }
    ) async throws(ClientError) -> JSONValue {
        let deadline = monotonic(after: timeout)
        var wasLost = false
        while true {
            do throws(ClientError) {
                return try await line.ask(method, params, timeout: timeLeft(until: deadline)).result
            } catch .connectionLost(let lost) {
                if Task.isCancelled { throw .connectionLost(method: lost) }
                wasLost = true
            } catch .refused(let error) where wasLost && isDone(error) {
                return [:]
            }
        }
    }

    private func timeLeft(until deadline: Int64) -> Duration {
        .nanoseconds(max(0, deadline - MonotonicClock.now()))
    }

    // MARK: Subscriptions

    func openSubscription(
        _ plan: Subscription.Plan, mailboxFinish: @escaping @Sendable (ClientError) -> Void,
        accept: @escaping @Sendable ([Message]) -> Subscription.Disposal
    ) async throws(ClientError) -> UInt64 {
        let number = lastNumber.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<Void, ClientError>, Never>) in
                let refusal = line.handle.post(unlessCancelled: true) { loop in
                    do throws(ZeroMQError) {
                        if !plan.isOfBus { try loop.awaitEndNotice(plan.place) }
                        let subscription = try Subscription(
                            loop, plan, opened: { continuation.resume(returning: $0) }, accept: accept,
                            fail: mailboxFinish)
                        loop.add(subscription, number: number)
                    } catch {
                        continuation.resume(returning: .failure(.system(error.description)))
                    }
                }
                if let refusal { continuation.resume(returning: .failure(refusal)) }
            }
        } onCancel: {
            line.handle.post { $0.subscriptions[number]?.close(.cancelled) }
        }
        do throws(ClientError) {
            try result.get()
        } catch {
            endSubscription(number)
            throw error
        }
        return number
    }

    func endSubscription(_ number: UInt64) { line.handle.post { $0.removeSubscription(number) } }

    func replaceTopic(_ number: UInt64, _ old: String, by new: String) {
        line.handle.post { $0.subscriptions[number]?.replace(old, by: new) }
    }

    /// Waits until all that was published until now has come to the subscription, but no longer than that.
    func flushSubscription(_ number: UInt64, within time: Duration) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let refusal = line.handle.post { loop in
                guard let subscription = loop.subscriptions[number] else { return continuation.resume() }
                subscription.flush(within: time.clampedNanoseconds) { continuation.resume() }
            }
            if refusal != nil { continuation.resume() }
        }
    }

    func resumeSubscription(_ number: UInt64) { line.handle.post { $0.subscriptions[number]?.resume() } }
}
