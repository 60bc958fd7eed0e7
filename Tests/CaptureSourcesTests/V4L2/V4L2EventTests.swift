import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// Events and priorities of drivers that no test machine has.
@Suite struct V4L2EventTests {
    let device = V4L2ScriptedDevice()

    private func queue() throws -> V4L2EventQueue {
        device.on(.subscribeEvent) { (_: inout v4l2_event_subscription) in 0 }
        return try #require(try V4L2EventQueue(device, descriptor: -1, controls: [0x0098_0900]))
    }

    private func event(
        _ type: v4l2_ctrl_type, _ changes: Int32, value: Int64 = 0, flags: Int32 = 0
    ) -> v4l2_event {
        var event = v4l2_event()
        event.type = UInt32(V4L2_EVENT_CTRL)
        event.id = 0x0098_0900
        event.u.ctrl.changes = UInt32(changes)
        event.u.ctrl.type = type.rawValue
        event.u.ctrl.value64 = value
        event.u.ctrl.flags = UInt32(flags)
        event.timestamp = timespec(tv_sec: 3, tv_nsec: 5)
        return event
    }

    private func told(_ event: v4l2_event) throws -> DeviceEvent? {
        let queue = try queue()
        device.on(.dequeueEvent) { (answer: inout v4l2_event) in
            answer = event
            return 0
        }
        return try queue.next()
    }

    @Test func valuesAreThoseOfTheType() throws {
        let change = V4L2_EVENT_CTRL_CH_VALUE
        let wanted: [(v4l2_ctrl_type, Int64, ControlValue)] = [
            (V4L2_CTRL_TYPE_INTEGER, -5, .integer(-5)), (V4L2_CTRL_TYPE_BOOLEAN, 1, .boolean(true)),
            (V4L2_CTRL_TYPE_MENU, 3, .integer(3)), (V4L2_CTRL_TYPE_INTEGER64, -1 << 40, .integer(-1 << 40)),
            (V4L2_CTRL_TYPE_BITMASK, 0x8000_0001, .integer(0x8000_0001)),
        ]
        for (type, value, expected) in wanted {
            #expect(
                try told(event(type, change, value: value))
                    == .control(ControlEvent(id: 0x0098_0900, value: expected, time: 3_000_000_005)))
        }
    }

    @Test func whatTheEventDoesNotHoldMustBeRead() throws {
        for (type, changes, flags) in [
            (V4L2_CTRL_TYPE_STRING, V4L2_EVENT_CTRL_CH_VALUE, 0), (V4L2_CTRL_TYPE_U16, V4L2_EVENT_CTRL_CH_VALUE, 0),
            (V4L2_CTRL_TYPE_INTEGER, V4L2_EVENT_CTRL_CH_RANGE, 0),
            (V4L2_CTRL_TYPE_INTEGER, V4L2_EVENT_CTRL_CH_VALUE, V4L2_CTRL_FLAG_HAS_PAYLOAD),
            (V4L2_CTRL_TYPE_HDR10_CLL_INFO, V4L2_EVENT_CTRL_CH_VALUE, 0),
        ] as [(v4l2_ctrl_type, Int32, Int32)] {
            guard case .control(let event)? = try told(event(type, changes, flags: flags)) else {
                Issue.record("no event")
                continue
            }
            #expect(event.mustBeRead)
            #expect(event.value == nil)
        }
        // A button has no value, and nothing to be read.
        #expect(
            try told(event(V4L2_CTRL_TYPE_BUTTON, V4L2_EVENT_CTRL_CH_VALUE))
                == .control(ControlEvent(id: 0x0098_0900, time: 3_000_000_005)))
    }

    @Test func flagsAndSource() throws {
        #expect(
            try told(event(V4L2_CTRL_TYPE_INTEGER, V4L2_EVENT_CTRL_CH_FLAGS, flags: V4L2_CTRL_FLAG_INACTIVE))
                == .control(ControlEvent(id: 0x0098_0900, flags: [.inactive], time: 3_000_000_005)))
        var source = v4l2_event()
        source.type = UInt32(V4L2_EVENT_SOURCE_CHANGE)
        #expect(try told(source) == .sourceChanged(resolution: false))
        source.u.src_change.changes = UInt32(V4L2_EVENT_SRC_CH_RESOLUTION)
        #expect(try told(source) == .sourceChanged(resolution: true))
    }

    @Test func theEndOfTheEventsAndOfTheDevice() throws {
        let queue = try queue()
        for number in [ENOENT, EAGAIN] {
            device.on(.dequeueEvent) { (_: inout v4l2_event) in number }
            #expect(try queue.next() == nil)
        }
        device.on(.dequeueEvent) { (_: inout v4l2_event) in ENODEV }
        let error = #expect(throws: SourceError.self) { try queue.next() }
        #expect(error?.kind == .disconnected)
    }

    @Test func driversWithoutEvents() throws {
        #expect(try V4L2EventQueue(device, descriptor: -1, controls: [1, 2]) == nil)
        #expect(device.calls["VIDIOC_SUBSCRIBE_EVENT"] == 3)
        device.on(.subscribeEvent) { (_: inout v4l2_event_subscription) in ENODEV }
        #expect(throws: V4L2Error.self) { try V4L2EventQueue(device, descriptor: -1, controls: [1, 2]) }
        // One control without them is no reason to do without the others'.
        device.on(.subscribeEvent) { (subscription: inout v4l2_event_subscription) in
            subscription.id == 1 ? EINVAL : 0
        }
        #expect(try V4L2EventQueue(device, descriptor: -1, controls: [1, 2]) != nil)
    }

    @Test func driversWithoutPriorities() throws {
        #expect(try device.priority() == nil)
        #expect(throws: V4L2Error.self) { try device.setPriority(.record) }
        device.on(.getPriority) { (answer: inout UInt32) in
            answer = 3
            return 0
        }
        #expect(try device.priority() == .record)
    }
}
