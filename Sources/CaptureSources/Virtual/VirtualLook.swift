import CaptureCore
import Glibc

/// What the controls make of the picture.
struct VirtualLook: Hashable {
    typealias ID = VirtualControlTable.ID

    var pattern: VirtualTestPattern
    /// Added to luma of 0–255.
    var brightness: Double
    /// Times the distance from middle grey.
    var contrast: Double
    /// Times the distance from no colour.
    var saturation: Double
    /// Turns colours, in degrees.
    var hue: Double
    /// Times luma: gain, exposure and lamp.
    var exposure: Double
    /// Towards red, and away from blue.
    var warmth = 0.0
    /// Added to the differences towards red and blue.
    var red: Double
    var blue: Double
    /// 1 is everything.
    var zoom: Double
    /// How far edges are smeared, in thousandths of the width.
    var blur = 0.0
    var isMirrored: Bool
    var isUpsideDown: Bool
    private var hasFocus: Bool
    private var hasMicroseconds: Bool

    /// But for what the light goes through first: ``seen(through:)``.
    init(_ controls: VirtualControls) {
        pattern = VirtualTestPattern(rawValue: controls[ID.testPattern]) ?? .bars
        brightness = Double(controls[ID.brightness])
        contrast = Double(controls[ID.contrast]) / 32
        if controls[ID.wideDynamicRange] != 0 || controls[ID.autoDynamicRange] != 0 { contrast *= 0.75 }
        saturation = Double(controls[ID.saturation]) / 64
        hue = Double(controls[ID.hue])
        exposure = 1 + Double(controls[ID.gain]) / 100
        if controls[ID.dynamicFramerate] != 0 { exposure *= 1.25 }
        if controls[ID.lampMode] == 2 { exposure *= 1 + Double(controls[ID.torchIntensity]) / 200 }
        red = Double(controls[ID.redBalance] - VirtualControlTable.neutralBalance) / 40
        blue = Double(controls[ID.blueBalance] - VirtualControlTable.neutralBalance) / 40
        zoom = max(1, Double(controls[ID.zoom]) / 100)
        isMirrored = controls[ID.horizontalFlip] != 0
        isUpsideDown = controls[ID.verticalFlip] != 0
        hasFocus = controls.has(ID.focus)
        hasMicroseconds = controls.has(ID.exposureMicroseconds)
        switch controls[ID.sceneMode] {
        // Beach, night, sunset.
        case 2: exposure *= 0.75
        case 8: exposure *= 1.5
        case 12: red += 15
        default: break
        }
    }

    /// What lens, exposure and white balance make of it.
    func seen(through optics: VirtualOptics) -> VirtualLook {
        var look = self
        look.exposure *= optics.exposure.present * optics.sensitivity.present / VirtualControlTable.neutralExposure
        if optics.isFlashing { look.exposure *= 2.5 }
        look.warmth = (optics.balance.present - Double(VirtualControlTable.neutralTemperature)) / 40
        if hasFocus { look.blur = abs(optics.lens.present - Double(VirtualControlTable.bestFocus)) / 8 }
        return look
    }

    /// Whether the camera has one of the controls that its optics move.
    func has(_ id: UInt32) -> Bool {
        switch id {
        case ID.focus, ID.focusStatus: hasFocus
        case ID.exposureTime: !hasMicroseconds
        case ID.exposureMicroseconds: hasMicroseconds
        default: true
        }
    }
}
