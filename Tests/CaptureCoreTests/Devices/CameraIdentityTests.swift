import CaptureCore
import Testing

/// Cameras, ports and what happens to them.
private struct Machine {
    struct Camera: Hashable {
        var name: Int
        var product: String
        var serial: String?
    }

    var plugged: [Int: Camera] = [:]
    var claims: [String: CameraIdentities.Claim] = [:]
    private var node = 0

    static func facts(_ camera: Camera, port: Int, node: Int, index: Int = 0) -> CameraFacts {
        let device = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-\(port)/1-\(port):1.0"
        return CameraFacts(
            node: "/dev/video\(node)", index: index, device: device,
            usb: .init(vendor: "046d", product: camera.product, serial: camera.serial, interface: "00"),
            card: "Model \(camera.product)", driver: "uvcvideo", bus: "usb-0000:00:14.0-\(port)", position: .external)
    }

    /// A search in which the nodes have come up in some order: the ids by port.
    mutating func search(_ random: inout SeededGenerator) -> [Int: String] {
        let ports = plugged.keys.shuffled(using: &random)
        let cameras = ports.enumerated().compactMap { node, port in
            plugged[port].map { Self.facts($0, port: port, node: node * 2) }
        }
        let ids = CameraIdentities.assign(cameras, claims: &claims)
        return Dictionary(uniqueKeysWithValues: zip(ports, ids))
    }
}

@Suite("Which camera is which")
struct CameraIdentityTests {
    private static let ports = 6

    /// Random histories of plugging in, unplugging, moving and rebooting.
    private static func history(
        _ cameras: [Machine.Camera], seed: UInt64, moves: Bool = true,
        check: (Machine, _ ids: [Int: String], _ step: Int) -> Void
    ) {
        var random = SeededGenerator(seed: seed)
        var machine = Machine()
        var home: [Int: Int] = [:]
        for (port, camera) in cameras.enumerated() { home[camera.name] = port }
        for step in 0..<60 {
            let camera = cameras[random.below(cameras.count)]
            if random.chance(10) {
                // A reboot: what was found is forgotten, what is kept stays, and cameras come up one after the other.
                let all = machine.plugged
                machine.plugged = [:]
                for (port, camera) in all.shuffled(using: &random) {
                    machine.plugged[port] = camera
                    if random.chance(50) { check(machine, machine.search(&random), step) }
                }
            } else if let port = machine.plugged.first(where: { $0.value == camera })?.key {
                machine.plugged[port] = nil
            } else {
                var port = home[camera.name] ?? 0
                if moves {
                    port = (0..<ports).filter { machine.plugged[$0] == nil }.randomElement(using: &random) ?? port
                }
                machine.plugged[port] = camera
            }
            check(machine, machine.search(&random), step)
        }
    }

    @Test("one id each, at any time", arguments: 0..<100)
    func unique(seed: UInt64) {
        let cameras = [
            Machine.Camera(name: 0, product: "0825", serial: "A"), .init(name: 1, product: "0825", serial: "SN0001"),
            .init(name: 2, product: "0825", serial: "SN0001"), .init(name: 3, product: "0825"),
            .init(name: 4, product: "0999", serial: "SN0001"),
        ]
        Self.history(cameras, seed: seed) { machine, ids, step in
            #expect(Set(ids.values).count == machine.plugged.count, "step \(step)")
        }
    }

    @Test("a serial number of its own is the camera's id wherever it is plugged in", arguments: 0..<50)
    func serial(seed: UInt64) {
        let cameras = ["A", "B", "C"].enumerated().map { Machine.Camera(name: $0, product: "0825", serial: $1) }
        var known: [Int: String] = [:]
        Self.history(cameras, seed: seed) { machine, ids, step in
            for (port, camera) in machine.plugged {
                #expect(known[camera.name] == nil || known[camera.name] == ids[port], "step \(step)")
                known[camera.name] = ids[port]
            }
        }
    }

    @Test("without a serial number the port is the id, whoever is plugged in", arguments: 0..<50)
    func place(seed: UInt64) {
        let cameras = (0..<4).map { Machine.Camera(name: $0, product: "0825") }
        var known: [Int: String] = [:]
        Self.history(cameras, seed: seed) { _, ids, step in
            for (port, id) in ids {
                #expect(known[port] == nil || known[port] == id, "step \(step)")
                known[port] = id
            }
        }
    }

    @Test(
        "cameras with one serial number that have been seen together never swap, over any plugging and rebooting",
        arguments: 0..<100)
    func twins(seed: UInt64) {
        let cameras = (0..<3).map { Machine.Camera(name: $0, product: "0825", serial: "SN0001") }
        var known: [Int: String] = [:]
        Self.history(cameras, seed: seed) { machine, ids, step in
            // From when two were there, each port has its id for good.
            guard !known.isEmpty || ids.count > 1 else { return }
            for (port, id) in ids {
                #expect(known[port] == nil || known[port] == id, "step \(step)")
                known[port] = id
            }
            #expect(Set(known.values).count == known.count)
        }
    }

    @Test("a camera that stays plugged in keeps its id, whatever comes beside it", arguments: 0..<100)
    func stays(seed: UInt64) {
        let cameras = [
            Machine.Camera(name: 0, product: "0825", serial: "SN0001"),
            .init(name: 1, product: "0825", serial: "SN0001"),
            .init(name: 2, product: "0825", serial: "SN0001"), .init(name: 3, product: "0825"),
        ]
        var before: (plugged: [Int: Machine.Camera], ids: [Int: String]) = ([:], [:])
        Self.history(cameras, seed: seed) { machine, ids, step in
            for (port, camera) in machine.plugged where before.plugged[port] == camera {
                #expect(ids[port] == before.ids[port], "step \(step)")
            }
            before = (machine.plugged, ids)
        }
    }

    @Test(
        "the first of two with one serial number keeps the id that it had alone, also after a reboot in the other order"
    )
    func second() {
        var claims: [String: CameraIdentities.Claim] = [:]
        let twin = Machine.Camera(name: 0, product: "0825", serial: "SN0001")
        let (one, two) = (Machine.facts(twin, port: 2, node: 0), Machine.facts(twin, port: 3, node: 2))
        #expect(CameraIdentities.assign([one], claims: &claims) == ["usb-046d:0825-SN0001-if00-index0"])
        let ids = CameraIdentities.assign([two, one], claims: &claims)
        #expect(ids == ["usb-0000:00:14.0-3-if00-Model-0825-index0", "usb-046d:0825-SN0001-if00-index0"])
        #expect(CameraIdentities.assign([two], claims: &claims) == [ids[0]])
        #expect(CameraIdentities.assign([one, two], claims: &claims) == ids.reversed())
        // A third place is a third camera.
        #expect(!ids.contains(CameraIdentities.assign([Machine.facts(twin, port: 5, node: 0)], claims: &claims)[0]))
    }

    @Test("ids have harmless characters and a length, and cameras that nothing tells apart get one each all the same")
    func shape() {
        var claims: [String: CameraIdentities.Claim] = [:]
        var camera = Machine.facts(.init(name: 0, product: "0825", serial: "a/../ö b\n*"), port: 1, node: 0)
        #expect(CameraIdentities.assign([camera], claims: &claims) == ["usb-046d:0825-a-..-b--if00-index0"])
        camera.usb?.serial = String(repeating: "x", count: 500)
        #expect(CameraIdentities.assign([camera], claims: &claims)[0].utf8.count == CameraIdentities.limit)
        let bare = CameraFacts(node: "/dev/video0", index: 0, device: "", card: "", driver: "", bus: "")
        #expect(Set(CameraIdentities.assign([bare, bare, bare], claims: &claims)).count == 3)
        // The same bus_info in two devices, which V4L2 forbids.
        func platform(_ device: String) -> CameraFacts {
            CameraFacts(node: "/dev/video0", index: 0, device: device, card: "cam", driver: "isp", bus: "platform:isp")
        }
        claims = [:]
        #expect(
            CameraIdentities.assign([platform("/sys/devices/isp.0")], claims: &claims) == ["platform:isp-cam-index0"])
        #expect(
            CameraIdentities.assign([platform("/sys/devices/isp.1"), platform("/sys/devices/isp.0")], claims: &claims)
                == ["platform:isp-cam-index0-sys-devices-isp.1", "platform:isp-cam-index0"])
    }
}
