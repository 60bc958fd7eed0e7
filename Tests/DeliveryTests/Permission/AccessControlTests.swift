import CaptureCore
import Testing

@testable import Delivery

@Suite("Who may connect") struct AccessControlTests {
    @Test func `a user who is refused is reported once, and again if that report could not be sent`() {
        let access = AccessControl(.closed(owner: 1))
        var reports: [UInt32] = []
        var canSend = false
        access.onRefused = { uid, _, _ in
            reports.append(uid)
            return canSend
        }
        func refuse(_ uid: UInt32) { #expect(!access.admit(uid: uid, gid: uid, pid: 5)) }
        refuse(7)
        refuse(7)
        #expect(reports == [7, 7])
        canSend = true
        for uid: UInt32 in [7, 7, 8, 7, 8] { refuse(uid) }
        #expect(reports == [7, 7, 7, 8])
        #expect(access.refused == 7)
        // Another coordinator is told anew.
        access.forgetReported()
        refuse(8)
        #expect(reports.last == 8 && reports.count == 5)
    }
}
