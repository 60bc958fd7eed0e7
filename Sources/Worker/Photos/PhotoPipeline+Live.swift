import BusProtocol
import BusServer
import CaptureCore
import JSON
import ZeroMQ

// The pictures of live photos: each is stored together with its movie, which is whole later than it, or not at all.

extension PhotoPipeline {
    /// The picture is made; it waits for its movie.
    func hold(_ task: PhotoTask, _ result: PhotoResult, _ bytes: Message) {
        let (job, photo) = (task.order.job, HeldPhoto(task.order, result, bytes))
        held[job] = photo
        photo.timer = loop.schedule(afterMilliseconds: WorkerOrder.photoPatience) { [weak self] in self?.forget(job) }
    }

    /// Its movie is whole as well: both are stored, and whatever comes of that, it is not held any longer.
    func publish(_ job: String, _ movie: LivePhotoMovie, _ file: String, _ answer: @escaping PhotoTask.Answer) {
        guard whenEnded == nil else {
            return answer(.failure(BusError(.shuttingDown, "The worker of \(device) is ending.")))
        }
        guard let photo = held[job], !photo.isBeingStored, !tasks.contains(where: { $0.order.job == job }) else {
            return answer(
                .failure(
                    BusError(
                        .interrupted, "\(device) holds no picture of that live photo; take it again.",
                        ["device": .string(device), "interruption": "timeout"])))
        }
        photo.isBeingStored = true
        loop.cancel(photo.timer)
        let isQueued = maker.perform {
            photo.store(movie, file)
        } then: { [weak self] result in
            guard let self else { return }
            held[job] = nil
            answer(result)
            for body in photo.whenOver { body() }
            tellIfEnded()
            // One that found no room in the queue has some now.
            for other in tasks { process(other) }
        }
        if !isQueued {
            held[job] = nil
            answer(.failure(.noMemoryForPhotos(device)))
        }
    }

    /// A picture is not wanted any more, or its movie has failed.
    func forget(_ job: String) {
        guard let photo = held[job] else { return }
        photo.giveUp()
        guard !photo.isBeingStored else { return }
        loop.cancel(photo.timer)
        held[job] = nil
    }

    /// The same; calls the body when it is stored where that could not be held up any more.
    func afterForgetting(_ job: String, _ body: @escaping () -> Void) {
        forget(job)
        if let photo = held[job] { photo.whenOver.append(body) } else { body() }
    }

    /// The same of all; those that are being stored may still be.
    func forgetHeld() {
        for (job, photo) in held where !photo.isBeingStored { forget(job) }
    }
}
