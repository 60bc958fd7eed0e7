public import CaptureCore
import Glibc

/// A source whose pictures were made elsewhere: it has no controls, nobody to tell of changes, and no other program to
/// keep out.
public protocol UncontrolledSource: VideoSource {}

extension UncontrolledSource {
    public func controls() throws(SourceError) -> [CaptureControl] { [] }

    public func controlValues() throws(SourceError) -> [String: ControlValue] { [:] }

    public func setControl(_ name: String, to value: ControlValue) throws(SourceError) {
        throw SourceError(
            .refused, operation: "VIDIOC_S_EXT_CTRLS", errno: EINVAL, message: "\(identity.bus) has no controls",
            control: name)
    }

    public func setPriority(isRecord: Bool) throws(SourceError) -> KernelPriority { .unsupported }

    public func events() throws(SourceError) -> (any DeviceEventQueue)? { nil }

    public func requestKeyframe() throws(SourceError) {}
}
