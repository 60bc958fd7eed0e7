import BusServer
import LinuxIO
import ZeroMQ

/// Watches processes that hold or wait for something, and notifies all listeners once when one has ended
/// (`pidfd_open`).
final class HolderWatcher {
    private struct Watched {
        let process: ProcessDescriptor
        let startTime: UInt64
        let token: Loop.Token
        var uses: Int
    }

    private let loop: Loop
    private var watched: [Int32: Watched] = [:]
    private var listeners: [(Int32, UInt64) -> Void] = []

    init(_ loop: Loop) { self.loop = loop }

    /// Calls the body with the pid and start time of each watched process that ends.
    func whenEnded(_ body: @escaping (_ pid: Int32, _ startTime: UInt64) -> Void) { listeners.append(body) }

    /// Watches a process once more.
    ///
    /// - Parameter startTime: when the process that we mean started; another one under its number is not it.
    /// - Returns: false when that process has ended.
    func retain(pid: Int32, startTime: UInt64) -> Bool {
        if let entry = watched[pid], entry.startTime == startTime {
            watched[pid]?.uses += 1
            return true
        }
        // The descriptor first, the start time second: a process that ends in between is seen by the descriptor.
        guard let process = try? ProcessDescriptor(pid: pid), ProcessTable.startTime(of: pid) == startTime else {
            return false
        }
        // Another process has the number: the one before it has ended, and its descriptor's turn has not come yet.
        ended(pid)
        let token = loop.watch(.descriptor(process.rawValue)) { [weak self] in self?.ended(pid) }
        watched[pid] = Watched(process: process, startTime: startTime, token: token, uses: 1)
        return true
    }

    /// Takes one ``retain(pid:startTime:)`` back.
    func release(pid: Int32, startTime: UInt64) {
        guard let entry = watched[pid], entry.startTime == startTime else { return }
        if entry.uses > 1 {
            watched[pid]?.uses -= 1
        } else {
            watched[pid] = nil
            loop.cancel(entry.token)
        }
    }

    private func ended(_ pid: Int32) {
        guard let entry = watched.removeValue(forKey: pid) else { return }
        loop.cancel(entry.token)
        for listener in listeners { listener(pid, entry.startTime) }
    }
}
