extension Machine {
    func pressureFacts() -> PressureFacts {
        let stalls = ["cpu", "memory", "io"].filter {
            files.text("/proc/pressure/\($0)")?.hasPrefix("some ") ?? false
        }
        let base = "/sys/class/thermal"
        let zones = files.names(base).filter { name in
            name.hasPrefix("thermal_zone") && files.names("\(base)/\(name)").contains { $0.hasPrefix("trip_point_") }
        }
        return PressureFacts(stalls: Set(stalls), zones: zones.count)
    }
}
