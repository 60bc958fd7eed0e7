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

/// The media of a permission, as an argument.
enum MediaArgument: String, ExpressibleByArgument, CaseIterable {
    case video, audio, libraryAdd, library
}

/// Texts about permission.
enum PermissionText {
    static let userHelp = ArgumentHelp("The user, by name or uid.", valueName: "user")
    static let resetHelp = ArgumentHelp(
        "Delete all decisions and requests of this user, given by name or uid.", valueName: "user")
    static let mediaHelp = ArgumentHelp(
        "video, audio, libraryAdd (store photos and movies) or library (read and delete them).",
        valueName: "media")
    /// The uids that people usually have on this machine.
    static let userCompletion = CompletionKind.shellCommand(
        "getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 { print $1 }'")

    /// `video and audio`
    static func list(_ words: [String]) -> String {
        words.count < 2 ? words.joined() : words.dropLast().joined(separator: ", ") + " and " + words[words.count - 1]
    }

    /// The meaning of a status for its user.
    ///
    /// - Parameter isKey: the user has a key on another machine; its role decides.
    static func meaning(_ status: String?, uid: Int64, _ media: String, isKey: Bool = false) -> String {
        switch status {
        case "denied" where isKey, "restricted" where isKey:
            "not allowed for this role (an administrator of that machine changes the role with 'camerabus keys role')"
        case "authorized": "allowed"
        case "denied": "refused by an administrator (an administrator allows it with 'camerabus allow \(uid) \(media)')"
        case "restricted": "refused by the configuration ([permission] in camerabus.toml)"
        case "notDetermined": "not decided (ask with 'camerabus ask \(media) --reason TEXT')"
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

    /// Sends the decision, and prints it.
    func carryOut(
        _ client: Client, isGranted: Bool, once: Bool, json: Bool, timeout: Duration
    ) async throws {
        var media = self.media.map(\.rawValue)
        if media.isEmpty {
            media = isGranted ? try await asked(client, timeout) : MediaArgument.allCases.map(\.rawValue)
        }
        let answer = try await client.decideAuthorization(
            uid: user.uid, media, isGranted: isGranted, once: once, timeout: timeout)
        if json { return try Output.json(answer) }
        let until = once ? " until the user's last program on the bus ends" : ""
        try Output.line(
            "\(user.description): \(PermissionText.list(media)) \(isGranted ? "allowed" : "refused")\(until).")
        PersistenceNote.note(answer)
    }

    // The media that the user has requested; video if there is no request.
    private func asked(_ client: Client, _ timeout: Duration) async throws -> [String] {
        let requests = try await client.authorizations(timeout: timeout)["requests"]?.array ?? []
        let asked = requests.filter { $0["uid"]?.integer == Int64(user.uid) }.compactMap { $0["media"]?.string }
        return asked.isEmpty ? ["video"] : asked
    }
}
