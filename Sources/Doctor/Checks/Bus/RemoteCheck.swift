/// Whether a bus on another machine is reachable, and with which role.
struct RemoteCheck: Check {
    let id = "remote"

    func examine(_ facts: Facts) -> Outcome {
        guard let remote = facts.remote else { return .skipped("the bus is on this machine") }
        if let problem = remote.problem { return .faulty([finding(problem, remote)]) }
        var parts = ["\(remote.address) accepts this client"]
        if let name = remote.name, let role = remote.role { parts[0] += " as '\(name)' with the role \(role)" }
        if let time = remote.roundTrip { parts.append("\(milliseconds(time)) ms round trip") }
        let closed = remote.closedPorts.map { port in
            Finding(
                "remote-port-closed", "\(remote.host):\(port)",
                meaning: "Port \(port) accepts no connections. The gateway needs it for "
                    + "\(remote.address.hasSuffix(":\(port - 1)") ? "state and events" : "pictures and sound").",
                remedy: "nc -vz \(remote.host.shellWord) \(port)",
                advice: "A firewall must allow three ports: the request port and the next two.")
        }
        var notes = [
            "These are only reports of the bus. To check the machine itself: \(remote.there("camerabus doctor"))"
        ]
        if remote.role == "view" {
            notes.append(
                "The role view allows no changes. 'camerabus keys role NAME control' there allows them.")
        }
        return .of(closed, healthy: parts.joined(separator: ", "), notes: notes)
    }

    private func finding(_ problem: RemoteFacts.Problem, _ remote: RemoteFacts) -> Finding {
        Finding(
            problem.rawValue, remote.address, meaning: remote.meaning ?? "It is not reachable.",
            remedy: remedy(problem, remote), advice: advice(problem))
    }

    private func remedy(_ problem: RemoteFacts.Problem, _ remote: RemoteFacts) -> String {
        switch problem {
        case .settings: "camerabus keys --help"
        case .name: "getent hosts \(remote.host.shellWord)"
        case .refused: remote.there("systemctl status camerabus-gateway")
        case .silence: "ping -c 3 \(remote.host.shellWord)"
        case .port: remote.there("sudo grep listen /etc/camerabus/gateway.toml")
        case .serverKey: remote.there("camerabus keys server")
        case .key: remote.there("sudo camerabus keys add NAME \((remote.key ?? "KEY").shellWord) --role control")
        }
    }

    private func advice(_ problem: RemoteFacts.Problem) -> String? {
        switch problem {
        case .settings:
            "$CAMERABUS_SERVER_KEY is the public key of the gateway, or a file that contains it. $CAMERABUS_KEY is the "
                + "file from "
                + "'camerabus keys new'."
        case .silence: "If the machine itself answers, a firewall may block the port."
        case .key: "Choose any name; others see it as the holder of locks."
        case .name, .refused, .port, .serverKey: nil
        }
    }
}

/// Nanoseconds as milliseconds, to two places: `0.42`.
func milliseconds(_ nanoseconds: Int64) -> String {
    let hundredths = nanoseconds.magnitude / 10_000
    let rest = hundredths % 100
    return "\(nanoseconds < 0 ? "-" : "")\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
}
