import BusProtocol

@testable import CaptureCore

func rate(_ framesPerSecond: Int) -> FrameRateRange {
    FrameRateRange(discrete: FrameDuration(framesPerSecond: framesPerSecond))
}

func duration(_ numerator: Int, _ denominator: Int) -> FrameDuration {
    FrameDuration(numerator, denominator) ?? FrameDuration(framesPerSecond: 1)
}

extension FrameRateRequest {
    static func rate(_ framesPerSecond: Double) -> Self {
        FrameRate(framesPerSecond).map(Self.rate) ?? .range(min: nil, max: nil)
    }
}

/// A webcam as uvcvideo shows one, and a stepwise format beside.
enum SampleDevice {
    static let description = DeviceDescription(
        identity: DeviceIdentity(
            uniqueID: "usb-1-2:0001", localizedName: "Sample", type: .external, position: .external,
            node: "/dev/video0", driver: "uvcvideo", bus: "usb-0000:00:14.0-2"),
        formats: formats, controls: controls)

    static let formats = [
        CaptureFormat(
            id: "f0", pixelFormat: .yuyv, dimensions: Dimensions(width: 640, height: 480),
            frameRates: [rate(30), rate(15)], title: "YUYV 4:2:2"),
        CaptureFormat(
            id: "f1", pixelFormat: .yuyv, dimensions: Dimensions(width: 1280, height: 720), frameRates: [rate(10)]),
        CaptureFormat(
            id: "f2", pixelFormat: .motionJPEG, dimensions: Dimensions(width: 640, height: 480),
            frameRates: [rate(60), rate(30)]),
        CaptureFormat(
            id: "f3", pixelFormat: .motionJPEG, dimensions: Dimensions(width: 1280, height: 720),
            frameRates: [rate(30), FrameRateRange(discrete: duration(1001, 30000))]),
        CaptureFormat(
            id: "f4", pixelFormat: .motionJPEG, dimensions: Dimensions(width: 1920, height: 1080),
            frameRates: [rate(30)]),
        CaptureFormat(
            id: "f5", pixelFormat: .nv12, dimensions: Dimensions(width: 1600, height: 1200),
            sizes: DimensionRange(
                minimum: Dimensions(width: 160, height: 120), maximum: Dimensions(width: 1600, height: 1200),
                step: Dimensions(width: 16, height: 8)),
            frameRates: [
                FrameRateRange(
                    minFrameDuration: duration(1, 50), maxFrameDuration: duration(1, 5), step: duration(1, 100))
            ]),
        CaptureFormat(
            id: "f6", pixelFormat: .h264, dimensions: Dimensions(width: 1280, height: 720),
            frameRates: [FrameRateRange(minFrameDuration: duration(1, 60), maxFrameDuration: duration(1, 1))]),
        CaptureFormat(
            id: "f7", pixelFormat: .grey, dimensions: Dimensions(width: 320, height: 240), frameRates: []),
    ]

    static let controls = [
        CaptureControl(
            name: "brightness", title: "Brightness", id: 0x980900, type: .integer, minimum: -64, maximum: 64,
            defaultValue: 0, flags: [.slider], category: "User Controls"),
        CaptureControl(
            name: "white_balance_automatic", title: "White Balance, Automatic", id: 0x98090C, type: .boolean,
            maximum: 1,
            defaultValue: 1),
        CaptureControl(
            name: "white_balance_temperature", title: "White Balance Temperature", id: 0x98091A, type: .integer,
            minimum: 2800, maximum: 6500, step: 10, defaultValue: 4600, flags: [.inactive]),
        CaptureControl(
            name: "exposure_time_absolute", title: "Exposure Time, Absolute", id: 0x9A0902, type: .integer, minimum: 3,
            maximum: 2047, defaultValue: 250, flags: [.inactive]),
        CaptureControl(
            name: "auto_exposure", title: "Auto Exposure", id: 0x9A0901, type: .menu, maximum: 3, defaultValue: 3,
            menu: [1: .name("Manual Mode"), 3: .name("Aperture Priority Mode")]),
        CaptureControl(
            name: "link_frequency", title: "Link Frequency", id: 0x9F0901, type: .integerMenu, maximum: 1,
            menu: [0: .value(100_000_000), 1: .value(200_000_000)]),
        CaptureControl(
            name: "model", title: "Model", id: 0x98F001, type: .string, minimum: 2, maximum: 8, step: 2,
            category: "Camera Controls"),
        CaptureControl(name: "serial", title: "Serial", id: 0x98F002, type: .string, maximum: 8, flags: [.readOnly]),
        CaptureControl(
            name: "save", title: "Save", id: 0x98F003, type: .button, flags: [.writeOnly, .executeOnWrite]),
        CaptureControl(name: "bits", title: "Bits", id: 0x98F004, type: .bitmask, maximum: 0x5, step: 0),
        CaptureControl(
            name: "matrix", title: "Matrix", id: 0x98F005, type: .u8, maximum: 200, flags: [.hasPayload],
            dimensions: [2, 2]),
        CaptureControl(
            name: "list", title: "List", id: 0x98F006, type: .u32, maximum: 9, flags: [.dynamicArray], dimensions: [3]),
        CaptureControl(name: "crop", title: "Crop", id: 0x98F007, type: .area),
        CaptureControl(name: "held", title: "Held", id: 0x98F008, type: .integer, maximum: 9, flags: [.grabbed]),
        CaptureControl(name: "gone", title: "Gone", id: 0x98F009, type: .integer, maximum: 9, flags: [.disabled]),
        CaptureControl(name: "odd", title: "Odd", id: 0x98F00A, type: .unknown),
        CaptureControl(
            name: "focus_absolute", title: "Focus, Absolute", id: 0x9A090A, type: .integer, maximum: 250, step: 5),
        CaptureControl(
            name: "focus_automatic_continuous", title: "Focus, Automatic Continuous", id: 0x9A090C, type: .boolean,
            maximum: 1),
    ]

    static let current = DeviceConfiguration(
        formatID: "f0", format: FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 640, height: 480)),
        frameDuration: duration(1, 30),
        controls: [
            "brightness": .integer(0), "white_balance_automatic": .boolean(true), "auto_exposure": .integer(3),
            "focus_automatic_continuous": .boolean(false), "model": .string("abcd"), "matrix": .integers([1, 2, 3, 4]),
        ])
}
