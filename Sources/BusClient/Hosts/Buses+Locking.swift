/// Devices of several machines, locked for configuration, until ``Buses/unlock(_:timeout:)``. Each machine's are one
/// lock.
public struct HostLocks: Sendable {
    struct Held: Sendable {
        var member: Buses.Member
        var lock: DeviceLock
    }

    /// In the order in which they were taken.
    var held: [Held] = []

    /// What the machines are called whose devices these are, in the order in which they were locked.
    public var hosts: [String] { held.map(\.member.host) }

    /// The lock of one machine's devices, for what is asked of its client; nil: none of its devices is locked by this.
    public subscript(host: String) -> DeviceLock? { held.first { $0.member.host == host }?.lock }

    /// How those ended that were lost, as far as is known (``DeviceLock/loss``), by host.
    public var losses: [String: LockLoss] {
        var found: [String: LockLoss] = [:]
        for each in held { found[each.member.host] = each.lock.loss }
        return found
    }
}

extension Buses {
    /// Locks devices of several machines, all or none of them.
    ///
    /// They are taken in the order of the hosts' names, so that two programs never wait for one another in a circle.
    ///
    /// - Parameters:
    ///   - names: each `host/device`.
    ///   - wait: how long to stand in the queue, of each machine; nothing: it is now or never.
    ///   - lease: how long they last unless renewed by ``renew(_:timeout:)``; nil: the
    ///     default of ``Client/lock(_:wait:lease:note:timeout:)``.
    ///   - note: what for; all can read it.
    public func lock(
        _ names: [String], wait: Duration = .zero, lease: Duration? = nil, note: String? = nil,
        timeout: Duration = Client.defaultTimeout
    ) async throws(BusesError) -> HostLocks {
        let wanted = try places(names)
        var locks = HostLocks()
        for member in members {
            let devices = wanted.filter { $0.member.host == member.host }.map(\.device)
            if devices.isEmpty { continue }
            do throws(ClientError) {
                let lock = try await member.client.lock(
                    devices, wait: wait, lease: lease, note: note, timeout: timeout)
                locks.held.append(HostLocks.Held(member: member, lock: lock))
            } catch {
                await giveBack(locks, timeout: timeout)
                throw .at(host: member.host, error)
            }
        }
        return locks
    }

    /// Gives all back, the last one first. Where that goes wrong with some, the others are given back all the same.
    ///
    /// - Returns: false: it could not be written to some machine's disk; see ``Client/unlock(_:timeout:)``.
    /// - Throws: what went wrong first.
    @discardableResult
    public func unlock(_ locks: HostLocks, timeout: Duration = Client.defaultTimeout) async throws(BusesError) -> Bool {
        var first: BusesError?
        var isKept = true
        for each in locks.held.reversed() {
            do throws(ClientError) {
                if try await !each.member.client.unlock(each.lock, timeout: timeout) { isKept = false }
            } catch {
                if first == nil { first = BusesError.at(host: each.member.host, error) }
            }
        }
        if let first { throw first }
        return isKept
    }

    /// Starts their leases anew.
    public func renew(_ locks: HostLocks, timeout: Duration = Client.defaultTimeout) async throws(BusesError) {
        for each in locks.held {
            do throws(ClientError) {
                try await each.member.client.renew(each.lock, timeout: timeout)
            } catch {
                throw .at(host: each.member.host, error)
            }
        }
    }

    /// Locks devices of several machines while the body runs, and unlocks them however it ends. One that is lost
    /// meanwhile (``HostLocks/losses``) does not end the body.
    public func withLock<Result>(
        _ names: [String], wait: Duration = .zero, note: String? = nil, timeout: Duration = Client.defaultTimeout,
        _ body: (HostLocks) async throws -> Result
    ) async throws -> Result {
        let locks = try await lock(names, wait: wait, note: note, timeout: timeout)
        let outcome: Swift.Result<Result, any Error>
        do { outcome = .success(try await body(locks)) } catch { outcome = .failure(error) }
        await giveBack(locks, timeout: timeout)
        return try outcome.get()
    }

    // A cancelled task must give its locks back too: another task does it.
    private func giveBack(_ locks: HostLocks, timeout: Duration) async {
        let release = Task { _ = try? await unlock(locks, timeout: timeout) }
        await release.value
    }
}
