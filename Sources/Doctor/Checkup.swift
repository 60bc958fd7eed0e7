/// Finds faults of this machine's cameras and microphones, and of the bus that serves them.
public enum Checkup {
    /// All checks, in the order in which people are told: what stands in the way of everything else first.
    public static let checks: [any Check] = [
        RemoteCheck(), BusCheck(), ClockCheck(), RuntimeDirectoryCheck(), GroupCheck(), PermissionCheck(),
        CameraCheck(), DriverCheck(),
        NodePermissionCheck(), SoundPermissionCheck(), UdevCheck(), HolderCheck(), WorkerCheck(), DeviceErrorCheck(),
        SettingsCheck(),
        RigCheck(), BandwidthCheck(),
        PortSpeedCheck(), USBPowerCheck(), IdentityCheck(), VirtualDriverCheck(), DescriptorLimitCheck(),
        MemoryCheck(), DiskSpaceCheck(), PressureCheck(), ProcessVisibilityCheck(), VersionCheck(),
    ]

    /// What all checks come to.
    public static func results(_ facts: Facts) -> [CheckResult] {
        guard let remote = facts.remote else {
            return checks.filter { !ofTheWay.contains($0.id) }.map {
                CheckResult(check: $0.id, outcome: $0.examine(facts))
            }
        }
        return checks.map { check in
            guard farSighted.contains(check.id) else {
                return CheckResult(check: check.id, outcome: .skipped("run the doctor on the other machine"))
            }
            // Those of the way say themselves where something is to be typed.
            let outcome = check.examine(facts)
            let isOfWay = ofTheWay.contains(check.id)
            return CheckResult(check: check.id, outcome: isOfWay ? outcome : outcome.meant(for: remote))
        }
    }

    /// Those that there is nothing to say of where the bus is on this machine.
    private static let ofTheWay: Set = ["remote", "clocks"]

    /// Those that know what they tell from the bus's own word, or of the way to it.
    private static let farSighted: Set = [
        "remote", "bus", "clocks", "permission", "workers", "device-errors", "settings", "rigs", "system-pressure",
        "versions",
    ]
}

extension Outcome {
    /// What is to be typed at the machine with the cameras says so: all but what the bus can be asked from here.
    fileprivate func meant(for remote: RemoteFacts) -> Outcome {
        guard case .faulty(let findings, let notes) = self else { return self }
        let meant = findings.map { finding in
            var finding = finding
            if !finding.remedy.hasPrefix("camerabus ") { finding.remedy = remote.there(finding.remedy) }
            return finding
        }
        return .faulty(meant, notes: notes)
    }
}
