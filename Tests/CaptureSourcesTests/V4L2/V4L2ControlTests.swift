import CV4L2
import CaptureCore
import CaptureSources
import Glibc
import Testing
import Video4Linux

/// Controls of drivers that no test machine has.
@Suite struct V4L2ControlTests {
    let device = V4L2ScriptedDevice()

    /// `VIDIOC_QUERY_EXT_CTRL` with these controls, in this order.
    private func offers(_ controls: [v4l2_query_ext_ctrl]) {
        device.on(.queryControl) { (answer: inout v4l2_query_ext_ctrl) in
            let id = answer.id & 0x3FFF_FFFF
            let isNext = answer.id != id
            guard let control = controls.first(where: { isNext ? $0.id > id : $0.id == id }) else { return EINVAL }
            answer = control
            return 0
        }
    }

    private func control(
        _ id: UInt32, _ name: String, _ type: v4l2_ctrl_type = V4L2_CTRL_TYPE_INTEGER, flags: Int32 = 0
    ) -> v4l2_query_ext_ctrl {
        var control = v4l2_query_ext_ctrl()
        control.id = id
        control.type = type.rawValue
        control.flags = UInt32(flags)
        control.elems = 1
        withUnsafeMutableBytes(of: &control.name) { $0.copyBytes(from: name.utf8.prefix(31)) }
        return control
    }

    @Test func namesAreToldApart() throws {
        offers([
            control(0x0098_0001, "User Controls", V4L2_CTRL_TYPE_CTRL_CLASS), control(0x0098_0900, "Gain, Red"),
            control(0x0098_0901, "Gain (Red)"), control(0x0098_0902, "***"),
            control(0x0098_0903, "Off", flags: V4L2_CTRL_FLAG_DISABLED), control(0x009A_0900, "Zoom"),
        ])
        let table = try V4L2ControlTable(device)
        #expect(table.controls.map(\.name) == ["gain_red", "gain_red_0x980901", "0x980902", "zoom"])
        #expect(table.controls.map(\.category) == ["User Controls", "User Controls", "User Controls", ""])
        #expect(table["zoom"]?.id == 0x009A_0900)
        #expect(table["off"] == nil)
    }

    /// One that the camera stalls, whichever way it is asked for, costs the others nothing.
    @Test(arguments: [EIO, EPIPE]) func failing(_ failure: Int32) throws {
        let failing: Set<UInt32> = [0x0098_0901, 0x0098_0902, 0x009A_090D]
        let ids: [UInt32] = [0x0098_0900, 0x0098_0901, 0x0098_0902, 0x0098_0913, 0x009A_090D, 0x009A_0910]
        device.on(.queryControl) { [self] (answer: inout v4l2_query_ext_ctrl) in
            let id = answer.id & 0x3FFF_FFFF
            let isNext = answer.id != id
            guard let found = ids.first(where: { isNext ? $0 > id : $0 == id }) else { return EINVAL }
            if failing.contains(found) { return failure }
            answer = control(found, "Control \(found)")
            return 0
        }
        #expect(try device.controls().map(\.id) == [0x0098_0900, 0x0098_0913, 0x009A_0910])
        // A camera that is gone is another matter.
        device.on(.queryControl) { (_: inout v4l2_query_ext_ctrl) in ENODEV }
        #expect(throws: V4L2Error.self) { try device.controls() }
    }

    @Test func keyFramesAreAskedForWhereThereIsAButton() throws {
        let button: UInt32 = 0x0099_09E5
        var pressed: [UInt32] = []
        device.on(.setControls) { (answer: inout v4l2_ext_controls) in
            pressed += (0..<Int(answer.count)).map { answer.controls[$0].id }
            return 0
        }
        offers([control(0x0099_0900, "Codec Controls")])
        #expect(try !device.forceKeyFrame())
        #expect(pressed.isEmpty)
        offers([control(button, "Force Key Frame", V4L2_CTRL_TYPE_BUTTON)])
        #expect(try device.forceKeyFrame())
        #expect(pressed == [button])
        device.on(.setControls) { (_: inout v4l2_ext_controls) in ENODEV }
        #expect(throws: V4L2Error.self) { try device.forceKeyFrame() }
    }

    /// A driver that answers each "next" with a control that isn't.
    @Test func goingBack() throws {
        device.on(.queryControl) { (answer: inout v4l2_query_ext_ctrl) in
            answer.id = 0x0098_0900
            answer.type = V4L2_CTRL_TYPE_INTEGER.rawValue
            return 0
        }
        #expect(try device.controls().count == 1)
    }

    @Test func endless() throws {
        device.on(.queryControl) { (answer: inout v4l2_query_ext_ctrl) in
            answer.id = (answer.id & 0x3FFF_FFFF) + 1
            answer.nr_of_dims = 99
            return 0
        }
        let controls = try device.controls()
        #expect((1000...10_000).contains(controls.count))
        #expect(controls.allSatisfy { $0.dimensions.count == Int(V4L2_CTRL_MAX_DIMS) })
    }

    @Test(arguments: [
        (Int64.min, Int64.max), (Int64(0), Int64.max), (Int64(5), Int64(2)), (Int64(0), Int64(UInt32.max)),
    ])
    func menuOfAbsurdRange(_ low: Int64, _ high: Int64) throws {
        var menu = control(0x0098_0900, "Menu", V4L2_CTRL_TYPE_MENU)
        (menu.minimum, menu.maximum) = (low, high)
        offers([menu])
        device.on(.queryMenu) { (answer: inout v4l2_querymenu) in answer.index % 2 == 0 ? 0 : EINVAL }
        #expect(try V4L2ControlTable(device).controls.first.map { $0.menu.count <= v4l2EnumerationLimit } == true)
    }

    /// A control that can't be read hides no other.
    @Test func unreadableIsLeftOut() throws {
        offers([control(0x0098_0900, "One"), control(0x0098_0901, "Two"), control(0x0098_0902, "Three")])
        device.on(.getControls) { (list: inout v4l2_ext_controls) in
            if list.controls.pointee.id == 0x0098_0901 { return EIO }
            list.controls.pointee.value = 7
            return 0
        }
        #expect(try V4L2ControlTable(device).values(device) == ["one": .integer(7), "three": .integer(7)])
        device.on(.getControls) { (_: inout v4l2_ext_controls) in ENODEV }
        #expect(throws: V4L2Error.self) { try V4L2ControlTable(device).values(device) }
    }

    /// Types that are newer than this program are listed, and neither read nor set.
    @Test func unknownType() throws {
        offers([control(0x0098_0900, "New", V4L2_CTRL_TYPE_HDR10_CLL_INFO, flags: V4L2_CTRL_FLAG_HAS_PAYLOAD)])
        let table = try V4L2ControlTable(device)
        #expect(table.controls.first?.type == .unknown)
        #expect(try table.values(device) == [:])
        let new = try #require(table["new"])
        #expect(throws: V4L2Error.self) { try device.setValue(of: new, to: .integer(1)) }
        #expect(device.calls["VIDIOC_S_EXT_CTRLS"] == nil)
    }

    /// A dynamic array that grew since it was described says how much room it needs.
    @Test func arrayThatGrew() throws {
        var array = control(
            0x0098_0900, "Array", V4L2_CTRL_TYPE_U32, flags: V4L2_CTRL_FLAG_HAS_PAYLOAD | V4L2_CTRL_FLAG_DYNAMIC_ARRAY)
        array.elem_size = 4
        offers([array])
        device.on(.getControls) { (list: inout v4l2_ext_controls) in
            let size = list.controls.pointee.size
            list.controls.pointee.size = 12
            guard size >= 12 else { return ENOSPC }
            for index in 0..<3 { list.controls.pointee.p_u32[index] = UInt32.max - UInt32(index) }
            return 0
        }
        let control = try #require(try device.controls().first)
        #expect(try device.value(of: control) == .integers([4_294_967_295, 4_294_967_294, 4_294_967_293]))
    }

    @Test(arguments: [(UInt32.max, UInt32.max), (UInt32(0), UInt32(4)), (UInt32(1) << 20, UInt32(4))])
    func arrayOfAbsurdSize(_ elements: UInt32, _ bytes: UInt32) throws {
        var array = control(0x0098_0900, "Array", V4L2_CTRL_TYPE_U32, flags: V4L2_CTRL_FLAG_HAS_PAYLOAD)
        (array.elems, array.elem_size) = (elements, bytes)
        offers([array])
        let control = try #require(try device.controls().first)
        #expect(throws: V4L2Error(errno: EFBIG, operation: "VIDIOC_G_EXT_CTRLS", device: device.path)) {
            try device.value(of: control)
        }
    }

    /// A driver that asks for more room each time, and one that claims to have filled more than there is.
    @Test func arrayThatNeverFits() throws {
        var array = control(0x0098_0900, "Array", V4L2_CTRL_TYPE_U8, flags: V4L2_CTRL_FLAG_HAS_PAYLOAD)
        array.elem_size = 1
        offers([array])
        device.on(.getControls) { (list: inout v4l2_ext_controls) in
            list.controls.pointee.size *= 2
            return ENOSPC
        }
        let control = try #require(try device.controls().first)
        #expect(throws: V4L2Error.self) { try device.value(of: control) }
        #expect(device.calls["VIDIOC_G_EXT_CTRLS"] == 3)
        device.on(.getControls) { (list: inout v4l2_ext_controls) in
            list.controls.pointee.size = 4096
            return 0
        }
        #expect(try device.value(of: control) == .integers([0]))
    }
}
