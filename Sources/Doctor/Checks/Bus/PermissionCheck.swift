/// Whether the bus lets this user see cameras, and change them.
struct PermissionCheck: Check {
    let id = "permission"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        guard let status = facts.bus.videoPermission else { return .skipped("this bus needs no permission") }
        let uid = facts.user.uid
        // Over there our uid, if there is one, is somebody else.
        if let remote = facts.remote, status != "authorized" { return Self.remote(remote) }
        switch status {
        case "authorized":
            let count = facts.bus.waitingRequests
            let notes =
                count == 0
                ? []
                : [
                    "\(count) request\(count == 1 ? "" : "s") for permission without an answer: 'camerabus "
                        + "permissions' lists them."
                ]
            return .healthy("you have permission for cameras", notes: notes)
        case "notDetermined":
            return .faulty([
                Finding(
                    "permission-not-asked", meaning: "Your permission for cameras (uid \(uid)) is not decided yet.",
                    remedy: "camerabus ask video --reason 'PURPOSE' --wait 60",
                    advice: "An administrator answers with 'camerabus allow \(uid) video'.")
            ])
        case "denied":
            return .faulty([
                Finding(
                    "permission-denied", meaning: "An administrator has refused cameras to you (uid \(uid)).",
                    remedy: "sudo camerabus allow \(uid) video")
            ])
        default:
            return .faulty([
                Finding(
                    "permission-restricted",
                    meaning: "The configuration of the bus refuses cameras to you (uid \(uid)).",
                    remedy: "sudoedit /etc/camerabus/camerabus.toml",
                    advice: "Change [permission] there, then run 'systemctl reload camerabusd'.")
            ])
        }
    }

    private static func remote(_ remote: RemoteFacts) -> Outcome {
        let name = remote.name ?? "this key"
        return .faulty([
            Finding(
                "permission-remote",
                meaning:
                    "The bus on the other machine refuses cameras to "
                    + "\(name)\(remote.role.map { " with the role \($0)" } ?? "").",
                remedy: "sudoedit /etc/camerabus/camerabus.toml",
                advice:
                    "Change remote_role in [permission] there, then run 'systemctl reload camerabusd'. "
                    + "'camerabus keys list' there shows the roles of keys.")
        ])
    }
}
