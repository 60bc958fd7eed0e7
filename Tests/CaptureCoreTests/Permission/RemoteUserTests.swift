import BusProtocol
import CaptureCore
import JSON
import Testing

/// Those on other machines, as users.
@Suite struct RemoteUserTests {
    private let laptop = RemoteUser.uid(named: "laptop")

    private func book(_ change: (inout AuthorizationPolicy) -> Void = { _ in }) -> AuthorizationTable {
        var policy = AuthorizationPolicy(owner: 900)
        policy.standard = .control
        change(&policy)
        return AuthorizationTable(policy: policy)
    }

    @Test func `a name has the same number always, which no user of this machine has`() {
        #expect(laptop == RemoteUser.uid(named: "laptop") && laptop != RemoteUser.uid(named: "desk"))
        for name in ["", "a", "laptop", "küche", String(repeating: "x", count: 128)] {
            #expect(RemoteUser.uids.contains(RemoteUser.uid(named: name)))
        }
        #expect(RemoteUser.uids.lowerBound == 4_026_531_840 && RemoteUser.uids.upperBound == 4_294_967_280)
    }

    @Test func `until a gateway says who it is, it may nothing, whatever others may`() {
        let book = book { $0.users[RemoteUser.uid(named: "laptop")] = .admin }
        #expect(book.role(uid: laptop, groups: [0]) == AuthorizationRole.none)
        #expect(book.status(uid: laptop, groups: [0], media: .video) == .restricted)
    }

    @Test func `its role is what the gateway said last`() {
        var book = book()
        book.policy.remotes[laptop] = .view
        #expect(book.status(uid: laptop, groups: [], media: .video) == .authorized)
        #expect(!book.mayChange(uid: laptop, groups: [], media: .video))
        book.policy.remotes[laptop] = .control
        #expect(book.mayChange(uid: laptop, groups: [], media: .video))
        book.policy.remotes[laptop] = AuthorizationRole.none
        #expect(!book.mayChange(uid: laptop, groups: [], media: .video))
    }

    @Test func `it never comes to a device's door`() throws {
        var book = book()
        book.policy.remotes[laptop] = .admin
        let told = try #require(AccessList(json: book.accessList(.video).json))
        #expect(!told.admits(uid: laptop, gid: 0) && told.admits(uid: 1000, gid: 1000))
    }

    @Test func `what one has ends without what another has in the same process`() {
        var table = LockTable()
        for (index, uid) in [laptop, RemoteUser.uid(named: "desk")].enumerated() {
            let holder = LockHolder(uid: uid, gid: 0, pid: 7, startTime: 5, name: "\(uid)")
            let request = LockRequest(
                ticket: UInt64(index), lockID: "l\(index)", tokenHash: "t\(index)", devices: ["cam\(index)"],
                holder: holder)
            _ = table.request(request, at: 0)
        }
        _ = table.endHolder(pid: 7, startTime: 5, uid: laptop, cause: .connectionLost, at: 1)
        #expect(table.lock(on: "cam0") == nil && table.lock(on: "cam1") != nil)
        _ = table.endHolder(pid: 7, startTime: 5, cause: .holderExited, at: 2)
        #expect(table.locks.isEmpty)
    }

    @Test func `what one has ends, also where its gateway's process can't be seen`() {
        var table = LockTable()
        for (index, uid) in [laptop, RemoteUser.uid(named: "desk"), laptop].enumerated() {
            let holder = LockHolder(uid: uid, gid: 0, pid: 0, name: "\(uid)")
            let request = LockRequest(
                ticket: UInt64(index), lockID: "l\(index)", tokenHash: "t\(index)", devices: ["cam\(min(1, index))"],
                holder: holder, wait: 100)
            _ = table.request(request, at: 0)
        }
        #expect(table.waitingTickets == [2])
        // Of a local one it isn't known whose it is.
        _ = table.endHolder(pid: 0, startTime: nil, cause: .connectionLost, at: 1)
        #expect(table.waitingTickets == [2] && table.locks.count == 2)
        _ = table.endHolder(pid: 0, startTime: nil, uid: laptop, cause: .connectionLost, at: 1)
        #expect(table.waitingTickets.isEmpty && table.lock(on: "cam0") == nil && table.lock(on: "cam1") != nil)
    }

    @Test func `its role is no higher than the configuration lets it be`() {
        var book = book { $0.remoteLimit = .view }
        book.policy.remotes[laptop] = .admin
        #expect(book.role(uid: laptop, groups: []) == .view)
        #expect(!book.mayChange(uid: laptop, groups: [], media: .video))
        book.policy.remoteLimit = .admin
        #expect(book.role(uid: laptop, groups: []) == .admin)
    }

    @Test func `what a role comes to is the same for requests and for media`() throws {
        for limit in [AuthorizationRole.none, .view, .control, .admin] {
            for viewHasSound in [true, false] {
                var book = book {
                    $0.remoteLimit = limit
                    $0.viewHasSound = viewHasSound
                }
                let permission = RemotePermission(book.policy)
                #expect(RemotePermission(json: permission.json) == permission)
                for role in [AuthorizationRole.view, .control, .admin, .none] {
                    book.policy.remotes[laptop] = role
                    for media in AuthorizationMedia.allCases {
                        let isAllowed = book.status(uid: laptop, groups: [], media: media) == .authorized
                        #expect((permission.refusal(of: role, media) == nil) == isAllowed, "\(limit) \(role) \(media)")
                    }
                }
            }
        }
    }

    @Test func `a refusal names what refuses`() {
        func message(_ role: AuthorizationRole, _ media: AuthorizationMedia, _ limit: AuthorizationRole) -> String {
            var policy = AuthorizationPolicy(owner: 900)
            (policy.remoteLimit, policy.viewHasSound) = (limit, false)
            return RemotePermission(policy).refusal(of: role, media)?.message ?? ""
        }
        #expect(message(.admin, .video, .none).contains("permission.remote_role"))
        #expect(message(.control, .audio, .view).contains("permission.remote_role"))
        #expect(message(.view, .audio, .admin).contains("permission.view_sound"))
        #expect(message(.view, .library, .admin).contains("keys role"))
        #expect(message(.control, .audio, .control) == "")
        // What a gateway does not understand allows nothing.
        #expect(
            RemotePermission(json: ["view": ["role": "king", "media": ["video"]]]).refusal(of: .view, .video) != nil)
        #expect(RemotePermission(json: [:]).refusal(of: .admin, .video) != nil)
    }

    @Test func `of whom no gateway has spoken yet nothing is known, and of others all`() {
        var book = book()
        #expect(book.isUnheard(uid: laptop) && !book.isUnheard(uid: 1000))
        book.policy.remotes[laptop] = AuthorizationRole.none
        #expect(!book.isUnheard(uid: laptop))
    }

    @Test func `its key says what it may, and no administrator, not even once`() {
        var book = book { $0.groups[7] = .ask }
        let decision = AuthorizationTable.Decision(isGranted: true, isOnce: true, since: 1, by: 0)
        #expect(throws: AuthorizationTable.Refusal.configured(.none)) {
            try book.decide(uid: laptop, media: .video, decision)
        }
        #expect(throws: Never.self) { try book.decide(uid: 1000, media: .video, decision) }
    }

    @Test func `others are told no process of it, and the next coordinator is`() {
        let holder = LockHolder(uid: laptop, gid: 0, pid: 7, startTime: 5, name: "laptop")
        #expect(holder.json["pid"] == 0 && holder.keptJSON["pid"] == 7)
        #expect(LockHolder(uid: 1000, gid: 0, pid: 7, name: "probe").json["pid"] == 7)
    }
}
