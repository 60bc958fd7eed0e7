import BusProtocol
import JSON

/// Devices locked for configuration by this process, until ``Client/unlock(_:timeout:)`` or the end of the process.
///
/// It survives a restart of the bus: the next bus knows the lock, with the same token and fence.
///
/// The locks of a process that the bus can't see, for example on another machine, have a lease of ten seconds. The
/// client renews it three times in that time, until ``Client/unlock(_:timeout:)`` or the end of the client, and as soon
/// as a cut connection is back. If it can't renew the lock in time, or somebody took it over, ``loss`` is set and
/// ``lost()`` returns.
public struct DeviceLock: Hashable, Sendable {
    /// The secret that stands for the lock: whoever shows it may use it.
    public var token: String
    /// The lock's number; later locks have higher ones. `state/device/<id>/` tells it as `lock.fence`.
    public var fence: Int64
    /// The devices' ids.
    public var devices: [String]
    /// It is the lock that this program was started under, and not this program's to unlock.
    public var isJoined = false
    /// nil: its lease is not this client's to renew, or there is none.
    var renewal: LockRenewal?

    init(_ json: JSONValue) throws(ClientError) {
        guard let token = json["lock"]?.string, let fence = json["fence"]?.integer,
            let devices = json["devices"]?.array?.compactMap(\.string)
        else { throw .unreadable("The answer of the bus to device.lock is invalid: it contains no lock.") }
        self.token = token
        self.fence = fence
        self.devices = devices
    }

    init(joining token: String, fence: Int64, devices: [String]) {
        self.token = token
        self.fence = fence
        self.devices = devices
        isJoined = true
    }

    /// This client renews it, and finds out when it is lost.
    public var isRenewed: Bool { renewal != nil }

    /// How a lock ended that this client renews; nil: as far as is known it is still there, or it isn't renewed here.
    public var loss: LockLoss? { renewal?.loss }

    /// Returns when a lock is lost that this client renews.
    ///
    /// - Returns: nil: it was unlocked, the client was closed, or the task that waits was cancelled; and at once where
    ///   it isn't renewed here. What becomes of the lock of a process that the bus sees, `state/device/<id>/` tells.
    public func lost() async -> LockLoss? { await renewal?.wait() }

    public static func == (one: DeviceLock, other: DeviceLock) -> Bool {
        (one.token, one.fence, one.devices, one.isJoined)
            == (other.token, other.fence, other.devices, other.isJoined)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(token)
        hasher.combine(fence)
    }
}

extension Client {
    /// The lock that this program was started under, if it covers all of the devices; nil: none, or it covers
    /// others.
    private func joinedLock(_ devices: [String], timeout: Duration) async throws(ClientError) -> DeviceLock? {
        guard let token = defaultLock else { return nil }
        let asked = ContinuousClock.now
        let result = try await repeatedCall("device.renew", ["lock": .string(token)], timeout: timeout)
        let covered = result["devices"]?.array?.compactMap(\.string) ?? devices
        var devices = devices
        // What is no device of the lock may be a rig of devices that are.
        if !Set(devices).isSubset(of: covered) { devices = try await expandingRigs(devices, timeout: timeout) }
        let missing = devices.filter { !covered.contains($0) }
        guard missing.isEmpty else {
            if missing.count == devices.count { return nil }
            let message =
                "The lock in $CAMERABUS_LOCK of this program does not cover "
                + "\(missing.joined(separator: ", ")), and a second lock would wait for the first one. Lock all "
                + "devices with the first lock."
            throw .refused(BusError(.lockRequired, message, ["devices": JSONValue(missing)]))
        }
        let lock = DeviceLock(joining: token, fence: result["fence"]?.integer ?? 0, devices: covered)
        return renewed(lock, lease: nil, asked: asked)
    }

    // Who asked for a lease has said when it is to end.
    private func renewed(_ lock: DeviceLock, lease: Duration?, asked: ContinuousClock.Instant) -> DeviceLock {
        guard greeting.pid == 0, lease == nil else { return lock }
        var lock = lock
        lock.renewal = LockRenewal(line, token: lock.token, fence: lock.fence, asked: asked)
        return lock
    }

    /// Locks devices for configuration, all or none of them.
    ///
    /// A program that was started under a lock (``defaultLock``) which covers all of the devices joins that one, as it
    /// would else wait for its own parent. One that covers some of them only is refused with `lockRequired`, and one
    /// that is over with `lockLost`.
    ///
    /// - Parameters:
    ///   - wait: how long to stand in the queue; nothing: it is now or never.
    ///   - lease: how long it lasts unless renewed by ``renew(_:timeout:)``; nil: as long as this process, or where the
    ///     bus can't see it, as on another machine, as long as the client, which renews it then; ``DeviceLock/lost()``
    ///     tells when it could not.
    ///   - note: what for; all can read it.
    ///   - timeout: for the bus's answer, beyond `wait`. Who is cancelled while waiting leaves the queue.
    /// A bus that ends while this waits is succeeded by another, where it stands in the queue anew.
    ///
    /// - Throws: ``ClientError/refused(_:)`` with `deviceBusy`, `lockTimeout` or `deviceNotFound`.
    public func lock(
        _ devices: [String], wait: Duration = .zero, lease: Duration? = nil, note: String? = nil,
        timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> DeviceLock {
        if let lock = try await joinedLock(devices, timeout: timeout) { return lock }
        var params: [String: JSONValue] = ["devices": JSONValue(devices)]
        if wait > .zero { params["wait"] = JSONValue(wait.clampedMilliseconds) }
        if let lease { params["lease"] = JSONValue(lease.clampedMilliseconds) }
        if let note { params["note"] = .string(note) }
        let asked = ContinuousClock.now
        let result = try await patientCall("device.lock", .object(params), timeout: wait + timeout) { result in
            result["lock"].map { [("device.unlock", ["lock": $0])] } ?? []
        }
        return renewed(try DeviceLock(result), lease: lease, asked: asked)
    }

    /// Takes devices from whoever has them locked; for administrators. The loser's lock ends as a whole, and it is
    /// told.
    ///
    /// - Parameters:
    ///   - lease: how long it lasts unless renewed by ``renew(_:timeout:)``; nil: as long as this process, or where the
    ///     bus can't see it, as on another machine, as long as the client, which renews it then; ``DeviceLock/lost()``
    ///     tells when it could not.
    ///   - note: what for; all can read it.
    /// - Throws: ``ClientError/refused(_:)`` with `unauthorized` or `deviceNotFound`.
    public func takeOver(
        _ devices: [String], lease: Duration? = nil, note: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> DeviceLock {
        var params: [String: JSONValue] = ["devices": JSONValue(devices)]
        if let lease { params["lease"] = JSONValue(lease.clampedMilliseconds) }
        if let note { params["note"] = .string(note) }
        let asked = ContinuousClock.now
        let result = try await patientCall("device.takeOver", .object(params), timeout: timeout) { result in
            result["lock"].map { [("device.unlock", ["lock": $0])] } ?? []
        }
        return renewed(try DeviceLock(result), lease: lease, asked: asked)
    }

    /// Ends a lock, unless it was joined.
    ///
    /// - Returns: false: the end could not be written to the disk, and the next bus may restore the lock.
    /// - Throws: ``ClientError/refused(_:)`` with `lockLost` when it had ended before.
    @discardableResult
    public func unlock(_ lock: DeviceLock, timeout: Duration = defaultTimeout) async throws(ClientError) -> Bool {
        lock.renewal?.end()
        guard !lock.isJoined else { return true }
        let answer = try await repeatedCall("device.unlock", ["lock": .string(lock.token)], timeout: timeout) {
            $0.reason == .lockLost
        }
        return answer["kept"]?.bool ?? true
    }

    /// Starts a lock's lease anew.
    ///
    /// - Throws: ``ClientError/refused(_:)`` with `internalError` when that could not be written to the disk: its lease
    ///   ends when it did.
    public func renew(_ lock: DeviceLock, timeout: Duration = defaultTimeout) async throws(ClientError) {
        _ = try await repeatedCall("device.renew", ["lock": .string(lock.token)], timeout: timeout)
    }

    /// Locks devices while the body runs, and unlocks them however it ends. A lock that is lost meanwhile
    /// (``DeviceLock/lost()``) does not end the body.
    ///
    /// - Parameter takingOver: takes them from whoever has them, instead of waiting.
    public func withLock<Result>(
        _ devices: [String], wait: Duration = .zero, note: String? = nil, takingOver: Bool = false,
        timeout: Duration = defaultTimeout, _ body: (DeviceLock) async throws -> Result
    ) async throws -> Result {
        let lock =
            takingOver
            ? try await takeOver(devices, note: note, timeout: timeout)
            : try await self.lock(devices, wait: wait, note: note, timeout: timeout)
        let outcome: Swift.Result<Result, any Error>
        do { outcome = .success(try await body(lock)) } catch { outcome = .failure(error) }
        // A cancelled task must give its lock back too: another task does it.
        let release = Task { _ = try? await unlock(lock, timeout: timeout) }
        await release.value
        return try outcome.get()
    }
}
