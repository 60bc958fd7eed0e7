/// What an id is made of: facts of a device that is plugged in, which stay as they are wherever it was found.
public protocol IdentifyingFacts {
    var usb: CameraFacts.USB? { get }
    /// The device's directory in sysfs; empty where there is none.
    var device: String { get }
    /// Where it is plugged in, as the driver says; empty where it doesn't.
    var bus: String { get }
    /// What the driver calls it.
    var identifyingName: String { get }
    /// Which it is of those that one device makes.
    var part: String { get }
}

extension CameraFacts: IdentifyingFacts {
    public var identifyingName: String { card }
    public var part: String { "index\(index)" }
}

extension MicrophoneFacts: IdentifyingFacts {
    public var identifyingName: String { cardName }
    public var part: String { "pcm\(index)" }
}

/// Which id each camera and microphone has: the same after every replug and reboot, in whichever order cameras appear,
/// and never two the same.
///
/// A camera offers itself under several names, the best first: by the serial number that its maker gave it, then by
/// where it is plugged in (bus, interface, model, number of the node), then by that and its place in the device tree.
/// Never by `/dev/videoN`, which goes to whoever comes first.
///
/// A serial number is taken for unique until two cameras show it at the same time; many makers give the same to all.
/// From then on, for good, it stands only for the one that had it, at the place where it has been last; everyone else
/// with it is known by place. So what is known here (``Claim``) is to be kept on disk.
public enum CameraIdentities {
    /// What an id stands for.
    public struct Claim: Hashable, Sendable {
        /// Where the camera is that has the id, or was last; nil: nobody has it, since several claimed it when it was
        /// new.
        public var place: String?
        /// More than one camera has claimed it at the same time: it stays with its place.
        public var isShared: Bool

        public init(place: String?, isShared: Bool) {
            self.place = place
            self.isShared = isShared
        }
    }

    /// The longest id, in bytes.
    public static let limit = 120

    /// An id for each of the cameras, or of the microphones, that are there now, in their order. No microphone ever has
    /// a camera's.
    ///
    /// - Parameter claims: what is known by id; it learns.
    public static func assign<Facts: IdentifyingFacts>(_ cameras: [Facts], claims: inout [String: Claim]) -> [String] {
        var ids = [String?](repeating: nil, count: cameras.count)
        var pending = Array(cameras.indices)
        for level in Level.allCases {
            var groups: [String: [(camera: Int, place: String)]] = [:]
            var order: [String] = []
            var without: [Int] = []
            for camera in pending {
                guard let (id, place) = level.offer(cameras[camera]) else {
                    without.append(camera)
                    continue
                }
                if groups[id] == nil { order.append(id) }
                groups[id, default: []].append((camera, place))
            }
            pending = without
            for id in order {
                let claimants = groups[id] ?? []
                let winner = settle(claimants.map(\.place), &claims[id])
                for (index, claimant) in claimants.enumerated() {
                    if index == winner { ids[claimant.camera] = id } else { pending.append(claimant.camera) }
                }
            }
            pending.sort()
        }
        // What nothing at all tells apart has its order left.
        var taken = Set(ids.compactMap { $0 })
        for camera in pending {
            let base = Level.tree.offer(cameras[camera])?.id ?? "camera"
            var number = 1
            while !taken.insert("\(base)-\(number)").inserted { number += 1 }
            ids[camera] = "\(base)-\(number)"
        }
        return ids.compactMap { $0 }
    }

    /// Which of those who claim an id gets it.
    private static func settle(_ places: [String], _ claim: inout Claim?) -> Int? {
        guard var known = claim else {
            claim = places.count == 1 ? Claim(place: places[0], isShared: false) : Claim(place: nil, isShared: true)
            return places.count == 1 ? 0 : nil
        }
        let owner = known.place.flatMap { places.firstIndex(of: $0) }
        if known.isShared { return owner }
        if places.count == 1 {
            // Whoever has it alone has brought it along.
            known.place = places[0]
            claim = known
            return 0
        }
        known.isShared = true
        claim = known
        return owner
    }

    /// How a camera is named, the best way first.
    private enum Level: CaseIterable {
        case serial, place, tree

        /// The id on this level, and what tells apart those who claim it.
        func offer(_ camera: some IdentifyingFacts) -> (id: String, place: String)? {
            switch self {
            case .serial:
                guard let usb = camera.usb, let serial = usb.serial, !serial.isEmpty else { return nil }
                return (
                    CameraIdentities.joined([
                        "usb", "\(usb.vendor):\(usb.product)", serial, CameraIdentities.interface(camera),
                        camera.part,
                    ]), CameraIdentities.place(camera)
                )
            case .place:
                // USB's bus_info names the port, however the kernel numbers its buses today; elsewhere only the tree is
                // that sure.
                return (CameraIdentities.place(camera), camera.usb == nil || camera.bus.isEmpty ? camera.device : "")
            case .tree: return (CameraIdentities.joined([CameraIdentities.place(camera), camera.device]), "")
            }
        }
    }

    private static func place(_ camera: some IdentifyingFacts) -> String {
        // Drivers have to fill in bus_info; those that don't are at least somewhere in the device tree.
        let bus =
            camera.bus.isEmpty ? camera.device.split(separator: "/").suffix(2).joined(separator: "-") : camera.bus
        return joined([bus, interface(camera), camera.identifyingName, camera.part])
    }

    private static func interface(_ camera: some IdentifyingFacts) -> String {
        guard let usb = camera.usb, !usb.interface.isEmpty else { return "" }
        return "if" + usb.interface
    }

    private static func joined(_ parts: [String]) -> String { Slug.joined(parts, limit: limit) }
}
