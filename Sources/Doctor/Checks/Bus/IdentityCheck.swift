/// Cameras that only differ by their ports. No fault, but worth knowing before a port is changed.
struct IdentityCheck: Check {
    let id = "identity"

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.usbCameras
        guard !cameras.isEmpty else { return .skipped("no camera is on USB") }
        let alike = Dictionary(grouping: cameras) { "\($0.vendor):\($0.product):\($0.serial ?? "")" }
            .filter { $0.value.count > 1 }
        guard !alike.isEmpty else { return .healthy("each camera has its own identity") }
        let notes = alike.sorted { $0.key < $1.key }.map { _, cameras in
            let ports = cameras.map(\.port).sorted().joined(separator: ", ")
            return
                "\(cameras.count) of \(cameras[0].name ?? cameras[0].vendor) have "
                + "\(cameras[0].serial == nil ? "no" : "the same") "
                + "serial number. The bus identifies them by their ports (\(ports)). To keep their names, do not "
                + "change the ports."
        }
        return .healthy("cameras of the same model are identified by their ports", notes: notes)
    }
}
