/// Whether udev gives new nodes to the group video, and names them.
struct UdevCheck: Check {
    let id = "udev"

    /// Our rule, installed by hand, and applied to the nodes that are there.
    static let installingRule =
        "printf 'SUBSYSTEM==\"video4linux\", GROUP=\"video\", MODE=\"0660\"\\n' | sudo tee "
        + "/etc/udev/rules.d/70-camerabus.rules && sudo udevadm control --reload && "
        + "sudo udevadm trigger --subsystem-match=video4linux"

    func examine(_ facts: Facts) -> Outcome {
        let owned = facts.nodes.compactMap(\.file).filter { !$0.isForItsGroup }
        guard facts.udev.isRunning else {
            guard !facts.nodes.isEmpty || !facts.usbCameras.isEmpty else { return .skipped("no camera needs it") }
            guard !facts.udev.isContainer else { return .skipped("this is a container; udev runs on the host") }
            return .faulty([
                Finding(
                    "udev-not-running",
                    meaning: "udev does not run. Cameras that are plugged in get no driver and no group.",
                    remedy: facts.service.hasSystemd
                        ? "sudo systemctl start systemd-udevd"
                        : "sudo /lib/systemd/systemd-udevd --daemon && sudo udevadm trigger",
                    advice: "In a container udev runs on the host.")
            ])
        }
        if let rule = facts.udev.rule { return .healthy("it runs, with \(rule)") }
        guard !owned.isEmpty else { return .healthy("it runs; the distribution's own rules are enough here") }
        return .faulty([
            Finding(
                "udev-rule-missing",
                meaning:
                    "The udev rule for the group video is not installed, and the nodes belong only to root.",
                remedy: Self.installingRule, advice: "'make install' of this project installs the rule too.")
        ])
    }
}
