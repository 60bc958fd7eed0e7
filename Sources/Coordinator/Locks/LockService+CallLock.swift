import BusServer
import CaptureCore
import LinuxIO

extension LockService {
    /// Locks devices for one call. The lock is given back before the reply.
    ///
    /// - Parameters:
    ///   - wait: nanoseconds for which another lock is waited for.
    ///   - onWait: gets the ticket to cancel with where there is something to wait for.
    ///   - respond: gets the call's answer, or why there was no lock.
    ///   - call: gets the lock's fence, and calls its second argument once.
    func withTransientLock(
        on devices: [String], for holder: LockHolder, wait: Int64 = 0, onWait: (_ ticket: UInt64) -> Void = { _ in },
        then respond: @escaping Responder,
        _ call: @escaping (_ fence: UInt64, _ done: @escaping Responder) -> Void
    ) {
        var wish = Wish(devices: devices, holder: holder, isTransient: true)
        wish.wait = wait
        let ticket = request(wish) { [weak self] granted in
            switch granted {
            case .failure(let error): respond(.failure(error))
            case .success(let grant):
                call(grant.lock.fence) { result in
                    // The lock may have ended before its call did; then there is nothing to give back.
                    _ = try? self?.unlock(token: grant.token)
                    respond(result)
                }
            }
        }
        if isWaiting(ticket) { onWait(ticket) }
    }
}

extension LockHolder {
    /// This process, where it does something by itself.
    static let ourselves = LockHolder(
        uid: CurrentProcess.uid, gid: CurrentProcess.gid, pid: CurrentProcess.pid,
        startTime: ProcessTable.startTime(of: CurrentProcess.pid), name: "camerabusd")
}
