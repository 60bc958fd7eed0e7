import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import Imaging
import JSON
import LinuxIO
import Logging
import ZeroMQ

// What becomes of the frames that were kept.

extension PhotoPipeline {
    func process(_ task: PhotoTask) {
        for index in task.taken.indices {
            let shot = task.taken[index]
            guard let frame = shot.frame, var reader = shot.reader ?? task.reader else { continue }
            reader.bias = shot.bias.map { task.bias($0, reader) }
            reader.flashFired = shot.flashFired
            let photos = task.maker
            for file in shot.begun..<task.settings.filesPerShot {
                let isQueued = maker.perform { [reader] in
                    photos.make(frame, index: index, file: file, reader, isSettled: shot.isSettled, late: shot.late)
                } then: { [weak self] result in
                    guard let self else { return }
                    made(task, result)
                    // One that found no room in the queue has some now.
                    for other in tasks { process(other) }
                }
                guard isQueued else { return }
                task.taken[index].begun += 1
            }
        }
    }

    func made(_ task: PhotoTask, _ result: Result<MadePhoto, BusError>) {
        guard task.stage != .over else { return }
        switch result {
        case .failure(let error): fail(task, error)
        case .success(let photo):
            let index = photo.result.index
            task.taken[index].made += 1
            if task.taken[index].made == task.settings.filesPerShot { task.taken[index].frame = nil }
            task.results.append(photo.result)
            if let bytes = photo.held { hold(task, photo.result, bytes) }
            tell(task, .processed, ["photo": photo.result.json], photo.attachment)
            finishIfWhole(task)
        }
    }

    func finishIfWhole(_ task: PhotoTask) {
        guard task.stage == .processing, task.results.count == task.settings.filesPerDevice else { return }
        task.stage = .over
        tasks.removeAll { $0 === task }
        let answer = task.onTaken
        task.onTaken = nil
        answer?(.success(["photos": .array(task.results.sorted { $0.rank < $1.rank }.map(\.json))]))
        tellIfEnded()
    }
}
