import BusProtocol
import CaptureCore
import JSON
import LinuxIO

/// `library.list`, `get`, `delete`, `read`
final class LibraryService: MethodService {
    private let librarians: LibrarianSupervisor
    private let permission: AuthorizationService
    private let clients: ClientRegistry
    private let takes: TakeRegistry
    private let budget = AttachmentBudget(.libraryParts)

    init(
        _ librarians: LibrarianSupervisor, _ permission: AuthorizationService, _ clients: ClientRegistry,
        _ takes: TakeRegistry
    ) {
        self.librarians = librarians
        self.permission = permission
        self.clients = clients
        self.takes = takes
    }

    var methods: [String: Handler] {
        [
            "library.list": .plain(list), "library.get": .plain(get), "library.delete": .plain(delete),
            "library.read": .attaching(read),
        ]
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        ask(
            .list(
                LibrarianRequest.Filter(
                    since: call.params["since"]?.integer, kind: call.string("kind"), device: call.string("device"),
                    state: call.string("state"), take: call.string("take"), photo: call.string("photo"),
                    prefix: call.string("prefix"),
                    limit: call.params["limit"]?.integer.flatMap { Int(exactly: $0) }
                        ?? LibrarianRequest.Filter.usualLimit)), call, respond)
    }

    private func get(_ call: Call, _ respond: @escaping Responder) {
        ask(.get(call.string("id") ?? ""), call, respond)
    }

    private func delete(_ call: Call, _ respond: @escaping Responder) {
        let id = call.string("id") ?? ""
        ask(.delete(id), call) { [weak self] result in
            if case .success = result { self?.takes.isGone(id) }
            respond(result)
        }
    }

    private func read(_ call: Call, _ respond: @escaping ReplyTaker) {
        let part = LibrarianRequest.Part(
            id: call.string("id") ?? "", file: call.string("file") ?? "path",
            offset: call.params["offset"]?.integer ?? 0,
            length: call.params["length"]?.integer.flatMap { Int(exactly: $0) } ?? LibraryFilePart.usualLength)
        let memory: FilledMemory?
        do throws(SystemError) {
            memory = part.length > 0 ? try FilledMemory(name: "library.read", count: part.length) : nil
        } catch {
            return respond(
                .failure(BusError(.internalError, "There is no memory for this part of the file: \(error). Read less."))
            )
        }
        ask(.read(part), call, filling: memory) { [budget] result in
            do throws(BusError) {
                let part = LibraryFilePart(try result.get(), memory?.view)
                respond(try part.reply(to: call.caller.peer.uid, budget))
            } catch {
                respond(.failure(error))
            }
        }
    }

    // Recordings belong to their user: permission for a camera now is no permission for what it recorded before.
    private func ask(
        _ action: LibrarianRequest.Action, _ call: Call, filling memory: FilledMemory? = nil,
        _ respond: @escaping Responder
    ) {
        let peer = call.caller.peer
        do throws(BusError) {
            try permission.authorize(call.caller, [.library])
        } catch {
            permission.tried(
                uid: peer.uid, gid: peer.gid, pid: peer.pid, .library, program: clients.programName(call.caller))
            return respond(.failure(error))
        }
        librarians.ask(
            LibrarianRequest(action, uid: permission.isAdmin(call.caller) ? nil : peer.uid), by: peer.uid,
            filling: memory, completion: respond)
    }
}
