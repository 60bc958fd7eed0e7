import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import ZeroMQ

// Photos of a moment that is over. Nothing is set for them, and nothing waited for, so they are beside those that have
// the device.

extension PhotoPipeline {
    /// Takes the frame of that moment from the held frames, before it is released, and answers when its file can be
    /// made.
    func preparePast(_ order: PhotoOrder, _ moment: Instant, _ answer: @escaping PhotoTask.Answer) {
        if let error = obstacle?() { return answer(.failure(error)) }
        let past = frames.past
        let source = controller.stream?.timestampSource ?? .startOfExposure
        let frame: KeptFrame
        switch past.find(moment, source, in: memory) {
        case .found(let found): frame = found
        case .noMemory: return answer(.failure(.noMemoryForPhotos(device)))
        case .notHeld(let oldest):
            return answer(
                .failure(
                    .momentNotHeld(device: device, ago: order.settings.ago, preRoll: past.preRoll, oldest: oldest)))
        }
        let task = PhotoTask(order, PhotoMaker(order, device: device, files), answer)
        task.stage = .preparing
        task.past = frame
        task.layout = frame.layout
        // How the device is now says nothing of how it was then.
        task.reader = PhotoFactsReader(controller.snapshot, isPast: true)
        task.isLookedAt = true
        tasks.append(task)
        beginWaiting(task)
        let photos = task.maker
        let isQueued = copier.perform {
            photos.prepare(frame.layout)
        } then: { [weak self] result in
            guard let self, task.stage == .preparing else { return }
            switch result {
            case .failure(let error): fail(task, error)
            case .success(let plan): answerReady(task, plan, frame.layout, controller.snapshot)
            }
        }
        if !isQueued { fail(task, .noMemoryForPhotos(device)) }
    }

    /// Makes the frame that was kept a photo.
    func takePast(_ task: PhotoTask, _ frame: KeptFrame) {
        task.past = nil
        tell(task, .willCapture)
        guard task.stage == .taking else { return }
        task.taken = [PhotoTask.Shot(moment: frame.facts.monotonic, frame: frame, isKept: true, isSettled: true)]
        gotFrame(task)
    }
}
