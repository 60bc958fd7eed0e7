import CaptureCore
import Glibc
package import Video4Linux

/// The events of a V4L2 node: of its controls, and of the picture that comes in.
package final class V4L2EventQueue: DeviceEventQueue {
    package let descriptor: Int32
    package var isUrgent: Bool { true }

    private let device: any V4L2Device

    /// Subscribes to all that the driver tells of; nil if it tells nothing (`VIDIOC_SUBSCRIBE_EVENT`).
    ///
    /// - Parameter descriptor: the device's, open as long as it lives.
    package init?(_ device: any V4L2Device, descriptor: Int32, controls: [UInt32]) throws(V4L2Error) {
        self.device = device
        self.descriptor = descriptor
        var count = 0
        func attempt(_ subscribe: () throws(V4L2Error) -> Void) throws(V4L2Error) {
            do throws(V4L2Error) {
                try subscribe()
                count += 1
            } catch  where error.errno != ENODEV {}
        }
        for id in controls { try attempt { () throws(V4L2Error) in try device.subscribe(toControl: id) } }
        try attempt { () throws(V4L2Error) in try device.subscribeToSourceChange() }
        if count == 0 { return nil }
    }

    package func next() throws(SourceError) -> DeviceEvent? {
        while true {
            let event: V4L2Event
            do throws(V4L2Error) {
                guard let next = try device.nextEvent() else { return nil }
                event = next
            } catch { throw SourceError(error, .dequeuing) }
            switch event {
            case .control(let event): return .control(ControlEvent(event))
            case .sourceChange(let resolution): return .sourceChanged(resolution: resolution)
            case .other: continue
            }
        }
    }
}

extension ControlEvent {
    init(_ event: V4L2ControlEvent) {
        var value: ControlValue?
        var mustBeRead = !event.changes.isDisjoint(with: [.range, .dimensions])
        if event.changes.contains(.value) {
            switch event.kind {
            case .integer, .integer64, .menu, .integerMenu, .bitmask: value = .integer(event.value)
            case .boolean: value = .boolean(event.value != 0)
            case .button, .controlClass: break
            case .string, .u8, .u16, .u32, .area, .other: mustBeRead = true
            }
        }
        // An array of plain numbers has the plain number's type.
        if event.flags.contains(.hasPayload), value != nil { (value, mustBeRead) = (nil, true) }
        self.init(
            id: event.id, value: value, flags: event.changes.contains(.flags) ? Set(event.flags) : nil,
            mustBeRead: mustBeRead, time: event.time)
    }
}
