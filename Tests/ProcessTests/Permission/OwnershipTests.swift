import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// What belongs to a user, as another one with the same role meets it.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct Ownership
    {
        private static let (owner, other) = (OtherUser.first, OtherUser.second)

        private func bus() async throws -> BusHarness {
            let users = "[permission.users]\n\(Self.owner.uid) = \"control\"\n\(Self.other.uid) = \"control\"\n"
            return try await BusHarness(virtual: 2, configuration: OtherUser.configuration + users)
        }

        /// The other user is refused, and learns whose it is.
        private func expectRefused(_ reply: JSONValue, sourceLocation: SourceLocation = #_sourceLocation) {
            let data = reply["error"]?["data"]
            #expect(data?["reason"] == "unauthorized", "\(reply)", sourceLocation: sourceLocation)
            #expect(data?["owner"] == JSONValue(Self.owner.uid), "\(reply)", sourceLocation: sourceLocation)
            let message = reply["error"]?["message"]?.string ?? ""
            #expect(message.contains("uid \(Self.owner.uid)"), "\(reply)", sourceLocation: sourceLocation)
        }

        @Test func `rigs, profiles and sessions of others are used, and not changed`() async throws {
            let bus = try await bus()
            let admin = try RawClient(path: bus.directory.commandSocket)
            let made = try await bus.ask(
                as: Self.owner,
                [
                    ("rig.set", ["name": "pair", "devices": ["cam0", "cam1"]]),
                    ("profile.save", ["name": "day", "devices": "cam0"]),
                    ("session.create", ["inputs": ["cam0"], "detached": true]),
                ]
            ).replies
            #expect(made[0]["result"]?["rig"]?["owner"] == JSONValue(Self.owner.uid), "\(made)")
            #expect(made[1]["result"]?["profile"]?["owner"] == JSONValue(Self.owner.uid), "\(made)")
            let session = try #require(made[2]["result"]?["session"], "\(made)")

            let changes: [(method: String, params: JSONValue)] = [
                ("rig.set", ["name": "pair", "devices": ["cam1"]]), ("rig.delete", ["name": "pair"]),
                ("profile.save", ["name": "day", "devices": "cam1"]), ("profile.delete", ["name": "day"]),
                ("session.configure", ["session": session, "actions": [["priority": -1]]]),
                ("session.start", ["session": session]), ("session.stop", ["session": session]),
                ("session.switchCamera", ["session": session]), ("session.delete", ["session": session]),
            ]
            for reply in try await bus.ask(as: Self.other, changes).replies { expectRefused(reply) }
            // Everybody sees and uses them.
            let uses: [(method: String, params: JSONValue)] = [
                ("rig.list", [:]), ("profile.list", [:]), ("session.get", ["session": session]),
                ("profile.apply", ["name": "day"]), ("device.lock", ["devices": "pair"]),
            ]
            for reply in try await bus.ask(as: Self.other, uses).replies { #expect(reply["result"] != nil, "\(reply)") }
            let state = try admin.call("bus.snapshot", ["prefix": "state/rig/"])["state"]
            #expect(state?["state/rig/pair/"]?["devices"]?.array?.count == 2)

            // An administrator may, and it stays its user's.
            let changed = try admin.call("rig.set", ["name": "pair", "devices": ["cam1", "cam0"]])
            #expect(changed["rig"]?["owner"] == JSONValue(Self.owner.uid))
            for reply in try await bus.ask(as: Self.owner, changes).replies {
                #expect(reply["result"] != nil, "\(reply)")
            }
            try await bus.stop()
        }

        @Test func `a priority above 0 is an administrator's to give`() async throws {
            let bus = try await bus()
            let admin = try RawClient(path: bus.directory.commandSocket)
            let low: JSONValue = ["inputs": ["cam0"], "detached": true, "priority": -5]
            let first = try await bus.ask(
                as: Self.owner, [("session.create", ["inputs": ["cam0"], "priority": 1]), ("session.create", low)]
            ).replies
            let refusal = first[0]["error"]
            #expect(refusal?["data"]?["reason"] == "unauthorized" && refusal?["data"]?["needed"] == "admin", "\(first)")
            let session = try #require(first[1]["result"]?["session"], "\(first)")
            func configure(_ priority: Int64) -> (method: String, params: JSONValue) {
                ("session.configure", ["session": session, "actions": [["priority": .integer(priority)]]])
            }
            func canAdd(_ priority: Int64) -> (method: String, params: JSONValue) {
                ("session.canAdd", ["session": session, "action": ["priority": .integer(priority)]])
            }
            let second = try await bus.ask(as: Self.owner, [configure(0), configure(1), canAdd(1), canAdd(-1)]).replies
            #expect(second[0]["result"] != nil && second[1]["error"]?["data"]?["reason"] == "unauthorized", "\(second)")
            #expect(second[2]["result"]?["can"] == false && second[2]["result"]?["reason"] == "unauthorized")
            #expect(second[3]["result"]?["can"] == true)
            // What an administrator has given may be kept, or lowered.
            let given = configure(7)
            try admin.call(given.method, given.params)
            let third = try await bus.ask(as: Self.owner, [configure(7), configure(8), configure(3), configure(4)])
                .replies
            #expect(third.map { $0["result"] != nil } == [true, false, true, false], "\(third)")
            try await bus.stop()
        }
    }
}
