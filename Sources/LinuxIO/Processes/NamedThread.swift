import CLinux
import Glibc

/// A thread of our own with a name that `ps -L` and debuggers show, for work that blocks.
public final class NamedThread: @unchecked Sendable {
    // The identifier is written before anybody else sees the value, and joined once.
    private var identifier = pthread_t()
    private var isJoined = false

    private final class Body {
        let name: String
        let run: @Sendable () -> Void
        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts the thread.
    ///
    /// - Parameter name: at most 15 bytes; the kernel keeps no more.
    public init(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
        let box = Unmanaged.passRetained(Body(name: String(name.prefix(15)), run: body))
        let code = pthread_create(
            &identifier, nil,
            { argument in
                guard let argument else { return nil }
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                _ = clinux_set_thread_name(body.name)
                body.run()
                return nil
            }, box.toOpaque())
        guard code == 0 else {
            box.release()
            throw SystemError(code: code, operation: "pthread_create", subject: name)
        }
    }

    /// Lets others go before the calling thread, and before those that it starts from now on (`nice(2)`).
    ///
    /// - Parameter nice: from 1 to 19. Where that isn't allowed, it stays as it is.
    public static func yield(nice: Int32) { _ = clinux_set_thread_nice(nice) }

    // What nobody waits for gives its memory back by itself.
    deinit { if !isJoined { pthread_detach(identifier) } }

    /// Waits for its end.
    public func join() {
        guard !isJoined else { return }
        isJoined = true
        pthread_join(identifier, nil)
    }
}
