public import CaptureCore
import Glibc
import Video4Linux

/// Finds the cameras of the machine.
public enum V4L2Discovery {
    /// What a look at the machine's video nodes brought.
    public struct Survey: Sendable {
        /// In the order of their nodes' numbers.
        public var cameras: [DeviceIdentity]
        /// Nodes that can't be judged, mostly for want of permission, and why.
        public var unreadable: [String: SourceError]
    }

    /// The cameras that can be opened. See ``survey()`` for those that can't.
    public static func cameras() -> [DeviceIdentity] { survey().cameras }

    /// Looks at every node of `/sys/class/video4linux` (`VIDIOC_QUERYCAP`), which disturbs no one who streams from it.
    ///
    /// A node is a camera if it captures pictures, single- or multi-planar, by streaming. Metadata, output, radio and
    /// memory-to-memory nodes are none.
    public static func survey() -> Survey {
        var found: [(facts: V4L2DeviceFacts, identity: DeviceIdentity)] = []
        var unreadable: [String: SourceError] = [:]
        for entry in V4L2SysfsNode.all(sysfs: "/sys") {
            do throws(V4L2Error) {
                let node = try VideoNode(path: entry.path)
                let capability = try node.capability()
                guard capability.captureType != nil, capability.isStreaming, !capability.isMemoryToMemory else {
                    continue
                }
                let identity = DeviceIdentity(
                    uniqueID: "", localizedName: capability.card.isEmpty ? entry.name : capability.card,
                    type: .external, position: position(of: node) ?? (entry.usb == nil ? .unspecified : .external),
                    node: entry.path, driver: capability.driver, bus: capability.busInfo)
                found.append((V4L2DeviceFacts(entry, card: capability.card, busInfo: capability.busInfo), identity))
            } catch {
                // A node that went away meanwhile is no finding.
                let error = SourceError(error, .opening)
                if error.kind != .disconnected { unreadable[entry.path] = error }
            }
        }
        let ids = V4L2DeviceID.ids(found.map(\.facts))
        let cameras = zip(found, ids).map { found, id in
            var identity = found.identity
            identity.uniqueID = id
            return identity
        }
        return Survey(cameras: cameras, unreadable: unreadable)
    }

    /// Where the camera looks, if the firmware told the driver (`V4L2_CID_CAMERA_ORIENTATION`).
    private static func position(of node: VideoNode) -> DevicePosition? {
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
