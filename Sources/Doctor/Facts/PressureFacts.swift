/// The pressure that the machine reports.
public struct PressureFacts: Hashable, Sendable {
    /// Those of `cpu`, `memory` and `io` that the kernel tells of (`/proc/pressure`).
    public var stalls: Set<String>
    /// Thermal zones with a trip point (`/sys/class/thermal`).
    public var zones: Int

    public init(stalls: Set<String> = [], zones: Int = 0) {
        self.stalls = stalls
        self.zones = zones
    }
}
