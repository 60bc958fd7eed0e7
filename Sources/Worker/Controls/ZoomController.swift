import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Logging

/// Runs zoom ramps: a timer at the frame rate on the loop, each step on the device thread.
final class ZoomController {
    private let loop: Loop
    private let thread: DeviceThread<CameraDevice>
    private let controller: CameraController
    private let logger: Logger
    private var course: ZoomCourse?
    private var owner = JSONValue.null
    private var timer: Loop.Token?
    private var isStepping = false
    private var setValue: Int64?

    init(_ loop: Loop, _ thread: DeviceThread<CameraDevice>, _ controller: CameraController, logger: Logger) {
        self.loop = loop
        self.thread = thread
        self.controller = controller
        self.logger = logger
    }

    /// The owner of the running ramp, as given in the order; null: none runs.
    var ramp: JSONValue { course == nil ? .null : owner }

    /// The ramp has been begun on the device thread; it replaces one that runs.
    func begin(_ course: ZoomCourse, by owner: JSONValue) {
        self.course = course
        self.owner = owner
        setValue = nil
        controller.keepOpen(true)
        step()
    }

    /// Leaves the factor where it is, and calls the body when that is known. Harmless when none runs.
    func end(then body: @escaping () -> Void = {}) {
        guard let ramp = course?.ramping else { return body() }
        course = nil
        loop.cancel(timer)
        timer = nil
        thread.perform { camera in
            camera.endZoom(ramp)
            return camera.report()
        } then: { [weak self] (result: Result<CameraDevice.Report, Never>) in
            guard let self else { return }
            controller.zoomEnded(result.get(), ramp.control)
            if course == nil { controller.keepOpen(false) }
            body()
        }
    }

    private func step() {
        loop.cancel(timer)
        timer = nil
        guard let course, controller.isOpen else { return end() }
        let now = MonotonicClock.now()
        let isLast = course.ramp.isOver(at: now)
        let value = course.map.value(course.ramp.factor(at: now))
        // A driver that takes longer for a step than a frame lasts is asked again when it has answered.
        guard !isStepping, isLast || value != setValue else { return wait(now) }
        isStepping = true
        let ramp = course.ramping
        thread.perform { camera throws(SourceError) in
            try camera.stepZoom(ramp, to: value)
        } then: { [weak self] result in
            self?.stepped(course, value, isLast, result.mapError { $0 as any Error })
        }
    }

    private func stepped(_ course: ZoomCourse, _ value: Int64, _ isLast: Bool, _ result: Result<Bool, any Error>) {
        isStepping = false
        // Another may have begun meanwhile.
        guard self.course == course else {
            if self.course != nil { step() }
            return
        }
        switch result {
        case .success(true): break
        // The device was opened anew since.
        case .success(false): return end()
        case .failure(let error):
            logger.warning("a zoom ramp ends early", metadata: ["error": "\(error)"])
            return end()
        }
        setValue = value
        controller.zoomed(course.map.control.name, value)
        if isLast { end() } else { wait(MonotonicClock.now()) }
    }

    private func wait(_ now: Int64) {
        guard let course, timer == nil else { return }
        timer = loop.schedule(at: now + course.pace) { [weak self] in
            self?.timer = nil
            self?.step()
        }
    }
}
