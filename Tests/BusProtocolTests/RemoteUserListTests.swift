import BusProtocol
import Testing

/// The file of those who are let in from other machines.
@Suite struct RemoteUserListTests {
    private let one = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
    private let other = "#ne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

    @Test func `a file is read, and written as it was`() throws {
        let text = "# who may look\n\nview \(one)  kitchen laptop\n  admin\t\(other) desk \n# the end\n"
        let keys = try RemoteUserList(parsing: text)
        #expect(keys.entries.map(\.name) == ["kitchen laptop", "desk"])
        #expect(keys[one]?.role == .view && keys[other]?.role == .admin && keys["x"] == nil)
        #expect(
            keys.text == "# who may look\n\nview \(one) kitchen laptop\nadmin \(other) desk\n# the end\n")
        #expect(try RemoteUserList(parsing: keys.text) == keys)
        #expect(try RemoteUserList(parsing: "").entries.isEmpty)
    }

    @Test func `lines end as editors elsewhere end them`() throws {
        let key = String(repeating: "k", count: 40)
        let keys = try RemoteUserList(parsing: "# of the rig\r\nview \(key) desk\r\n\r\n")
        #expect(keys.entries.map(\.name) == ["desk"])
        #expect(keys.text == "# of the rig\nview \(key) desk\n\n")
    }

    @Test(arguments: [
        "view", "view KEY", "owner KEY a", "none KEY a", "view KEYx a", "view KEY a\nview KEY b",
        "view KEY a\ncontrol OTHER a",
        "view KEY \u{7}", "KEY view a",
    ])
    func `a line that is wrong makes all of it wrong`(_ text: String) {
        let text = text.replacing("KEY", with: one).replacing("OTHER", with: other)
        #expect(throws: RemoteUserList.Problem.self) { try RemoteUserList(parsing: "control \(other)x\n\(text)\n") }
        #expect(throws: RemoteUserList.Problem.self) { try RemoteUserList(parsing: text) }
    }

    @Test func `keys are added, get other roles, and are taken out`() throws {
        var keys = try RemoteUserList(parsing: "# kept\n")
        try keys.add(.init(role: .view, key: one, name: "laptop"))
        #expect(throws: RemoteUserList.Problem.self) { try keys.add(.init(role: .view, key: one, name: "desk")) }
        #expect(throws: RemoteUserList.Problem.self) { try keys.add(.init(role: .view, key: other, name: "laptop")) }
        #expect(throws: RemoteUserList.Problem.self) { try keys.add(.init(role: .nobody, key: other, name: "desk")) }
        #expect(throws: RemoteUserList.Problem.self) { try keys.add(.init(role: .view, key: other, name: " desk")) }
        let changed = ["laptop", "desk"].map { keys.setRole(.control, of: $0) }
        #expect(changed == [true, false])
        #expect(keys.text == "# kept\ncontrol \(one) laptop\n")
        let removed = ["desk", "laptop"].map { keys.remove($0) }
        #expect(removed == [false, true])
        #expect(keys.text == "# kept\n")
    }

    @Test func `of tokens a line that is wrong stays, lets nobody in, and goes with its name`() throws {
        let token = "0123456789abcdef"
        let text = "# page\nview short Eve\ncontrol \(token)  Ada   Lovelace\nview \(token)x Bob\nview \(token)y Bob\n"
        var tokens = RemoteUserList(reading: text, by: .token)
        #expect(tokens.entries == [RemoteUserList.Entry(role: .control, key: token, name: "Ada Lovelace")])
        #expect(tokens.problems.map(\.line) == [2, 4, 5])
        #expect(!"\(tokens.problems)".contains("short"), "a token is told")
        #expect(throws: RemoteUserList.Problem.self) { try RemoteUserList(parsing: text, by: .token) }
        for name in ["Eve", "Bob", "Ada Lovelace", "Ada  Lovelace"] {
            #expect(throws: RemoteUserList.Problem.self) {
                try tokens.add(.init(role: .view, key: "\(token)z", name: name))
            }
        }
        let changed = ["Bob", "Bob", "Eve"].map { tokens.remove($0) }
        #expect(changed == [true, false, true])
        #expect(tokens.text == "# page\ncontrol \(token) Ada Lovelace\n")
    }

    @Test(arguments: [(15, false), (16, true), (128, true), (129, false)])
    func `tokens are neither short nor long`(length: Int, isOne: Bool) {
        let text = String(repeating: "-", count: length)
        #expect(RemoteCredential.token.isWellFormed(text) == isOne)
        #expect(!RemoteCredential.token.isWellFormed(text.dropLast() + "+"))
    }

    @Test func `a pair of keys is read from its file`() {
        let text = KeyFile.text(publicKey: one, secretKey: other, name: "laptop")
        let (whole, half) = (KeyFile.keys(in: text), KeyFile.keys(in: "public \(one)\n"))
        #expect(whole.publicKey == one && whole.secretKey == other)
        #expect(half.publicKey == one && half.secretKey == nil)
        #expect(KeyFile.keys(in: "public x\nsecret\n").publicKey == nil)
    }

    @Test func `a public key is read from whatever file it comes in`() {
        let pair = KeyFile.text(publicKey: one, secretKey: other, name: "laptop")
        for text in [pair, "public \(one)\n", "\(one)\n", one, "# laptop\n\n\(one)\n"] {
            #expect(KeyFile.publicKey(in: text) == one, "\(text)")
        }
        for text in ["", "secret \(other)\n", "\(one)\n\(other)\n", "\(one) laptop\n", "x\n"] {
            #expect(KeyFile.publicKey(in: text) == nil, "\(text)")
        }
    }
}
