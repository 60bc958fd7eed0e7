/// Cameras that are made of software. No fault, but worth knowing.
struct VirtualDriverCheck: Check {
    let id = "virtual-drivers"

    func examine(_ facts: Facts) -> Outcome {
        let drivers = facts.drivers.virtual
        guard !drivers.isEmpty else { return .healthy("none") }
        let notes = drivers.map { driver in
            let nodes = facts.nodes.filter { $0.driver == driver }.map(\.path)
            let made = nodes.isEmpty ? "" : " (\(nodes.joined(separator: ", ")))"
            return driver == "v4l2loopback"
                ? "v4l2loopback\(made) shows the frames of another program, and nothing without one. It has no "
                    + "priorities, so a lock "
                    + "has no effect on it."
                : "\(driver)\(made) makes test pictures."
        }
        return .healthy(drivers.joined(separator: ", "), notes: notes)
    }
}
