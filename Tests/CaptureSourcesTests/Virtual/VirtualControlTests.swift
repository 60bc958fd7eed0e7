import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Imaging
import Testing

/// One frame with the controls set so, as BGR.
private func picture(
    _ pixelFormat: PixelFormat, _ controls: [(String, Int64)] = []
) throws -> (bytes: [UInt8], layout: FrameLayout) {
    let camera = try openCamera(0, pixelFormat, 640, 360)
    for (name, value) in controls { try camera.setControl(name, to: .integer(value)) }
    let stream = try camera.startStreaming()
    let slot = try nextFrame(stream)
    let converter = try PictureConverter(
        from: stream.layout, to: PictureRequest(encoding: .bgr, dimensions: stream.layout.dimensions))
    let output = PictureBuffer()
    _ = try converter.convert(slot.regions.map { UnsafeRawBufferPointer($0) }, bytesUsed: slot.bytesUsed, into: output)
    // The band is whole whatever the controls do.
    #expect(PictureCounterReader.read(output.bytes, converter.outputLayout)?.counter == UInt32(slot.captureSequence))
    try camera.stopStreaming()
    return (Array(output.bytes), converter.outputLayout)
}

/// Blue, green and red in the middle of the n-th of eight bars.
private func bar(_ number: Int, _ picture: (bytes: [UInt8], layout: FrameLayout), y: Int = 200) -> [Int] {
    let x = picture.layout.dimensions.width * (2 * number + 1) / 16
    let start = y * picture.layout.planes[0].stride + 3 * x
    return picture.bytes[start..<start + 3].map(Int.init)
}

private func luma(_ bgr: [Int]) -> Int { (114 * bgr[0] + 587 * bgr[1] + 299 * bgr[2]) / 1000 }

@Suite struct VirtualControlTests {
    @Test func areV4L2sOwn() throws {
        let camera = VirtualCamera(index: 0)
        let controls = try camera.open().controls
        #expect(controls.map(\.id) == controls.map(\.id).sorted())
        let byName = Dictionary(uniqueKeysWithValues: controls.map { ($0.name, $0) })
        let wanted: [String: (UInt32, ControlType)] = [
            "brightness": (0x980900, .integer), "contrast": (0x980901, .integer), "saturation": (0x980902, .integer),
            "hue": (0x980903, .integer), "white_balance_automatic": (0x98090C, .boolean), "gain": (0x980913, .integer),
            "horizontal_flip": (0x980914, .boolean), "vertical_flip": (0x980915, .boolean),
            "power_line_frequency": (0x980918, .menu), "white_balance_temperature": (0x98091A, .integer),
            "auto_exposure": (0x9A0901, .menu), "exposure_time_absolute": (0x9A0902, .integer),
            "focus_absolute": (0x9A090A, .integer), "focus_automatic_continuous": (0x9A090C, .boolean),
            "zoom_absolute": (0x9A090D, .integer), "test_pattern": (0x9F0903, .menu),
            "do_white_balance": (0x98090D, .button), "red_balance": (0x98090E, .integer),
            "blue_balance": (0x98090F, .integer), "exposure_dynamic_framerate": (0x9A0903, .boolean),
            "auto_exposure_bias": (0x9A0913, .integerMenu), "wide_dynamic_range": (0x9A0915, .boolean),
            "image_stabilization": (0x9A0916, .boolean), "iso_sensitivity": (0x9A0917, .integer),
            "iso_sensitivity_auto": (0x9A0918, .menu), "scene_mode": (0x9A091A, .menu), "3a_lock": (0x9A091B, .bitmask),
            "auto_focus_start": (0x9A091C, .button), "auto_focus_status": (0x9A091E, .bitmask),
            "led_mode": (0x9C0901, .menu), "strobe": (0x9C0903, .button), "intensity_torch_mode": (0x9C0908, .integer),
        ]
        // The others are its own (`V4L2_CTRL_DRIVER_PRIV`).
        #expect(Set(controls.filter { $0.id & 0xFFFF < 0x1000 }.map(\.name)) == Set(wanted.keys))
        for (name, (id, type)) in wanted {
            let control = try #require(byName[name])
            #expect(control.id == id)
            #expect(control.type == type)
            if type == .button { continue }
            let value = try #require(control.defaultValue)
            #expect((control.minimum...control.maximum).contains(value))
            #expect(control.hasItems == (control.menu[value] != nil))
            #expect(control.hasItems || (value - control.minimum) % control.step == 0)
        }
        #expect(try camera.controlValues()["horizontal_flip"] == .boolean(false))
        let front = try VirtualCamera(index: 1).open().controls.map(\.name)
        #expect(
            Set(byName.keys).subtracting(front) == [
                "focus_absolute", "focus_automatic_continuous", "auto_focus_start", "auto_focus_status",
                "focus_point_x", "focus_point_y", "smooth_focus", "led_mode", "strobe", "intensity_torch_mode",
                "flash_automatic",
                "torch_automatic",
            ])
    }

    @Test(arguments: [
        ("white_balance_temperature", "white_balance_automatic", Int64(0), Int64(5000)),
        ("exposure_time_absolute", "auto_exposure", 1, 100), ("focus_absolute", "focus_automatic_continuous", 0, 50),
    ])
    func areInactiveWhileAutomatic(_ name: String, _ mode: String, _ manual: Int64, _ value: Int64) throws {
        let camera = VirtualCamera(index: 0)
        _ = try camera.open()
        func isInactive() throws -> Bool {
            try camera.controls().first { $0.name == name }?.flags.contains(.inactive) ?? false
        }
        #expect(try isInactive())
        let error = #expect(throws: SourceError.self) { try camera.setControl(name, to: .integer(value)) }
        #expect(error?.kind == .controlBusy)
        #expect(error?.errno == EACCES)
        #expect(error?.control == name)
        try camera.setControl(mode, to: .integer(manual))
        #expect(try !isInactive())
        try camera.setControl(name, to: .integer(value))
        #expect(try camera.controlValues()[name] == .integer(value))
    }

    @Test func refuseWhatTheyCannotBe() throws {
        let camera = VirtualCamera(index: 0)
        _ = try camera.open()
        let before = try camera.controlValues()
        let cases: [(String, ControlValue, Int32)] = [
            ("brightness", .integer(65), ERANGE), ("brightness", .integer(.min), ERANGE),
            ("brightness", .string("0"), EINVAL), ("hue", .integers([1]), EINVAL), ("no_such", .integer(1), EINVAL),
            ("auto_exposure", .integer(2), EINVAL), ("auto_exposure", .integer(9), ERANGE),
            ("horizontal_flip", .integer(2), ERANGE),
        ]
        for (name, value, code) in cases {
            let error = #expect(throws: SourceError.self) { try camera.setControl(name, to: value) }
            #expect(error?.kind == .refused)
            #expect(error?.errno == code)
            #expect(error?.control == name)
        }
        #expect(try camera.controlValues() == before)
        try camera.setControl("focus_automatic_continuous", to: .boolean(false))
        try camera.setControl("focus_absolute", to: .integer(53))
        #expect(try camera.controlValues()["focus_absolute"] == .integer(55))
    }

    @Test(arguments: [PixelFormat.yuyv, .nv12, .bgr24, .motionJPEG, .bayerRGGB8])
    func showInThePicture(_ format: PixelFormat) throws {
        let plain = try picture(format)
        // White, yellow, cyan, green, magenta, red, blue and black at three quarters.
        let bars = [
            [191, 191, 191], [0, 191, 191], [191, 191, 0], [0, 191, 0], [191, 0, 191], [0, 0, 191], [191, 0, 0],
            [32, 32, 32],
        ]
        for (number, wanted) in bars.enumerated() {
            #expect(
                zip(bar(number, plain), wanted).allSatisfy { abs($0 - $1) <= 8 }, "\(number): \(bar(number, plain))")
        }
        #expect(luma(bar(0, try picture(format, [("brightness", 30)]))) > luma(bar(0, plain)) + 20)
        #expect(luma(bar(0, try picture(format, [("gain", 20)]))) > luma(bar(0, plain)) + 20)
        #expect(luma(bar(7, try picture(format, [("contrast", 16)]))) > luma(bar(7, plain)) + 20)
        let grey = bar(5, try picture(format, [("saturation", 0)]))
        #expect((grey.max() ?? 0) - (grey.min() ?? 255) < 10)
        #expect(bar(5, try picture(format, [("hue", 120)])) != bar(5, plain))
        let dark = try picture(format, [("auto_exposure", 1), ("exposure_time_absolute", 40)])
        #expect(luma(bar(0, dark)) < luma(bar(0, plain)) - 50)
        let warm = bar(0, try picture(format, [("white_balance_automatic", 0), ("white_balance_temperature", 6500)]))
        #expect(warm[2] > warm[0] + 30)
        #expect(bar(0, try picture(format, [("zoom_absolute", 400)])) != bar(0, plain))
        #expect(bar(2, try picture(format, [("test_pattern", 3)])).allSatisfy { $0 > 245 })
        #expect(bar(2, try picture(format, [("test_pattern", 2)])).allSatisfy { $0 < 10 })
    }

    @Test(arguments: [PixelFormat.yuyv, .nv12, .bayerRGGB8])
    func mirrorThePicture(_ format: PixelFormat) throws {
        let plain = try picture(format)
        let mirrored = try picture(format, [("horizontal_flip", 1)])
        for number in 0..<8 {
            #expect(zip(bar(number, plain), bar(7 - number, mirrored)).allSatisfy { abs($0 - $1) <= 4 })
        }
        let turned = try picture(format, [("vertical_flip", 1)])
        // The pattern is from 105 to 300 of 360 lines below the band, turned from 120 to 315.
        #expect(bar(3, turned, y: 310) == bar(3, plain))
        #expect(bar(3, turned, y: 110) != bar(3, plain))
    }

    @Test func showWithoutANewStream() throws {
        let camera = try openCamera(0, .grey, 640, 360)
        let stream = try camera.startStreaming()
        func middle(_ slot: FrameSlot) -> UInt8 { payload(slot)[200 * 640 + 320] }
        try stream.enqueue(try nextFrame(stream))
        try camera.setControl("test_pattern", to: .integer(3))
        var slot = try nextFrame(stream)
        for _ in 0..<100 where middle(slot) != 255 {
            try stream.enqueue(slot)
            slot = try nextFrame(stream)
        }
        #expect(middle(slot) == 255)
        try camera.stopStreaming()
    }
}

extension CaptureControl {
    fileprivate var hasItems: Bool { type == .menu || type == .integerMenu }
}
