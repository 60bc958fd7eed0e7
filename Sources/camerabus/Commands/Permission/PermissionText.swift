import ArgumentParser
import BusClient
import BusProtocol
import JSON
import LinuxIO

/// A user as an argument: by number or by name.
struct UserArgument: ExpressibleByArgument, Hashable {
    var uid: UInt32
    var name: String?

    init?(argument: String) {
        if let uid = UInt32(argument), uid != .max {
            (self.uid, name) = (uid, UserDatabase.userName(uid))
        } else if let uid = UserDatabase.userID(named: argument) {
            (self.uid, name) = (uid, argument)
        } else {
            return nil
        }
    }

    init(uid: UInt32) { (self.uid, name) = (uid, UserDatabase.userName(uid)) }

    /// `ann (uid 1000)`
    var description: String { name.map { "\($0) (uid \(uid))" } ?? "uid \(uid)" }
}

/// What permission is for, as an argument.
enum MediaArgument: String, ExpressibleByArgument, CaseIterable {
    case video, audio, libraryAdd, library
}

/// What is said of permission, in people's words.
enum PermissionText {
    static let userHelp = ArgumentHelp("The user, by name or uid.", valueName: "user")
    static let resetHelp = ArgumentHelp(
        "Forget what was decided and asked about this user, by name or uid.", valueName: "user")
    static let mediaHelp = ArgumentHelp(
        "What: video, audio, libraryAdd (save photos and movies) or library (look at them, delete them).",
        valueName: "media")
    /// Users of this machine that a person has, by the usual numbers.
    static let userCompletion = CompletionKind.shellCommand(
        "getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 { print $1 }'")

    /// `video and audio`
    static func list(_ words: [String]) -> String {
        words.count < 2 ? words.joined() : words.dropLast().joined(separator: ", ") + " and " + words[words.count - 1]
    }

    /// What a status means to who has it.
    ///
    /// - Parameter isKey: it is a key's on another machine, of which its role decides.
    static func meaning(_ status: String?, uid: Int64, _ media: String, isKey: Bool = false) -> String {
        switch status {
        case "denied" where isKey, "restricted" where isKey:
            "not with this role ('camerabus keys role', typed by an administrator there, gives the key another)"
        case "authorized": "allowed"
        case "denied": "refused by an administrator ('camerabus allow \(uid) \(media)', typed by one, allows it)"
        case "restricted": "refused by the configuration ([permission] in camerabus.toml)"
        case "notDetermined": "not decided ('camerabus ask \(media) --reason TEXT' asks for it)"
        default: status ?? "-"
        }
    }
}

/// `camerabus allow` and `camerabus deny`.
struct PermissionDecision: ParsableArguments {
    @Argument(help: PermissionText.userHelp, completion: PermissionText.userCompletion)
    var user: UserArgument

    @Argument(help: PermissionText.mediaHelp)
    var media: [MediaArgument] = []

    /// Decides, and tells what about.
    func carryOut(
        _ client: Client, isGranted: Bool, once: Bool, json: Bool, timeout: Duration
    ) async throws {
        var media = self.media.map(\.rawValue)
        if media.isEmpty { media = try await asked(client, timeout) }
        let answer = try await client.decideAuthorization(
            uid: user.uid, media, isGranted: isGranted, once: once, timeout: timeout)
        if json { return try Output.json(answer) }
        let until = once ? " until it leaves the bus" : ""
        try Output.line(
            "\(user.description) is \(isGranted ? "allowed" : "refused") \(PermissionText.list(media))\(until).")
        PersistenceNote.note(answer)
    }

    // What the user has asked for; cameras, where it has asked for nothing.
    private func asked(_ client: Client, _ timeout: Duration) async throws -> [String] {
        let requests = try await client.authorizations(timeout: timeout)["requests"]?.array ?? []
        let asked = requests.filter { $0["uid"]?.integer == Int64(user.uid) }.compactMap { $0["media"]?.string }
        return asked.isEmpty ? ["video"] : asked
    }
}
