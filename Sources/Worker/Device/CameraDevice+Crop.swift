import BusProtocol
import CaptureCore
import CaptureSources
import JSON

/// The rectangle that a driver takes of its sensor's picture, and the format: drivers that don't scale have the one
/// follow from the other. What was set last counts, and what follows is reported.
extension CameraDevice {
    /// Has the committed rectangle again after a format of which the driver made another, if the format stays the same
    /// with it.
    func keepCrop(_ plan: ConfigurationPlan) throws(BusError) {
        let name = CropRectangleControl.name
        guard plan.format != nil, !plan.setsSelection,
            let wanted = committed?.controls.first(where: { $0.name == name })?.value
        else { return }
        try translating { () throws(SourceError) in
            guard let present = try source.controlValues()[name], present != wanted else { return }
            let format = try source.activeFormat()
            // A refusal shows in what is read afterwards.
            do throws(SourceError) {
                try source.setControl(name, to: wanted)
            } catch  where error.kind != .disconnected { return }
            if try source.activeFormat() != format { _ = try source.setFormat(format) }
        }
    }

    /// Reports the format that a rectangle brought, and the rectangle that a format brought.
    func verifyFormat(
        _ change: PreparedChange, _ before: DeviceSnapshot, _ now: DeviceSnapshot, _ adjustments: inout [Adjustment]
    ) throws(BusError) {
        func path(_ member: String) -> String { ConfigurationChange.path(of: member, in: change.path) }
        let given = now.configuration.format
        if change.plan.setsCropRectangle {
            let wanted = change.plan.format ?? before.configuration.format
            let isTold = adjustments.contains {
                $0.path == path("activeFormat") && $0.given["width"] == given.json["width"]
            }
            guard given != wanted, !isTold else { return }
            let why = "\(device) doesn't scale: its pictures have the size of cropRectangle."
            guard change.plan.format == nil || change.mode == .nearest else {
                throw BusError(
                    .formatUnsupported, why, ["device": .string(device), "nearest": now.configuration.formatJSON])
            }
            adjustments.append(
                Adjustment(
                    path: path("activeFormat"), asked: wanted.json, given: now.configuration.formatJSON, why: why))
        } else if change.plan.format != nil, !change.plan.setsSelection,
            let wanted = committed?.controls.first(where: { $0.name == CropRectangleControl.name })?.value,
            let present = now.configuration.controls[CropRectangleControl.name], present != wanted
        {
            adjustments.append(
                Adjustment(
                    path: path("controls.\(CameraControlName.cropRectangle.rawValue)"), asked: wanted.rectangleJSON,
                    given: present.rectangleJSON, why: "The new format comes with another rectangle."))
        }
    }

    /// What the driver made of a rectangle, by the name under which it was asked.
    func rounded(
        _ control: CaptureControl, _ wanted: PlannedControl, _ given: ControlValue, _ change: PreparedChange
    ) -> Adjustment {
        let isCamera = change.plan.implied.contains(control.name)
        let name = isCamera ? CameraControlName.cropRectangle.rawValue : control.name
        return Adjustment(
            path: ConfigurationChange.path(of: "controls.\(name)", in: change.path),
            asked: isCamera ? wanted.value.rectangleJSON : wanted.value.json,
            given: isCamera ? given.rectangleJSON : given.json, why: "The driver took the nearest that it can.")
    }
}

extension ConfigurationPlan {
    var setsCropRectangle: Bool { controls.contains { $0.name == CropRectangleControl.name } }

    /// The driver's selection, in one way or another.
    fileprivate var setsSelection: Bool {
        controls.contains { CropRectangleControl.rivals[$0.name] != nil }
    }
}

extension ControlValue {
    fileprivate var rectangleJSON: JSONValue { PixelRectangle(self)?.json ?? json }
}

extension DeviceConfiguration {
    fileprivate var formatJSON: JSONValue { json["activeFormat"] ?? .null }
}
