import JSON
import LinuxIO

/// Whether a program outside the bus uses a camera.
struct HolderCheck: Check {
    let id = "foreign-holder"

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.nodes.isEmpty else { return .skipped("there is no device node") }
        var findings: [Finding] = []
        var isComplete = true
        for node in facts.nodes {
            let holders = facts.holders(of: node.path)
            isComplete = isComplete && holders.isComplete
            findings += holders.processes.map { finding(node, $0, facts) }
        }
        var notes: [String] = []
        if !isComplete {
            notes.append(
                facts.user.uid == 0
                    ? "Some processes are not visible here, not even to root."
                    : "Other users' programs are not visible. Use 'sudo camerabus doctor'.")
        }
        return .of(findings, healthy: isComplete ? "none" : "none that is visible to you", notes: notes)
    }

    private func finding(_ node: NodeFact, _ holder: DeviceHolder, _ facts: Facts) -> Finding {
        let (remedy, advice) = Self.ending(holder, isOurs: holder.uid == facts.user.uid || facts.user.uid == 0)
        return Finding(
            "camera-held", node.path,
            meaning:
                "\(holder.name.isEmpty ? "A process" : holder.name) (pid \(holder.pid), uid \(holder.uid)) has "
                + "\(node.path) open. "
                + "While it streams, no other program can.",
            remedy: remedy, advice: advice)
    }

    /// How to end a program that people know, and any other.
    static func ending(_ holder: DeviceHolder, isOurs: Bool) -> (remedy: String, advice: String?) {
        switch holder.name {
        case "pipewire", "wireplumber":
            (
                "systemctl --user stop wireplumber pipewire",
                "It keeps a camera while one of its clients streams, for example a browser. Closing that client is "
                    + "enough."
            )
        case "motion", "mediamtx", "go2rtc", "ustreamer", "mjpg_streamer", "camera-streamer":
            (
                "sudo systemctl stop \(holder.name.replacing("_", with: "-"))",
                "If it is not a service: 'kill \(holder.pid)'."
            )
        case let name where browsers.contains(where: { name.hasPrefix($0) }):
            ("kill \(holder.pid)", "Closing the page that shows the camera is enough.")
        default: ((isOurs ? "" : "sudo ") + "kill \(holder.pid)", nil)
        }
    }

    private static let browsers = ["firefox", "chrom", "brave", "GeckoMain", "Isolated Web", "VideoCapture", "MediaPD"]
}

extension Facts {
    /// Foreign processes with that node open: what was seen here, and what the bus saw.
    func holders(of node: String) -> ProcessTable.Holders {
        var result = holders[node] ?? ProcessTable.Holders(processes: [], isComplete: false)
        result.processes.removeAll { bus.workers.contains($0.pid) }
        for usage in bus.usages where usage["node"]?.string == node {
            for process in usage["foreign"]?.array ?? [] {
                guard let pid = process["pid"]?.integer.flatMap({ Int32(exactly: $0) }),
                    let uid = process["uid"]?.integer.flatMap({ UInt32(exactly: $0) }),
                    !result.processes.contains(where: { $0.pid == pid })
                else { continue }
                result.processes.append(DeviceHolder(pid: pid, uid: uid, name: process["name"]?.string ?? ""))
            }
            if usage["complete"] == true { result.isComplete = true }
        }
        return result
    }
}
