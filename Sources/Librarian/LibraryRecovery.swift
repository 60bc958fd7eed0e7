import BusProtocol
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import MovieFile

/// What is to be done about what nobody makes any more.
extension Librarian {
    private enum Outcome {
        /// The entry as it is now.
        case settled(LibraryEntry)
        /// Somebody makes it.
        case recording
        /// It is left as it was, for another time.
        case failed(String)
    }

    func recover(_ id: String?) throws(BusError) -> JSONValue {
        let entries = if let id { [try find(id, nil)] } else { try contents().entries }
        var (settled, failed, recording): ([JSONValue], [JSONValue], Int) = ([], [], 0)
        // What is finished is answered to who asks for just that.
        for entry in entries where entry.state == .recording || id != nil {
            switch recover(entry) {
            case .settled(let entry): settled.append(shown(entry))
            case .recording: recording += 1
            case .failed(let why): failed.append(["id": .string(entry.id), "why": .string(why)])
            }
        }
        return ["entries": .array(settled), "failed": .array(failed), "recording": JSONValue(recording)]
    }

    private func recover(_ found: LibraryEntry) -> Outcome {
        guard let lock = hold(found) else { return .recording }
        return withExtendedLifetime(lock) { () -> Outcome in
            do throws(LibraryError) {
                // It may have been finished, or deleted, since it was read.
                guard var entry = try library.entry(found.id) else { return .failed("it is gone") }
                guard entry.state == .recording, entry.kind != .photo else { return .settled(entry) }
                if let why = mend(&entry) { return .failed(why) }
                try library.replace(entry)
                return .settled(entry)
            } catch {
                return .failed("\(error)")
            }
        }
    }

    /// - Returns: why nothing could be done now.
    private func mend(_ entry: inout LibraryEntry) -> String? {
        do throws(SystemError) {
            let folder = try HeldFolder(of: entry.path, library: library)
            // It may be on a disk that isn't here.
            guard try folder.size() != nil else { return "its file \(entry.path) is not there" }
            let inspection: MovieInspection
            do throws(MovieError) {
                inspection = try folder.withPath { (path) throws(MovieError) in try MovieRepair.repair(path) }
            } catch {
                return "\(error)"
            }
            entry.duration = inspection.duration / 1_000_000
            entry.size = inspection.fileSize
            entry.reason = entry.reason ?? "recorderCrashed"
            if inspection.condition == .unplayable {
                entry.state = .damaged
                entry.problem =
                    inspection.fileSize == 0
                    ? "nothing was written before its recorder died"
                    : "its recorder died before a first fragment of it was whole"
            } else {
                entry.state = .recovered
            }
        } catch {
            return "\(error)"
        }
        // The movie is what counts.
        if let sideCar = entry.sideCar {
            do throws(SystemError) {
                let folder = try HeldFolder(of: sideCar, library: library)
                try folder.withPath { (path) throws(SystemError) in try SideCarRepair.repair(path) }
            } catch {
                if entry.problem == nil, error.code != ENOENT {
                    entry.problem = "its side-car can't be mended: \(error)"
                }
            }
        }
        return nil
    }
}
