/// Cameras that only their ports tell apart. No fault, but whoever changes ports should know.
struct IdentityCheck: Check {
    let id = "identity"

    func examine(_ facts: Facts) -> Outcome {
        let cameras = facts.usbCameras
        guard !cameras.isEmpty else { return .skipped("no camera is on USB") }
        let alike = Dictionary(grouping: cameras) { "\($0.vendor):\($0.product):\($0.serial ?? "")" }
            .filter { $0.value.count > 1 }
        guard !alike.isEmpty else { return .healthy("each camera is known by itself") }
        let notes = alike.sorted { $0.key < $1.key }.map { _, cameras in
            let ports = cameras.map(\.port).sorted().joined(separator: ", ")
            return
                "\(cameras.count) of \(cameras[0].name ?? cameras[0].vendor) have \(cameras[0].serial == nil ? "no" : "the same") "
                + "serial number: they are told apart by their ports (\(ports)). Leave each where it is, and the names stay."
        }
        return .healthy("cameras of one model are told apart by their ports", notes: notes)
    }
}
