/// Whether somebody gives new nodes to the group video, and names them.
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
            guard !facts.udev.isContainer else { return .skipped("this is a container; udev runs outside of it") }
            return .faulty([
                Finding(
                    "udev-not-running",
                    meaning: "udev does not run: cameras that are plugged in get no driver and no group by themselves.",
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
                    "The rule that gives cameras to the group video is not installed, and nodes belong to root alone.",
                remedy: Self.installingRule, advice: "'make install' of the project installs it too.")
        ])
    }
}
