/// Whether the way to a bus on another machine is open, and for whom.
struct RemoteCheck: Check {
    let id = "remote"

    func examine(_ facts: Facts) -> Outcome {
        guard let remote = facts.remote else { return .skipped("the bus is one of this machine") }
        if let problem = remote.problem { return .faulty([finding(problem, remote)]) }
        var parts = ["\(remote.address) lets us in"]
        if let name = remote.name, let role = remote.role { parts[0] += " as '\(name)' with the role \(role)" }
        if let time = remote.roundTrip { parts.append("\(milliseconds(time)) ms there and back") }
        let closed = remote.closedPorts.map { port in
            Finding(
                "remote-port-closed", "\(remote.host):\(port)",
                meaning: "Nobody takes connections at port \(port), over which the gateway sends "
                    + "\(remote.address.hasSuffix(":\(port - 1)") ? "state and events" : "pictures and sound").",
                remedy: "nc -vz \(remote.host.shellWord) \(port)",
                advice: "A firewall has to let three ports through: that of requests and the two after it.")
        }
        var notes = ["What is said here is the bus's word; of the machine itself: \(remote.there("camerabus doctor"))"]
        if remote.role == "view" {
            notes.append(
                "With the role view nothing can be changed: 'camerabus keys role NAME control' there gives more.")
        }
        return .of(closed, healthy: parts.joined(separator: ", "), notes: notes)
    }

    private func finding(_ problem: RemoteFacts.Problem, _ remote: RemoteFacts) -> Finding {
        Finding(
            problem.rawValue, remote.address, meaning: remote.meaning ?? "It can't be reached.",
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
            "$CAMERABUS_SERVER_KEY is the gateway's public key or a file with it, $CAMERABUS_KEY the file of 'camerabus keys new'."
        case .silence: "Where the machine answers, a firewall may keep the port shut."
        case .key: "Choose a name; it is what others see as holder of locks."
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
