import BusProtocol
import Testing

@testable import CaptureCore

/// Who may not change a device any more keeps no lock on it, and waits for none.
@Suite struct LockPermissionTests {
    private func request(_ ticket: UInt64, _ devices: [String], uid: UInt32, wait: Int64 = 0) -> LockRequest {
        LockRequest(
            ticket: ticket, lockID: "l\(ticket)", tokenHash: "t\(ticket)", devices: devices,
            holder: LockHolder(uid: uid, gid: uid, pid: Int32(ticket), startTime: 1, name: "p"), wait: wait, lease: nil)
    }

    @Test func `locks and waits of a user without permission end, and the next in the queue is served`() throws {
        var table = LockTable()
        _ = table.request(request(1, ["a", "b"], uid: 5), at: 0)
        _ = table.request(request(2, ["c"], uid: 5), at: 0)
        _ = table.request(request(3, ["b"], uid: 5, wait: 100), at: 0)
        _ = table.request(request(4, ["b"], uid: 6, wait: 100), at: 0)
        let actions = table.endUnauthorized(at: 1) { holder, devices in holder.uid == 5 && devices.contains("b") }
        #expect(table.locks.map(\.id) == ["l2", "l4"])
        #expect(table.waitingTickets.isEmpty)
        #expect(actions.contains(.refuse(ticket: 3, .permissionTaken)))
        #expect(
            actions.contains { if case .end(let lock, .permissionTaken, _) = $0 { lock.id == "l1" } else { false } })
        #expect(LockTable.Refusal.permissionTaken.error().reason == .unauthorized)
    }
}
