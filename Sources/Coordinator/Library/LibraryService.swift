import BusProtocol
import CaptureCore
import JSON
import LinuxIO

/// `library.*`
extension Coordinator {
    static let libraryServices: [String: Service] = [
        "library.list": { $0.listLibrary }, "library.get": { $0.getFromLibrary },
        "library.delete": { $0.deleteFromLibrary },
    ]
    static let libraryReading: [String: AttachingService] = ["library.read": { $0.readFromLibrary }]

    /// Has the library looked after as movies are made.
    func connectLibrary() {
        library.directory = moviePlace.library
        movies.onFinished = { [weak self] movie in
            guard let self, !isStopping else { return }
            returnLoans(of: movie)
            let isOfTake = takes.finished(movie)
            if movie.result?.reason == .recorderCrashed, !isOfTake { library.recover(movie.id) }
        }
    }

    private func listLibrary(_ call: Call, _ respond: @escaping Responder) {
        askLibrary(
            .list(
                LibrarianRequest.Filter(
                    since: call.params["since"]?.integer, kind: call.string("kind"), device: call.string("device"),
                    state: call.string("state"), take: call.string("take"), photo: call.string("photo"),
                    prefix: call.string("prefix"),
                    limit: call.params["limit"]?.integer.flatMap { Int(exactly: $0) }
                        ?? LibrarianRequest.Filter.usualLimit)), call, respond)
    }

    private func getFromLibrary(_ call: Call, _ respond: @escaping Responder) {
        askLibrary(.get(call.string("id") ?? ""), call, respond)
    }

    private func deleteFromLibrary(_ call: Call, _ respond: @escaping Responder) {
        let id = call.string("id") ?? ""
        askLibrary(.delete(id), call) { [weak self] result in
            if case .success = result { self?.takes.isGone(id) }
            respond(result)
        }
    }

    private func readFromLibrary(_ call: Call, _ respond: @escaping ReplyTaker) {
        let part = LibrarianRequest.Part(
            id: call.string("id") ?? "", file: call.string("file") ?? "path",
            offset: call.params["offset"]?.integer ?? 0,
            length: call.params["length"]?.integer.flatMap { Int(exactly: $0) } ?? LibraryFilePart.usualLength)
        let memory: FilledMemory?
        do throws(SystemError) {
            memory = part.length > 0 ? try FilledMemory(name: "library.read", count: part.length) : nil
        } catch {
            return respond(.failure(BusError(.internalError, "There is no memory for the part of a file: \(error).")))
        }
        askLibrary(.read(part), call, filling: memory) { [libraryParts] result in
            do throws(BusError) {
                let read = LibraryFilePart(try result.get(), memory?.view)
                respond(try read.answer(to: call.caller.peer.uid, libraryParts))
            } catch {
                respond(.failure(error))
            }
        }
    }

    // What others recorded is theirs: who may see a camera now may not see what it saw before.
    private func askLibrary(
        _ action: LibrarianRequest.Action, _ call: Call, filling memory: FilledMemory? = nil,
        _ respond: @escaping Responder
    ) {
        let peer = call.caller.peer
        do throws(BusError) {
            try permission.authorize(call.caller, [.library])
        } catch {
            permission.tried(
                uid: peer.uid, gid: peer.gid, pid: peer.pid, .library, program: programName(call.caller))
            return respond(.failure(error))
        }
        library.ask(
            LibrarianRequest(action, uid: permission.isAdmin(call.caller) ? nil : peer.uid), by: peer.uid,
            filling: memory, completion: respond)
    }
}
