import BusProtocol
import JSON

/// Devices locked for configuration by this process, until ``Client/unlock(_:timeout:)`` or the end of the process.
///
/// It goes on over a restart of the bus: a bus that was killed is succeeded by one that knows it, token and fence the same.
public struct DeviceLock: Hashable, Sendable {
    /// The secret that stands for the lock: whoever shows it may use it.
    public var token: String
    /// The lock's number; later locks have higher ones. `state/device/<id>/` tells it as `lock.fence`.
    public var fence: Int64
    /// The devices' ids.
    public var devices: [String]
    /// It is the lock that this program was started under, and not this program's to unlock.
    public var isJoined = false

    init(_ json: JSONValue) throws(ClientError) {
        guard let token = json["lock"]?.string, let fence = json["fence"]?.integer,
            let devices = json["devices"]?.array?.compactMap(\.string)
        else { throw .unreadable("The bus answered device.lock without a lock.") }
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
}

extension Client {
    /// The lock that this program was started under, if it covers all of the devices; nil: there is none, or it is about others.
    private func joinedLock(_ devices: [String], timeout: Duration) async throws(ClientError) -> DeviceLock? {
        guard let token = defaultLock else { return nil }
        let result = try await repeatedCall("device.renew", ["lock": .string(token)], timeout: timeout)
        let covered = result["devices"]?.array?.compactMap(\.string) ?? devices
        var devices = devices
        // What is no device of the lock may be a rig of devices that are.
        if !Set(devices).isSubset(of: covered) { devices = try await expandingRigs(devices, timeout: timeout) }
        let missing = devices.filter { !covered.contains($0) }
        guard missing.isEmpty else {
            if missing.count == devices.count { return nil }
            let message =
                "The lock in $CAMERABUS_LOCK, under which this program was started, does not cover "
                + "\(missing.joined(separator: ", ")), and a lock on all would have to wait for it: lock all of them there."
            throw .refused(BusError(.lockRequired, message, ["devices": JSONValue(missing)]))
        }
        return DeviceLock(joining: token, fence: result["fence"]?.integer ?? 0, devices: covered)
    }

    /// Locks devices for configuration, all or none of them.
    ///
    /// A program that was started under a lock (``defaultLock``) which covers all of the devices joins that one, as it would else wait
    /// for its own parent. One that covers some of them only is refused with `lockRequired`, and one that is over with `lockLost`.
    ///
    /// - Parameters:
    ///   - wait: how long to stand in the queue; nothing: it is now or never.
    ///   - lease: how long it lasts unless renewed; nil: as long as this process.
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
        let result = try await patientCall("device.lock", .object(params), timeout: wait + timeout) { result in
            result["lock"].map { [("device.unlock", ["lock": $0])] } ?? []
        }
        return try DeviceLock(result)
    }

    /// Takes devices from whoever has them locked; for administrators. The loser's lock ends as a whole, and it is told.
    ///
    /// - Parameters:
    ///   - lease: how long it lasts unless renewed; nil: as long as this process.
    ///   - note: what for; all can read it.
    /// - Throws: ``ClientError/refused(_:)`` with `unauthorized` or `deviceNotFound`.
    public func takeOver(
        _ devices: [String], lease: Duration? = nil, note: String? = nil, timeout: Duration = defaultTimeout
    ) async throws(ClientError) -> DeviceLock {
        var params: [String: JSONValue] = ["devices": JSONValue(devices)]
        if let lease { params["lease"] = JSONValue(lease.clampedMilliseconds) }
        if let note { params["note"] = .string(note) }
        let result = try await patientCall("device.takeOver", .object(params), timeout: timeout) { result in
            result["lock"].map { [("device.unlock", ["lock": $0])] } ?? []
        }
        return try DeviceLock(result)
    }

    /// Ends a lock, unless it was joined.
    ///
    /// - Returns: false: it could not be written to the disk, and a bus that is started after this one may have it still.
    /// - Throws: ``ClientError/refused(_:)`` with `lockLost` when it had ended before.
    @discardableResult
    public func unlock(_ lock: DeviceLock, timeout: Duration = defaultTimeout) async throws(ClientError) -> Bool {
        guard !lock.isJoined else { return true }
        let answer = try await repeatedCall("device.unlock", ["lock": .string(lock.token)], timeout: timeout) {
            $0.reason == .lockLost
        }
        return answer["kept"]?.bool ?? true
    }

    /// Starts a lock's lease anew.
    ///
    /// - Throws: ``ClientError/refused(_:)`` with `internalError` when that could not be written to the disk: its lease ends when it did.
    public func renew(_ lock: DeviceLock, timeout: Duration = defaultTimeout) async throws(ClientError) {
        _ = try await repeatedCall("device.renew", ["lock": .string(lock.token)], timeout: timeout)
    }

    /// A third of the time that a lock lasts of a process that the bus can't see, as all on other machines.
    private static let renewal = Duration.seconds(3)

    /// Locks devices while the body runs, and unlocks them however it ends. Where the bus can't see this process, the lock is renewed meanwhile.
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
        let renewing =
            greeting.pid > 0
            ? nil
            : Task {
                while (try? await Task.sleep(for: Self.renewal)) != nil { try? await renew(lock, timeout: timeout) }
            }
        defer { renewing?.cancel() }
        let outcome: Swift.Result<Result, any Error>
        do { outcome = .success(try await body(lock)) } catch { outcome = .failure(error) }
        // A cancelled task must give its lock back too: another task does it.
        let release = Task { _ = try? await unlock(lock, timeout: timeout) }
        await release.value
        return try outcome.get()
    }
}
