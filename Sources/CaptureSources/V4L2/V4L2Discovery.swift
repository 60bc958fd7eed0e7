public import CaptureCore
import Glibc
import Video4Linux

/// Finds the cameras of the machine.
public enum V4L2Discovery {
    /// The cameras that can be opened, under the ids that they have for somebody who remembers nothing.
    public static func cameras() -> [DeviceIdentity] {
        let cameras = survey().cameras
        var claims: [String: CameraIdentities.Claim] = [:]
        return zip(cameras, CameraIdentities.assign(cameras, claims: &claims)).map { $0.identity(uniqueID: $1) }
    }

    /// Looks at every node of `/sys/class/video4linux` (`VIDIOC_QUERYCAP`), which disturbs no one who streams from it.
    ///
    /// A node is a camera if it captures pictures, single- or multi-planar, by streaming. Metadata, output, radio and
    /// memory-to-memory nodes are none.
    public static func survey() -> CameraSurvey {
        survey(sysfs: "/sys") { node throws(SourceError) in try look(node) {} }
    }

    /// - Parameters:
    ///   - sysfs: where the kernel shows its devices.
    ///   - look: opens a node and reads what it is; nil: no camera.
    package static func survey(
        sysfs: String, look: (V4L2SysfsNode) throws(SourceError) -> CameraFacts?
    ) -> CameraSurvey {
        var survey = CameraSurvey(cameras: [], unreadable: [])
        var nodes: [String: V4L2SysfsNode] = [:]
        for node in V4L2SysfsNode.all(sysfs: sysfs) {
            nodes[node.path] = node
            do throws(SourceError) {
                if let facts = try look(node) { survey.cameras.append(facts) }
            } catch {
                // A node that went away meanwhile is no finding.
                guard error.kind != .disconnected else { continue }
                survey.unreadable.append(
                    .init(node: node.path, index: node.index, device: node.device, why: error.description))
            }
        }
        // One that is gone by now may be one that was seen in its new place too: it must not pass for two.
        let present = Dictionary(V4L2SysfsNode.all(sysfs: sysfs).map { ($0.path, $0) }) { first, _ in first }
        survey.cameras.removeAll { nodes[$0.node] != present[$0.node] }
        return survey
    }

    /// Opens a node for a moment; nil: it is no camera.
    private static func look(
        _ entry: V4L2SysfsNode, _ onRequest: @escaping RequestObserver
    ) throws(SourceError) -> CameraFacts? {
        do throws(V4L2Error) {
            let node = try V4L2WatchedDevice.open(entry.path, onRequest)
            let capability = try node.capability()
            guard capability.captureType != nil, capability.isStreaming, !capability.isMemoryToMemory else {
                return nil
            }
            return CameraFacts(
                node: entry.path, index: entry.index, device: entry.device,
                usb: entry.usb, link: entry.link, card: capability.card.isEmpty ? entry.name : capability.card,
                driver: capability.driver,
                bus: capability.busInfo,
                position: position(of: node) ?? entry.position, isBuiltIn: entry.isBuiltIn)
        } catch {
            throw SourceError(error, .opening)
        }
    }

    /// A camera as it is now, at the place where it was seen, under whatever node; other cameras' nodes are not opened.
    ///
    /// - Parameter onRequest: told of each request.
    /// - Returns: nil when it isn't there.
    public static func find(
        _ camera: CameraFacts, onRequest: @escaping RequestObserver = {}
    ) throws(SourceError) -> CameraFacts? {
        var failure: SourceError?
        for node in V4L2SysfsNode.all(sysfs: "/sys") where node.isPlace(of: camera) {
            do throws(SourceError) {
                if let facts = try look(node, onRequest), facts.isSame(as: camera) { return facts }
            } catch {
                if error.kind != .disconnected { failure = error }
            }
        }
        if let failure { throw failure }
        return nil
    }

    /// Where the camera looks, if the firmware told the driver (`V4L2_CID_CAMERA_ORIENTATION`).
    private static func position(of node: any V4L2Device) -> DevicePosition? {
        guard let control = try? node.control(id: V4L2Control.cameraOrientation),
            case .integer(let value) = try? node.value(of: control)
        else { return nil }
        return switch value {
        case V4L2Control.orientationFront: .front
        case V4L2Control.orientationBack: .back
        case V4L2Control.orientationExternal: .external
        default: nil
        }
    }
}

extension V4L2SysfsNode {
    fileprivate func isPlace(of camera: CameraFacts) -> Bool {
        device == camera.device && index == camera.index && usb == camera.usb
    }
}

extension CameraFacts {
    fileprivate func isSame(as other: CameraFacts) -> Bool {
        var here = self
        // The node's number changes, and so may what the firmware says, and how fast the port is.
        (here.node, here.position, here.link) = (other.node, other.position, other.link)
        here.isBuiltIn = other.isBuiltIn
        return here == other
    }
}
