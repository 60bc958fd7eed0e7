/// Looks for what is wrong with this machine's cameras and microphones, and with the bus that serves them.
public enum Checkup {
    /// All checks, in the order in which people are told: what stands in the way of everything else first.
    public static let checks: [any Check] = [
        BusCheck(), RuntimeDirectoryCheck(), GroupCheck(), PermissionCheck(), CameraCheck(), DriverCheck(),
        NodePermissionCheck(), SoundPermissionCheck(), UdevCheck(), HolderCheck(), WorkerCheck(), DeviceErrorCheck(),
        SettingsCheck(),
        RigCheck(), BandwidthCheck(),
        PortSpeedCheck(), USBPowerCheck(), IdentityCheck(), VirtualDriverCheck(), DescriptorLimitCheck(),
        MemoryCheck(), DiskSpaceCheck(), PressureCheck(), ProcessVisibilityCheck(), VersionCheck(),
    ]

    /// What all checks come to.
    public static func results(_ facts: Facts) -> [CheckResult] {
        checks.map { CheckResult(check: $0.id, outcome: $0.examine(facts)) }
    }
}
