/// Whether the bus lets this user see cameras, and change them.
struct PermissionCheck: Check {
    let id = "permission"

    func examine(_ facts: Facts) -> Outcome {
        guard facts.bus.isAnswering else { return .skipped("no bus answers") }
        guard let status = facts.bus.videoPermission else { return .skipped("this bus asks nobody for permission") }
        let uid = facts.user.uid
        // Over there our uid, if there is one, is somebody else.
        if let remote = facts.remote, status != "authorized" { return Self.remote(remote) }
        switch status {
        case "authorized":
            let count = facts.bus.waitingRequests
            let notes =
                count == 0
                ? []
                : ["\(count) request\(count == 1 ? "" : "s") for permission wait: 'camerabus permissions' lists them."]
            return .healthy("you may see cameras", notes: notes)
        case "notDetermined":
            return .faulty([
                Finding(
                    "permission-not-asked", meaning: "Nobody has decided whether you (uid \(uid)) may see cameras.",
                    remedy: "camerabus ask video --reason 'what for' --wait 60",
                    advice: "An administrator answers it with 'camerabus allow \(uid) video'.")
            ])
        case "denied":
            return .faulty([
                Finding(
                    "permission-denied", meaning: "An administrator has refused you (uid \(uid)) the cameras.",
                    remedy: "sudo camerabus allow \(uid) video")
            ])
        default:
            return .faulty([
                Finding(
                    "permission-restricted",
                    meaning: "The configuration of the bus keeps you (uid \(uid)) from the cameras.",
                    remedy: "sudoedit /etc/camerabus/camerabus.toml",
                    advice: "See [permission] there; 'systemctl reload camerabusd' has it read again.")
            ])
        }
    }

    private static func remote(_ remote: RemoteFacts) -> Outcome {
        let name = remote.name ?? "this key"
        return .faulty([
            Finding(
                "permission-remote",
                meaning:
                    "The bus over there keeps \(name)\(remote.role.map { ", which has the role \($0)," } ?? "") from the cameras.",
                remedy: "sudoedit /etc/camerabus/camerabus.toml",
                advice:
                    "See remote_role of [permission] there; 'systemctl reload camerabusd' has it read again. What a key's role is, "
                    + "'camerabus keys list' says there.")
        ])
    }
}
