import CaptureCore
import CaptureSources

/// What is set of ``ExposureMetering``'s controls. Lives on the device thread.
final class MeteringState {
    /// The camera can be driven.
    private(set) var isThere = false
    /// The driver has the point.
    private var isPointTheDrivers = false
    private(set) var isOn = false
    private var x = ExposureMetering.centre
    private var y = ExposureMetering.centre
    /// The exposure is on its way to what was asked.
    var isAdjusting = false
    /// Rises whenever it is to be begun anew.
    private(set) var revision: UInt64 = 0
    /// What an automatic exposure may last; nil: that can't be said.
    private var bound: CaptureControl?
    /// Its value, once somebody has set it.
    private var longest: Int64?
    /// The driver's control that says whether the camera exposes by itself.
    private var mode: CaptureControl?
    /// What is set now is what was set before: nobody waits for it.
    var isPuttingBack = false

    /// The exposure is to be brought to what is at the point.
    private func begin() {
        guard !isPuttingBack else { return }
        isAdjusting = true
        revision += 1
    }

    private func end() {
        isOn = false
        isAdjusting = false
        revision += 1
    }

    // MARK: The controls

    /// Those that it has beside the driver's, and the driver's as they are with them.
    func completed(_ driver: [CaptureControl]) -> [CaptureControl] {
        let own = ExposureMetering.controls(beside: driver)
        isThere = !own.isEmpty
        isPointTheDrivers = !own.contains { $0.name == ExposureMetering.pointX }
        bound = own.first { $0.name == ExposureMetering.longest }
        guard isThere else { return driver }
        mode = ExposureMetering.mode(driver)
        guard isOn else { return driver + own }
        return driver.map { control in
            guard ExposureMetering.isHeld(control) else { return control }
            var control = control
            control.flags.insert(.inactive)
            return control
        } + own
    }

    /// Their values; empty where there are none.
    var values: [String: ControlValue] {
        guard isThere else { return [:] }
        var values: [String: ControlValue] = [
            ExposureMetering.pointX: .integer(x), ExposureMetering.pointY: .integer(y),
            ExposureMetering.isOn: .boolean(isOn), ExposureMetering.isAdjusting: .boolean(isAdjusting),
        ]
        if let bound {
            let value = min(max(longest ?? bound.maximum, bound.minimum), bound.maximum)
            values[ExposureMetering.longest] = .integer(value)
        }
        return values
    }

    /// - Returns: false for a control that is not one of these.
    func set(_ name: String, to value: ControlValue) throws(SourceError) -> Bool {
        guard isThere else { return false }
        switch name {
        case ExposureMetering.pointX where !isPointTheDrivers: try move(\.x, name, value)
        case ExposureMetering.pointY where !isPointTheDrivers: try move(\.y, name, value)
        case ExposureMetering.start: begin()
        case ExposureMetering.isOn:
            if try number(name, value, 0...1) == 0 {
                end()
            } else {
                // Also where it was on: another program may have moved the exposure.
                isOn = true
                begin()
            }
        case ExposureMetering.longest:
            guard let bound else { return false }
            let new = try number(name, value, bound.minimum...bound.maximum)
            guard new != longest else { break }
            longest = new
            if isOn { begin() }
        case ExposureMetering.isAdjusting: throw refusal(.controlBusy, name, "is read-only")
        default: return false
        }
        return true
    }

    /// A control of the driver's was set. Left to the camera, the exposure is not ours any more.
    func wasSet(_ name: String, to value: ControlValue) {
        guard let mode, mode.name == name, ExposureMetering.isAutomatic(mode, value), isOn || isAdjusting else {
            return
        }
        end()
    }

    private func move(
        _ side: ReferenceWritableKeyPath<MeteringState, Int64>, _ name: String, _ value: ControlValue
    ) throws(SourceError) {
        let new = try number(name, value, 0...ExposureMetering.end)
        guard new != self[keyPath: side] else { return }
        self[keyPath: side] = new
        if isOn { begin() }
    }

    private func number(
        _ name: String, _ value: ControlValue, _ range: ClosedRange<Int64>
    ) throws(SourceError) -> Int64 {
        guard let number = value.number, range.contains(number) else {
            throw refusal(.refused, name, "takes \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func refusal(_ kind: SourceError.Kind, _ name: String, _ why: String) -> SourceError {
        SourceError(kind, operation: "exposure metering", message: "\(name) \(why)", control: name)
    }
}
