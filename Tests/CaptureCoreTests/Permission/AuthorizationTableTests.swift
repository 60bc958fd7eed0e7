import CaptureCore
import JSON
import Testing

/// Who may do what, by role and by decision.
@Suite struct AuthorizationTableTests {
    private static let owner: UInt32 = 900
    private static let question = AuthorizationTable.Question(reason: "a test", since: 1, pid: 7, program: "probe")

    private func table(_ change: (inout AuthorizationPolicy) -> Void = { _ in }) -> AuthorizationTable {
        var policy = AuthorizationPolicy(owner: Self.owner)
        change(&policy)
        return AuthorizationTable(policy: policy)
    }

    private func decision(_ isGranted: Bool, once: Bool = false) -> AuthorizationTable.Decision {
        AuthorizationTable.Decision(isGranted: isGranted, isOnce: once, since: 5, by: 0)
    }

    @Test func `root and the bus's own user may do all, whatever is said of them`() {
        let table = table {
            $0.standard = .none
            $0.users = [0: .none, Self.owner: .view]
            $0.groups = [0: .none]
        }
        for uid in [0, Self.owner] {
            #expect(table.role(uid: uid, groups: [0]) == .admin)
            for media in AuthorizationMedia.allCases {
                #expect(table.status(uid: uid, groups: [0], media: media) == .authorized)
                #expect(table.mayChange(uid: uid, groups: [0], media: media))
            }
        }
        #expect(table.status(uid: 1000, groups: [1000], media: .video) == .restricted)
    }

    @Test func `a user's rule goes before groups, and of groups the one with most rights counts`() {
        let table = table {
            $0.users = [1: .none, 2: .control]
            $0.groups = [10: .view, 11: .control, 12: .none]
            $0.members = [3: .view, 4: .none]
        }
        #expect(table.role(uid: 1, groups: [11]) == .none)
        #expect(table.role(uid: 2, groups: [12]) == .control)
        #expect(table.role(uid: 3, groups: [12]) == .view)
        #expect(table.role(uid: 3, groups: [11]) == .control)
        #expect(table.role(uid: 4, groups: [10, 12]) == .view)
        #expect(table.role(uid: 5, groups: [12]) == .none)
        #expect(table.role(uid: 5, groups: [99]) == .ask)
    }

    @Test func `who only looks may see and hear, and changes nothing`() {
        let table = table { $0.users = [1: .view] }
        #expect(table.status(uid: 1, groups: [], media: .video) == .authorized)
        #expect(table.status(uid: 1, groups: [], media: .audio) == .authorized)
        #expect(table.status(uid: 1, groups: [], media: .library) == .restricted)
        #expect(!table.mayChange(uid: 1, groups: [], media: .video))
        #expect(table.accessList(.video).admits(uid: 1, gid: 1))
    }

    @Test func `without sound the role view sees only, and others and the gateway hear`() throws {
        let table = table {
            $0.users = [1: .view, 2: .control, 7: .view]
            $0.groups = [10: .view]
            $0.gateway = 7
            $0.viewHasSound = false
        }
        let hears = try #require(AccessList(json: table.accessList(.audio).json))
        let sees = try #require(AccessList(json: table.accessList(.video).json))
        for uid in [1, 5] as [UInt32] {
            #expect(table.status(uid: uid, groups: [10], media: .audio) == .restricted)
            #expect(table.status(uid: uid, groups: [10], media: .video) == .authorized)
            #expect(!hears.admits(uid: uid, gid: 10) && sees.admits(uid: uid, gid: 10))
        }
        for uid in [2, 7] as [UInt32] { #expect(hears.admits(uid: uid, gid: 1) && sees.admits(uid: uid, gid: 1)) }
        #expect(!table.mayChange(uid: 7, groups: [], media: .audio))
    }

    @Test func `only who is not decided about asks, and is answered for one medium`() throws {
        var table = table { $0.users = [1: .none, 2: .control] }
        let answer1 = try table.ask(uid: 1, groups: [], media: .video, Self.question)
        #expect(answer1 == .decided(.restricted))
        let answer2 = try table.ask(uid: 2, groups: [], media: .video, Self.question)
        #expect(answer2 == .decided(.authorized))
        let answer3 = try table.ask(uid: 3, groups: [], media: .video, Self.question)
        #expect(answer3 == .pending(isNew: true))
        let answer4 = try table.ask(uid: 3, groups: [], media: .video, Self.question)
        #expect(answer4 == .pending(isNew: false))
        #expect(table.questions[3]?[.video] == Self.question)
        try table.decide(uid: 3, media: .video, decision(true))
        #expect(table.questions.isEmpty)
        #expect(table.status(uid: 3, groups: [], media: .video) == .authorized)
        #expect(table.status(uid: 3, groups: [], media: .audio) == .notDetermined)
        #expect(table.mayChange(uid: 3, groups: [], media: .video))
        try table.decide(uid: 3, media: .video, decision(false))
        let answer5 = try table.ask(uid: 3, groups: [], media: .video, Self.question)
        #expect(answer5 == .decided(.denied))
        let forgotten = table.reset(uid: 3, media: AuthorizationMedia.allCases)
        #expect(forgotten == [.video])
        #expect(table.status(uid: 3, groups: [], media: .video) == .notDetermined)
        #expect(table.users.isEmpty)
    }

    @Test func `the bus asks by itself once, until that is reset`() throws {
        var table = table()
        let tried = AuthorizationTable.Question(reason: nil, since: 1, pid: 7, program: "probe")
        let first = table.askByItself(uid: 3, groups: [], media: .video, tried)
        let second = table.askByItself(uid: 3, groups: [], media: .video, tried)
        #expect(first && !second)
        // Who then says what for is told again; who tries again takes no reason away.
        let answer6 = try table.ask(uid: 3, groups: [], media: .video, Self.question)
        #expect(answer6 == .pending(isNew: true))
        let answer7 = try table.ask(uid: 3, groups: [], media: .video, tried)
        #expect(answer7 == .pending(isNew: false))
        #expect(table.questions[3]?[.video]?.reason == "a test")
        table.withdraw(uid: 3, media: .video)
        let third = table.askByItself(uid: 3, groups: [], media: .video, tried)
        table.reset(uid: 3, media: [.video])
        let fourth = table.askByItself(uid: 3, groups: [], media: .video, tried)
        #expect(!third && fourth)
    }

    @Test func `what the configuration has decided can't be decided otherwise`() throws {
        var closed = table {
            $0.users = [1: .control, 2: .none]
            $0.standard = .none
        }
        for uid in [0, 1, 2, 3, Self.owner] {
            #expect(throws: AuthorizationTable.Refusal.self) {
                try closed.decide(uid: uid, media: .video, decision(true))
            }
        }
        // A rule of a group that the user may come with leaves the choice.
        closed.policy.groups = [10: .ask]
        try closed.decide(uid: 3, media: .video, decision(true))
        #expect(closed.status(uid: 3, groups: [10], media: .video) == .authorized)
        #expect(closed.status(uid: 3, groups: [11], media: .video) == .restricted)
        #expect(closed.accessList(.video).admits(uid: 3, gid: 10))
        #expect(!closed.accessList(.video).admits(uid: 3, gid: 11))
    }

    @Test func `decisions are kept, those for once as long as the machine runs`() throws {
        var table = table()
        try table.decide(uid: 1, media: .video, decision(true))
        try table.decide(uid: 2, media: .audio, decision(false))
        try table.decide(uid: 3, media: .video, decision(true, once: true))
        let text = table.json(boot: "b1").description
        var same = self.table()
        try same.takeDecisions(try JSONValue(parsing: text), boot: "b1")
        #expect(same == table)
        #expect(same.onceUsers == [3])
        var later = self.table()
        try later.takeDecisions(try JSONValue(parsing: text), boot: "b2")
        #expect(later.decisions.keys.sorted() == [1, 2])
        let ended = same.endOnce(uid: 3)
        #expect(ended == [.video])
        #expect(same == later)
    }

    @Test(arguments: [
        "{}", #"{"version":2,"users":{}}"#, #"{"version":1}"#, #"{"version":1,"users":{"ann":{}}}"#,
        #"{"version":1,"users":{"1":{"video":{"status":"restricted","since":1,"by":0}}}}"#,
        #"{"version":1,"users":{"1":{"video":{"status":"authorized","by":0}}}}"#,
        #"{"version":1,"users":{"1":{"smell":{"status":"authorized","since":1,"by":0}}}}"#,
        #"{"version":1,"users":{"-1":{}}}"#,
    ])
    func `a file that is wrong in a part allows nothing`(_ text: String) throws {
        var table = table()
        #expect(throws: AuthorizationTable.Damage.self) {
            try table.takeDecisions(try JSONValue(parsing: text), boot: "b")
        }
        #expect(table.decisions.isEmpty)
    }

    @Test func `it is bounded`() throws {
        var table = table()
        for uid in 0..<UInt32(AuthorizationTable.maximumQuestions) {
            _ = try table.ask(uid: 1000 + uid, groups: [], media: .video, Self.question)
        }
        #expect(throws: AuthorizationTable.Refusal.tooMany(maximum: AuthorizationTable.maximumQuestions)) {
            try table.ask(uid: 5, groups: [], media: .video, Self.question)
        }
        for uid in 0..<UInt32(AuthorizationTable.maximumUsers) {
            try table.decide(uid: 1000 + uid, media: .video, decision(true))
        }
        #expect(throws: AuthorizationTable.Refusal.tooMany(maximum: AuthorizationTable.maximumUsers)) {
            try table.decide(uid: 5, media: .video, decision(true))
        }
    }

    /// A worker decides by itself, from what it was told: it must come to the same as the coordinator.
    @Test func `a worker's access list decides for each user as the table does`() throws {
        var generator = SeededGenerator(seed: 11)
        let roles = AuthorizationRole.allCases
        for _ in 0..<200 {
            var table = table { policy in
                policy.standard = roles.randomElement(using: &generator) ?? .ask
                for id in UInt32(1)...4 where Bool.random(using: &generator) {
                    policy.users[id] = roles.randomElement(using: &generator)
                }
                for id in UInt32(1)...4 where Bool.random(using: &generator) {
                    policy.groups[id] = roles.randomElement(using: &generator)
                }
                for id in UInt32(3)...6 where Bool.random(using: &generator) {
                    policy.members[id] = roles.randomElement(using: &generator)
                }
            }
            for uid in UInt32(1)...8 {
                try? table.decide(uid: uid, media: .video, decision(Bool.random(using: &generator)))
            }
            let list = try #require(AccessList(json: try JSONValue(parsing: table.accessList(.video).json.description)))
            #expect(list == table.accessList(.video))
            for uid in UInt32(0)...9 {
                for gid in UInt32(0)...5 {
                    let isAuthorized = table.status(uid: uid, groups: [gid], media: .video) == .authorized
                    #expect(list.admits(uid: uid, gid: gid) == isAuthorized)
                }
            }
        }
    }

    @Test func `where nothing is known only root and the own user come in`() {
        let list = AccessList.closed(owner: Self.owner)
        #expect(list.admits(uid: 0, gid: 0) && list.admits(uid: Self.owner, gid: 5))
        #expect(!list.admits(uid: 1000, gid: 0))
    }
}
