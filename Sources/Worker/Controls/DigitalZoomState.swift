import CaptureCore
import CaptureSources
import Synchronization

/// What is set of ``DigitalZoom``'s control: on the device thread, and read by the loop with each frame.
final class DigitalZoomState: Sendable {
    /// ``CameraControlMap``'s bound of what can be zoomed.
    private let limit: Double
    private let most = Atomic(DigitalZoom.whole)
    private let present = Atomic(DigitalZoom.whole)

    init(limit: Double) { self.limit = limit }

    /// In thousandths; ``DigitalZoom/whole`` where nothing is zoomed.
    var thousandths: Int { present.load(ordering: .relaxed) }

    // MARK: On the device thread

    func controls(beside driver: [CaptureControl]) -> [CaptureControl] {
        let control = DigitalZoom.control(beside: driver, limit: limit)
        most.store(control.map { Int(clamping: $0.maximum) } ?? DigitalZoom.whole, ordering: .relaxed)
        // A driver that zooms by itself again leaves nothing to be enlarged.
        if control == nil { present.store(DigitalZoom.whole, ordering: .relaxed) }
        return control.map { [$0] } ?? []
    }

    /// Empty where the driver zooms.
    var values: [String: ControlValue] {
        isThere ? [DigitalZoom.name: .integer(Int64(thousandths))] : [:]
    }

    /// - Returns: false for a control that is not this one.
    func set(_ name: String, to value: ControlValue) throws(SourceError) -> Bool {
        guard isThere, name == DigitalZoom.name else { return false }
        let range = DigitalZoom.whole...most.load(ordering: .relaxed)
        guard let number = value.number.map({ Int(clamping: $0) }), range.contains(number) else {
            throw SourceError(
                .refused, operation: "digital zoom",
                message: "\(name) takes \(range.lowerBound) to \(range.upperBound)", control: name)
        }
        present.store(number, ordering: .relaxed)
        return true
    }

    private var isThere: Bool { most.load(ordering: .relaxed) > DigitalZoom.whole }
}
